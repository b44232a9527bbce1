package card

import (
	"encoding/json"

	"github.com/fermata-hitl/fermata/frontends/words"
)

// pairs are the names under which agents send an edit: what it takes away, and
// what it puts there. Read only.
var pairs = [][2]string{
	{"old_string", "new_string"},
	{"oldString", "newString"},
	{"old_str", "new_str"},
	{"oldText", "newText"},
	{"old_text", "new_text"},
}

// lists are the names of arguments that hold several such edits, and patches of
// those that may hold a patch. Read only.
var (
	lists   = []string{"edits"}
	patches = []string{"patch", "diff", "unified_diff", "patchText", "patch_text", "input"}
)

// edits are what the arguments of a call change in a file.
type edits struct {
	sections []Section
	covered  map[string]bool // the arguments that they show
	tally    tally
	unknown  bool // one was too large to be compared
}

// stats is what all edits add and take away, "" when it is not known.
func (e *edits) stats() string {
	if e.unknown {
		return ""
	}
	return e.tally.String()
}

// maxListed bounds the arguments of which a list counts the edits.
const maxListed = 16 << 10

// Stats tells what the edits among arguments, canonical JSON, add and take away, as
// in "+12 −3", for lists. It is "" when there are none, and for arguments of more
// than 16 KiB, which a list must not wait for. It compares the texts, so a list keeps
// what it says.
func Stats(args []byte) string {
	if len(args) > maxListed {
		return ""
	}
	e := editsOf(args, words.Words{})
	return e.stats()
}

// editsOf finds the edits among arguments.
func editsOf(args []byte, w words.Words) edits {
	e := edits{covered: map[string]bool{}}
	members := map[string]json.RawMessage{}
	if json.Unmarshal(args, &members) != nil {
		return e
	}
	if o, n, names, ok := pairIn(members); ok {
		e.show(names[1], w, replacement{o, n, ""})
		e.covered[names[0]], e.covered[names[1]] = true, true
	}
	for _, name := range lists {
		if all := editList(members[name]); len(all) > 0 {
			e.show(name, w, all...)
			e.covered[name] = true
		}
	}
	for _, name := range patches {
		text, isJSON := plainText(members[name])
		if isJSON || len(text) > maxDiffBytes {
			continue
		}
		if lines := patchLines(Escape(text)); lines != nil {
			e.add(Section{Name: name, Kind: SectionDiff, Lines: lines})
			e.covered[name] = true
		}
	}
	return e
}

// replacement is one edit: a text that takes the place of another. File is set
// when it names its own.
type replacement struct{ old, new, file string }

// pairIn finds the one edit that stands among an object's members.
func pairIn(members map[string]json.RawMessage) (o, n string, names [2]string, ok bool) {
	for _, p := range pairs {
		before, beforeJSON := plainText(members[p[0]])
		now, nowJSON := plainText(members[p[1]])
		if !beforeJSON && !nowJSON {
			return before, now, p, true
		}
	}
	return "", "", [2]string{}, false
}

// editList reads a list of edits. One that is none makes it no list of edits.
func editList(raw json.RawMessage) []replacement {
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var all []replacement
	for _, members := range list {
		o, n, _, ok := pairIn(members)
		if !ok {
			return nil
		}
		r := replacement{old: o, new: n}
		for _, name := range []string{"path", "file_path", "filePath"} {
			if text, isJSON := plainText(members[name]); !isJSON {
				r.file = text
			}
		}
		all = append(all, r)
	}
	return all
}

// show adds a section for edits that stand under one name.
func (e *edits) show(name string, w words.Words, list ...replacement) {
	s := Section{Name: name, Kind: SectionDiff}
	for i, r := range list {
		if len(list) > 1 || r.file != "" {
			s.Lines = append(s.Lines, DiffLine{Sign: '@', Text: heading(i+1, len(list), r.file, w)})
		}
		o, n := escapeBoth(r.old, r.new, 0)
		switch {
		case !withinBounds(o, n):
			e.unknown = true
			s.Lines, s.Note = nil, w.Say(words.TooLargeToCompare)
			e.sections = append(e.sections, s)
			return
		case o == n:
			s.Lines = append(s.Lines, DiffLine{Sign: '@', Text: w.Say(words.SameTexts)})
		}
		s.Lines = append(s.Lines, diff(o, n, w)...)
	}
	e.add(s)
}

func heading(i, n int, file string, w words.Words) string {
	text := w.Say(words.EditOf, Count(i), Count(n))
	if file != "" {
		text = w.Because(text, Line(file))
	}
	return text
}

func (e *edits) add(s Section) {
	t := count(s.Lines)
	s.Stats = t.String()
	e.tally.added += t.added
	e.tally.removed += t.removed
	e.sections = append(e.sections, s)
}
