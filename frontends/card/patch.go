package card

import (
	"slices"
	"strconv"
	"strings"
)

// patchLines reads an escaped text that is itself a patch, in the unified form or
// in the one that begins with "*** Begin Patch". It returns nil for anything that
// is not one throughout: a text that only looks like a patch is shown as a value.
func patchLines(text string) []DiffLine {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var p patch
	read := p.unified
	if strings.TrimSpace(lines[0]) == "*** Begin Patch" {
		read = p.begun
	}
	for _, line := range lines {
		if !read(line) {
			return nil
		}
	}
	if p.hunks == 0 || p.oldLeft > 0 || p.newLeft > 0 {
		return nil
	}
	return p.out
}

type patch struct {
	out              []DiffLine
	hunks            int
	oldLeft, newLeft int // lines that the hunk must still have
	old, new         int // numbers of the next line
}

// unified reads a line of the unified form. A hunk has as many lines as its header
// says, so that what only looks like a header inside it is none.
func (p *patch) unified(line string) bool {
	if p.oldLeft == 0 && p.newLeft == 0 {
		return p.header(line)
	}
	sign := byte(' ')
	if line != "" {
		sign = line[0]
	}
	switch sign {
	case ' ':
		p.oldLeft--
		p.newLeft--
		p.push(' ', strings.TrimPrefix(line, " "), p.old, p.new)
		p.old++
		p.new++
	case '-':
		p.oldLeft--
		p.push('-', line[1:], p.old, 0)
		p.old++
	case '+':
		p.newLeft--
		p.push('+', line[1:], 0, p.new)
		p.new++
	case '\\':
		p.push('*', line, 0, 0)
	default:
		return false
	}
	return p.oldLeft >= 0 && p.newLeft >= 0
}

// headers are what a line between hunks begins with. Read only.
var headers = []string{
	"--- ", "+++ ", "diff ", "index ", "Index: ", "=====", "old mode ", "new mode ", "new file mode ", "deleted file mode ",
	"similarity index ", "dissimilarity index ", "rename from ", "rename to ", "copy from ", "copy to ", `\ No newline`,
}

// begunHeaders are the same for the form that names its files. Read only.
var begunHeaders = []string{
	"*** Begin Patch", "*** End Patch", "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ",
	"*** End of File", "@@",
}

func beginsWith(line string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) })
}

// header reads a line between hunks.
func (p *patch) header(line string) bool {
	p.push('*', line, 0, 0)
	if strings.HasPrefix(line, "@@") {
		p.hunks++
		return p.hunk(line)
	}
	return line == "" || beginsWith(line, headers)
}

// hunk reads the header of a hunk, as in "@@ -1,3 +1,4 @@ what stands there".
func (p *patch) hunk(line string) bool {
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[0] != "@@" || !strings.HasPrefix(fields[3], "@@") {
		return false
	}
	var ok [2]bool
	p.old, p.oldLeft, ok[0] = span(fields[1], "-")
	p.new, p.newLeft, ok[1] = span(fields[2], "+")
	return ok[0] && ok[1]
}

// span reads the first line's number and the count of lines, as in "-1,3".
func span(text, sign string) (first, count int, ok bool) {
	text, ok = strings.CutPrefix(text, sign)
	from, n, counted := strings.Cut(text, ",")
	first, err := strconv.Atoi(from)
	count = 1
	if counted && err == nil {
		count, err = strconv.Atoi(n)
	}
	return first, count, ok && err == nil && first >= 0 && count >= 0
}

// begun reads a line of the form that names its files between "*** Begin Patch"
// and "*** End Patch". It has no line numbers.
func (p *patch) begun(line string) bool {
	switch {
	case beginsWith(line, begunHeaders):
		p.hunks++
		p.push('*', line, 0, 0)
	case line == "":
		p.push(' ', "", 0, 0)
	case line[0] == ' ' || line[0] == '+' || line[0] == '-':
		p.push(line[0], line[1:], 0, 0)
	default:
		return false
	}
	return true
}

func (p *patch) push(sign byte, text string, o, n int) {
	p.out = append(p.out, DiffLine{Sign: sign, Text: text, Old: o, New: n})
}
