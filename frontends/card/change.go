package card

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Change is one argument that differs from what was last answered with yes.
// All strings are escaped.
type Change struct {
	Name    string
	Added   bool // there was no such argument: Old says nothing
	Removed bool // there is none any more: New says nothing
	Old     Cut
	New     Cut
}

// Cut is a value shortened around what changed: Lead and Trail stand unchanged
// beside Middle, and Before and After bytes of the raw value are left out on
// either side. Middle is never shortened.
type Cut struct {
	Before int
	Lead   string
	Middle string
	Trail  string
	After  int
}

// lead is how many characters of what did not change stand beside a change.
const lead = 40

// comparison is a change with both texts, whole and escaped.
type comparison struct {
	Change
	old, new string
}

// compareSent compares what travelled with a question. complete is false when a
// value did not.
func compareSent(list []events.Change) (compared []comparison, complete bool) {
	for _, c := range list {
		if c.Old == nil && c.New == nil {
			return nil, false
		}
		compared = append(compared, compare(c.Name, c.Old, c.New))
	}
	return compared, true
}

// compareVersions compares the named arguments of two versions, which are canonical
// JSON. The name "" means the whole value.
func compareVersions(names []string, before, now []byte) []comparison {
	olds, news := raws(before), raws(now)
	var compared []comparison
	for _, n := range names {
		compared = append(compared, compare(n, olds[n], news[n]))
	}
	return compared
}

// raws gives the members of an object by name, and the whole under "" where no
// member is called so.
func raws(args []byte) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	if json.Unmarshal(args, &m) != nil {
		m = map[string]json.RawMessage{}
	}
	if _, ok := m[""]; !ok {
		m[""] = args
	}
	return m
}

func compare(name string, before, now json.RawMessage) comparison {
	c := comparison{Change: Change{Name: Line(name), Added: before == nil, Removed: now == nil}}
	o, wasJSON := laidOut(before)
	n, isJSON := laidOut(now)
	if !c.Added && !c.Removed && (wasJSON != isJSON || o == n) { // such as 1 and "1"
		o, n = string(before), string(now)
	}
	c.old, c.new = escapeBoth(o, n, mannerOf(name))
	switch {
	case c.Added:
		c.New = Cut{Middle: c.new}
	case c.Removed:
		c.Old = Cut{Middle: c.old}
	default:
		c.Old, c.New = cutAround(c.old, c.new)
	}
	return c
}

// section shows a change. Texts of several lines are shown as a diff too.
func (c comparison) section(change *Change, w words.Words) Section {
	s := Section{Name: c.Name, Kind: SectionChange, Change: change}
	if c.Added || c.Removed || !strings.Contains(c.old+c.new, "\n") || !withinBounds(c.old, c.new) {
		return s
	}
	s.Lines = diff(c.old, c.new, w)
	s.Stats = count(s.Lines).String()
	return s
}

// laidOut is what a value says, over several lines where that helps.
func laidOut(raw json.RawMessage) (text string, isJSON bool) {
	text, isJSON = plainText(raw)
	if isJSON {
		text = indent(text)
	}
	return text, isJSON
}

// cutAround finds what two escaped texts share at both ends and keeps a little
// of it around the part that differs.
func cutAround(o, n string) (before, now Cut) {
	head := settle(o, n, commonPrefix(o, n))
	tail := settleTail(o, n, head, commonSuffix(o[head:], n[head:]))
	return cut(o, head, tail), cut(n, head, tail)
}

func cut(s string, head, tail int) Cut {
	from := back(s, head, lead)
	to := forward(s, len(s)-tail, lead)
	return Cut{
		Before: len(Unescape(s[:from])),
		Lead:   s[from:head],
		Middle: s[head : len(s)-tail],
		Trail:  s[len(s)-tail : to],
		After:  len(Unescape(s[to:])),
	}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func commonSuffix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[len(a)-1-i] != b[len(b)-1-i] {
			return i
		}
	}
	return n
}

// settle moves a cut back to where both texts may be cut.
func settle(o, n string, at int) int {
	for at > 0 && !(cuttable(o, at) && cuttable(n, at)) {
		at--
	}
	return at
}

// settleTail shrinks a shared tail until both texts may be cut before it.
func settleTail(o, n string, head, tail int) int {
	for tail > 0 && !(cuttable(o, len(o)-tail) && cuttable(n, len(n)-tail) &&
		len(o)-tail >= head && len(n)-tail >= head) {
		tail--
	}
	return tail
}

// cuttable reports whether s may be cut at a byte: not inside a character or a
// mark, and not between a letter and what combines with it.
func cuttable(s string, at int) bool {
	if at <= 0 || at >= len(s) {
		return true
	}
	if !utf8.RuneStart(s[at]) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[at:])
	last, _ := utf8.DecodeLastRuneInString(s[:at])
	if unicode.Is(unicode.M, r) || isVariation(r) || r == zeroWidthJoiner || last == zeroWidthJoiner || last == signReturn {
		return false
	}
	open := strings.LastIndex(s[max(0, at-16):at], markOpen)
	return open < 0 || max(0, at-16)+open+MarkAt(s[max(0, at-16)+open:]) <= at
}

func back(s string, from, n int) int {
	at := from
	for range n {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	for at > 0 && !cuttable(s, at) {
		at--
	}
	return at
}

func forward(s string, from, n int) int {
	at := from
	for range n {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	for at < len(s) && !cuttable(s, at) {
		at++
	}
	return at
}
