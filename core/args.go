package core

import (
	"bytes"
	"fmt"
)

// Merge lays an override over arguments, member by member at the top level: a
// member of the override replaces the one of that name or is added. The result
// is canonical. Both must be objects; the error says which is not, and where.
func Merge(args, override []byte) ([]byte, error) {
	old, err := fields(args)
	if err != nil {
		return nil, fmt.Errorf("arguments to change: %w", err)
	}
	over, err := fields(override)
	if err != nil {
		return nil, fmt.Errorf("args_override: %w", err)
	}
	out := append(make([]byte, 0, len(args)+len(override)+1), '{')
	for _, p := range paired(old, over) {
		text := p.new.text
		if text == nil {
			text = p.old.text
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, text...)
	}
	return append(out, '}'), nil
}

// ChangedNames lists the top-level members that differ between two canonical
// texts, added and removed ones included, in canonical order; nil when nothing
// differs. Texts that are not both objects differ as a whole, which is the one
// name "".
func ChangedNames(old, new []byte) []string {
	if bytes.Equal(old, new) {
		return nil
	}
	before, err1 := fields(old)
	after, err2 := fields(new)
	if err1 != nil || err2 != nil {
		return []string{""}
	}
	var names []string
	for _, p := range paired(before, after) {
		if !bytes.Equal(p.old.value, p.new.value) {
			names = append(names, string(p.name))
		}
	}
	return names
}

// pair is one name with its field on either side; a side that lacks it is
// zero.
type pair struct {
	name     []byte
	old, new field
}

// paired walks two lists in canonical order side by side.
func paired(old, new []field) []pair {
	pairs := make([]pair, 0, len(old)+len(new))
	for len(old) > 0 || len(new) > 0 {
		order := 0
		switch {
		case len(new) == 0:
			order = -1
		case len(old) == 0:
			order = 1
		default:
			order = compareUTF16(old[0].name, new[0].name)
		}
		var p pair
		if order <= 0 {
			p.name, p.old, old = old[0].name, old[0], old[1:]
		}
		if order >= 0 {
			p.name, p.new, new = new[0].name, new[0], new[1:]
		}
		pairs = append(pairs, p)
	}
	return pairs
}
