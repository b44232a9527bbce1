package hooks

import "strings"

// class reads a set behind its opening bracket and writes it anew, item by
// item, so that none of the engine's own notations within sets can arise. The
// engine cannot put the complement of a set into a set; those become
// alternatives.
func (t *translator) class() {
	var items strings.Builder
	var complements []string
	negated := t.take("^")
	for first := true; t.err == nil; first = false {
		if !first && t.take("]") {
			break
		}
		low, set, complement := t.item()
		if complement != "" {
			complements = append(complements, complement)
		}
		items.WriteString(set)
		isRange := t.pos+1 < len(t.src) && t.src[t.pos] == '-' && t.src[t.pos+1] != ']'
		switch {
		case !isRange && set+complement == "":
			items.WriteString(literal(low))
		case isRange && set+complement != "":
			t.fail("a range cannot begin with a class")
		case isRange:
			t.pos++
			items.WriteString(t.span(low))
		}
	}
	t.write(joinClass(negated, items.String(), complements))
}

// span reads the upper end of a range.
func (t *translator) span(low rune) string {
	high, set, complement := t.item()
	if set+complement != "" || high < low {
		t.fail("a range must go from a character to a later one")
	}
	return literal(low) + "-" + literal(high)
}

// item reads one member: a character, or a class, which is text for within the
// brackets, or a set of its own that must stand beside them.
func (t *translator) item() (char rune, set, complement string) {
	c := t.next()
	if c != '\\' {
		return c, "", ""
	}
	switch c = t.next(); {
	case c == 'b':
		return '\b', "", ""
	case c == 'd' || c == 'D':
		return 0, `\` + string(c), ""
	case c == 'w':
		return 0, pyWord, ""
	case c == 's':
		return 0, pySpace, ""
	case c == 'W':
		return 0, "", "[^" + pyWord + "]"
	case c == 'S':
		return 0, "", "[^" + pySpace + "]"
	case c >= '1' && c <= '7':
		return t.octal(string(c) + t.while(2, "01234567")), "", ""
	}
	return t.character(c), "", ""
}

func joinClass(negated bool, items string, complements []string) string {
	if len(complements) == 0 {
		if negated {
			return "[^" + items + "]"
		}
		return "[" + items + "]"
	}
	if items != "" {
		complements = append(complements, "["+items+"]")
	}
	either := strings.Join(complements, "|")
	if negated {
		return "(?:(?!" + either + ")" + anything + ")"
	}
	return "(?:" + either + ")"
}
