package agents

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fermata-hitl/fermata/core"
)

// An agent's tool names its arguments as it likes; hooks look for the name that
// goes with the tool's kind. So the kind's name is added beside the agent's own
// for the check, and taken away again from what the agent gets back.

// kindNames tells for a kind the argument that hooks look for, and what agents
// call it.
var kindNames = map[string]struct {
	name string
	own  []string
}{
	"shell":            {"command", []string{"cmd"}},
	"filesystem.read":  {"path", []string{"file_path", "absolute_path", "dir_path", "notebook_path"}},
	"filesystem.write": {"path", []string{"file_path", "absolute_path", "notebook_path"}},
}

// alias is one argument that stands there twice: under the agent's own name,
// and added under the kind's.
type alias struct {
	own, added string
	value      json.RawMessage
}

func findAlias(args Object, kind string) (alias, bool) {
	k, ok := kindNames[kind]
	if !ok {
		return alias{}, false
	}
	if _, there := args.Get(k.name); there {
		return alias{}, false
	}
	for _, own := range k.own {
		if v, there := args.Get(own); there {
			return alias{own, k.name, v}, true
		}
	}
	return alias{}, false
}

// AddKindName adds the kind's argument name when only the agent's own is there.
// What is no object, or no object that can be read, is returned as it is. It is
// an error if several of the names are there with different values: a rule would
// look at one of them, and the agent's tool might take the other.
func AddKindName(args json.RawMessage, kind string) (json.RawMessage, error) {
	o, err := ReadObject(args)
	if err != nil {
		return args, nil //nolint:nilerr // the core decides about arguments that nobody can read
	}
	if err := oneMeaning(o, kind); err != nil {
		return nil, err
	}
	a, ok := findAlias(o, kind)
	if !ok {
		return args, nil
	}
	return append(o, Field{a.added, a.value}).Encode(), nil
}

// oneMeaning checks that all names of the kind's argument say the same.
func oneMeaning(args Object, kind string) error {
	k := kindNames[kind]
	var first string
	var value json.RawMessage
	for _, name := range append([]string{k.name}, k.own...) {
		v, there := args.Get(name)
		switch {
		case !there:
		case first == "":
			first, value = name, v
		case !same(v, value):
			return fmt.Errorf("%q and %q are the same argument and have different values", first, name)
		}
	}
	return nil
}

// OwnNames turns checked arguments back into the agent's: the name that
// [AddKindName] added to original is removed, and what hooks wrote under it
// goes to the agent's own name. It is an error if they wrote two different
// values under the two names, since only one of them could run.
func OwnNames(checked, original json.RawMessage, kind string) (json.RawMessage, error) {
	o, err := ReadObject(original)
	if err != nil {
		return checked, nil //nolint:nilerr // AddKindName left it alone, so there is nothing to undo
	}
	a, ok := findAlias(o, kind)
	if !ok {
		return checked, nil
	}
	c, err := ReadObject(checked)
	if err != nil {
		return nil, fmt.Errorf("the checked arguments are no object: %w", err)
	}
	value, err := a.choose(c)
	if err != nil {
		return nil, err
	}
	out := make(Object, 0, len(c))
	for _, f := range c {
		switch f.Name {
		case a.added:
		case a.own:
			out = append(out, Field{a.own, value})
		default:
			out = append(out, f)
		}
	}
	return out.Encode(), nil
}

// choose returns the value that the agent's own name gets.
func (a alias) choose(checked Object) (json.RawMessage, error) {
	own, hasOwn := checked.Get(a.own)
	added, hasAdded := checked.Get(a.added)
	switch {
	case !hasOwn:
		return nil, fmt.Errorf("the checked arguments lost %q", a.own)
	case !hasAdded || same(own, added) || same(added, a.value):
		return own, nil
	case same(own, a.value):
		return added, nil
	}
	return nil, fmt.Errorf("hooks wrote different values under %q and %q, which are the same argument", a.own, a.added)
}

// same compares two JSON values by their canonical form; what has none is like
// nothing else.
func same(a, b json.RawMessage) bool {
	x, err := core.Canonical(a)
	if err != nil {
		return false
	}
	y, err := core.Canonical(b)
	return err == nil && bytes.Equal(x, y)
}
