package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/fermata-hitl/fermata/events"
)

// match is a hook's filter: all of its conditions must hold. The zero match
// lets everything pass.
type match struct {
	profile  string
	profiles []string
	toolKind string
	toolName string
	agent    events.Agent
	cwd      string // a glob
	args     []condition
}

// condition is what one argument must be. An argument that is missing or null
// never matches, even with nothing else asked of it.
type condition struct {
	name     string
	equals   *string
	contains string
	pattern  *pattern
}

// matches decides. The error is returned only when the answer hangs on it: a
// condition that certainly does not hold settles the matter first.
func (m match) matches(sub Subject, args *arguments) (bool, error) {
	if !m.concerns(sub) {
		return false, nil
	}
	return m.matchesArgs(args)
}

// concerns decides all conditions but those on arguments.
func (m match) concerns(sub Subject) bool { return m.mismatch(sub) == "" }

// mismatch names the first condition that does not hold, but for those on
// arguments; "" when all of them hold.
func (m match) mismatch(sub Subject) string {
	switch {
	case m.profile != "" && m.profile != sub.Profile:
		return "profile"
	case len(m.profiles) > 0 && !slices.Contains(m.profiles, sub.Profile):
		return "profiles"
	case m.toolKind != "" && m.toolKind != sub.Tool.Kind:
		return "tool_kind"
	case m.toolName != "" && m.toolName != sub.Tool.Name:
		return "tool_name"
	case m.agent != "" && m.agent != sub.Agent:
		return "agent"
	case m.cwd != "" && !doublestar.MatchUnvalidated(m.cwd, sub.Cwd):
		return "cwd"
	}
	return ""
}

func (m match) matchesArgs(args *arguments) (bool, error) {
	c, _, err := m.argsMismatch(args)
	return c == nil && err == nil, err
}

// argsMismatch finds the first condition on arguments that does not hold, nil
// when all of them hold; key is what of it. It asks the cheap conditions of every
// argument first, then the patterns.
func (m match) argsMismatch(args *arguments) (c *condition, key string, _ error) {
	for i := range m.args {
		c := &m.args[i]
		text, ok, err := args.text(c.name)
		switch {
		case err != nil:
			return nil, "", err
		case !ok:
			return c, "", nil
		case c.equals != nil && text != *c.equals:
			return c, "equals", nil
		case !strings.Contains(text, c.contains):
			return c, "contains", nil
		}
	}
	var undecided error
	for i := range m.args {
		c := &m.args[i]
		if c.pattern == nil {
			continue
		}
		text, _, _ := args.text(c.name)
		ok, err := c.pattern.search(text)
		if err != nil {
			undecided = errors.Join(undecided, fmt.Errorf("match.args.%s.regex: %w", clip(c.name), err))
		} else if !ok {
			return c, "regex", nil
		}
	}
	return nil, "", undecided
}

// Mismatch names the first thing that keeps a hook from a call, by its path in
// the hook's entry: enabled, match.tool_kind, match.args.command.regex, …. It is
// "" when the hook would run, also when its match cannot be decided and its run
// would fail.
func (h *Hook) Mismatch(sub Subject) string {
	switch {
	case !h.Enabled:
		return "enabled"
	case h.Event != sub.Event:
		return "event"
	}
	if key := h.match.mismatch(sub); key != "" {
		return "match." + key
	}
	c, key, _ := h.match.argsMismatch(&arguments{raw: sub.Args})
	switch {
	case c == nil:
		return ""
	case key == "":
		return "match.args." + c.name
	}
	return "match.args." + c.name + "." + key
}

// patterned reports whether a decision can fail, so that a run must repeat it.
func (m match) patterned() bool {
	return slices.ContainsFunc(m.args, func(c condition) bool { return c.pattern != nil })
}

// anything reports a filter that asks for nothing.
func (m match) anything() bool {
	return m.profile == "" && len(m.profiles) == 0 && m.toolKind == "" && m.toolName == "" && m.agent == "" && m.cwd == "" && len(m.args) == 0
}

// broken reports whether a pattern did not compile.
func (m match) broken() bool {
	return slices.ContainsFunc(m.args, func(c condition) bool { return c.pattern != nil && c.pattern.err != nil })
}

// arguments reads the top level of the arguments once, when a condition first
// asks.
type arguments struct {
	raw    []byte
	read   bool
	fields map[string]json.RawMessage
	err    error
}

// text is an argument as conditions compare it. ok is false when it is missing
// or null, or when the arguments are no object.
func (a *arguments) text(name string) (text string, ok bool, err error) {
	if !a.read {
		a.read = true
		if isObject(a.raw) {
			a.err = json.Unmarshal(a.raw, &a.fields)
		}
	}
	if a.err != nil {
		return "", false, fmt.Errorf("the arguments are not readable: %w", a.err)
	}
	raw, ok := a.fields[name]
	if !ok || string(raw) == "null" {
		return "", false, nil
	}
	return pythonText(raw), true, nil
}

func isObject(raw []byte) bool {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// pythonText is a JSON value as Python's str() shows it, except that lists and
// objects are their JSON text.
func pythonText(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // the whole was read without error
		return s
	case 't':
		return "True"
	case 'f':
		return "False"
	case '{', '[':
		return string(raw)
	}
	return pythonNumber(string(raw))
}

// pythonNumber writes an integer token with its digits and any other number as
// the shortest text that reads back to the same float, with an exponent below
// 1e-4 and from 1e16 on.
func pythonNumber(token string) string {
	if !strings.ContainsAny(token, ".eE") {
		if token == "-0" {
			return "0"
		}
		return token
	}
	f, _ := strconv.ParseFloat(token, 64) // out of range gives ±Inf
	short := strconv.FormatFloat(f, 'e', -1, 64)
	mantissa, exponent, isFinite := strings.Cut(short, "e")
	if !isFinite {
		return strings.ToLower(strings.TrimPrefix(short, "+")) // inf, -inf
	}
	if n, _ := strconv.Atoi(exponent); n < -4 || n >= 16 {
		return mantissa + "e" + exponent
	}
	plain := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(plain, ".") {
		plain += ".0"
	}
	return plain
}
