// Package generic translates the calls of agents that have no adapter of their
// own: one plain JSON object in, one out. It is also what a program writes to
// that wants its own operations checked.
//
// stdin, all keys exact and no other key allowed (? = may be absent). A tool
// call:
//
//	{"session_id": "…", "agent": "generic", "profile"?: "…", "cwd": "/…",
//	 "turn_id"?: "…", "path"?: "main > reviewer#1", "parent_session_id"?: "…",
//	 "traceparent"?: "00-…",
//	 "tool": {"name": "…", "kind": "shell", "call_id"?: "…", "args": …}}
//
// An input has, in place of tool,
//
//	"input": {"text": "…", "kind"?: "prompt" | "injection" | "retry_note"}
//
// stdout: an allow is exit 0 and
//
//	{"decision": "allow", "code": "checked", "operation": "…", "args": …}
//	{"decision": "allow", "code": "checked", "operation": "…", "text": "…", "system_reminder"?: "…"}
//
// where args (text) is what may run, whole and exactly; a deny is exit 2 and
//
//	{"decision": "deny", "code": "…", "reason": "…"}
//	{"decision": "deny", "code": "…", "refused": "prompt", "reason": "…", "text": "…"}
//
// Observed events are in observe.go.
package generic

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// Agent is this adapter's name.
const Agent events.Agent = "generic"

// Adapter translates; its zero value is ready.
type Adapter struct{}

// base are the keys that every event may have.
var base = []string{"session_id", "agent", "profile", "cwd", "turn_id", "path", "parent_session_id", "traceparent"}

// Translate implements [agents.Adapter].
func (Adapter) Translate(call events.HookCall) (core.Proposal, error) {
	p, err := translate(call)
	if err != nil {
		return core.Proposal{}, fmt.Errorf("stdin: %w", err)
	}
	return p, nil
}

func translate(call events.HookCall) (core.Proposal, error) {
	key, prompt := "tool", call.Event == string(events.UserPromptSubmit)
	if prompt {
		key = "input"
	}
	o, who, err := read(call, key)
	if err != nil {
		return core.Proposal{}, err
	}
	p := core.Proposal{
		Agent: who.Agent, Native: who.Native, Parent: who.Parent, Cwd: who.Cwd, Profile: who.Profile,
		Turn: who.Turn, Path: who.Path, Traceparent: who.Traceparent, Kind: events.KindToolCall,
	}
	if prompt {
		p.Kind, p.Args, err = input(o)
	} else {
		p.Tool, p.Args, err = tool(o)
	}
	return p, err
}

// read reads what every event has. It is returned as an observation, of which a
// gated call uses the same fields. Own are the keys of this event alone.
func read(call events.HookCall, own ...string) (agents.Object, core.Observation, error) {
	o, err := agents.ReadObject([]byte(call.Stdin))
	if err != nil {
		return nil, core.Observation{}, err
	}
	err = o.Only(append(slices.Clone(base), own...)...)
	agent := text(&err, o.Need, "agent")
	w := core.Observation{
		Agent: events.Agent(agent), Native: text(&err, o.Need, "session_id"), Cwd: text(&err, o.Need, "cwd"),
		Profile: text(&err, o.Text, "profile"), Turn: text(&err, o.Text, "turn_id"), Path: text(&err, o.Text, "path"),
		Parent: text(&err, o.Text, "parent_session_id"), Traceparent: text(&err, o.Text, "traceparent"),
	}
	w.Path = cmp.Or(w.Path, events.MainPath)
	switch {
	case err != nil:
	case !slices.Contains(events.Agents(), w.Agent):
		err = errors.New(`"agent" must be one of the agents that Fermata knows; for others it is "generic"`)
	case !filepath.IsAbs(w.Cwd):
		err = errors.New(`"cwd" must be an absolute path`)
	case w.Traceparent != "" && !agents.IsTraceparent(w.Traceparent):
		err = errors.New(`"traceparent" must look like 00-<32 hex>-<16 hex>-<2 hex>`)
	}
	return o, w, err
}

func tool(o agents.Object) (events.Tool, []byte, error) {
	raw, _ := o.Get("tool")
	t, err := agents.ReadObject(raw)
	if err != nil {
		return events.Tool{}, nil, fmt.Errorf(`"tool": %w`, err)
	}
	err = t.Only("name", "kind", "call_id", "args")
	tool := events.Tool{
		Name:   text(&err, t.Need, "name"),
		Kind:   text(&err, t.Need, "kind"),
		CallID: text(&err, t.Text, "call_id"),
	}
	args, there := t.Get("args")
	switch {
	case err != nil:
	case !slices.Contains(events.ToolKinds(), tool.Kind):
		err = errors.New(`"kind" must be one of ` + strings.Join(events.ToolKinds(), ", "))
	case !there:
		err = errors.New(`"args" is missing`)
	}
	if err != nil {
		return tool, nil, fmt.Errorf(`"tool": %w`, err)
	}
	return tool, args, nil
}

// input reads an input: its kind, and its text as the JSON string that it was
// written as.
func input(o agents.Object) (events.Kind, []byte, error) {
	raw, _ := o.Get("input")
	in, err := agents.ReadObject(raw)
	if err != nil {
		return "", nil, fmt.Errorf(`"input": %w`, err)
	}
	err = in.Only("text", "kind")
	kind := events.KindOfInput(cmp.Or(text(&err, in.Text, "kind"), "prompt"))
	written, _ := in.Get("text")
	switch {
	case err != nil:
	case kind == "":
		err = errors.New(`"kind" must be prompt, injection or retry_note`)
	case len(written) == 0 || written[0] != '"':
		err = errors.New(`"text" must be a string`)
	}
	if err != nil {
		return "", nil, fmt.Errorf(`"input": %w`, err)
	}
	return kind, written, nil
}

// text reads a string unless something went wrong before.
func text(err *error, read func(string) (string, error), name string) string {
	if *err != nil {
		return ""
	}
	var s string
	s, *err = read(name)
	return s
}
