// Package generic translates the calls of agents that have no adapter of their
// own: one plain JSON object in, one out. It is also what a program writes to
// that wants its own operations checked.
//
// stdin, all keys exact and no other key allowed (? = may be absent):
//
//	{"session_id": "…", "agent": "generic", "profile"?: "…", "cwd": "/…",
//	 "turn_id"?: "…", "path"?: "main > reviewer#1", "traceparent"?: "00-…",
//	 "tool": {"name": "…", "kind": "shell", "call_id"?: "…", "args": …}}
//
// stdout: an allow is exit 0 and
//
//	{"decision": "allow", "code": "checked", "args": …}
//
// where args is what may run, whole and exactly; a deny is exit 2 and
//
//	{"decision": "deny", "code": "…", "reason": "…"}
package generic

import (
	"bytes"
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

// Translate implements [agents.Adapter].
func (Adapter) Translate(call events.HookCall) (core.Proposal, error) {
	if call.Event != string(events.BeforeToolCall) {
		return core.Proposal{}, fmt.Errorf("%s of a generic agent is not supported yet", call.Event)
	}
	o, err := agents.ReadObject([]byte(call.Stdin))
	if err != nil {
		return core.Proposal{}, fmt.Errorf("stdin: %w", err)
	}
	p, err := translate(o)
	if err != nil {
		return core.Proposal{}, fmt.Errorf("stdin: %w", err)
	}
	return p, nil
}

func translate(o agents.Object) (core.Proposal, error) {
	err := o.Only("session_id", "agent", "profile", "cwd", "turn_id", "path", "traceparent", "tool")
	p := core.Proposal{Kind: events.KindToolCall, Event: events.BeforeToolCall}
	agent := text(&err, o.Need, "agent")
	p.Native = text(&err, o.Need, "session_id")
	p.Cwd = text(&err, o.Need, "cwd")
	p.Profile = text(&err, o.Text, "profile")
	p.Turn = text(&err, o.Text, "turn_id")
	p.Path = text(&err, o.Text, "path")
	p.Traceparent = text(&err, o.Text, "traceparent")
	if err != nil {
		return p, err
	}
	if p.Agent = events.Agent(agent); !slices.Contains(events.Agents(), p.Agent) {
		return p, errors.New(`"agent" must be one of the agents that Fermata knows; for others it is "generic"`)
	}
	if !filepath.IsAbs(p.Cwd) {
		return p, errors.New(`"cwd" must be an absolute path`)
	}
	if p.Traceparent != "" && !traceparent(p.Traceparent) {
		return p, errors.New(`"traceparent" must look like 00-<32 hex>-<16 hex>-<2 hex>`)
	}
	if p.Path == "" {
		p.Path = "main"
	}
	p.Tool, p.Args, err = tool(o)
	return p, err
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

// text reads a string unless something went wrong before.
func text(err *error, read func(string) (string, error), name string) string {
	if *err != nil {
		return ""
	}
	var s string
	s, *err = read(name)
	return s
}

// traceparent checks the form of a W3C trace parent, version 00.
func traceparent(s string) bool {
	f := strings.Split(s, "-")
	if len(f) != 4 || f[0] != "00" || len(f[1]) != 32 || len(f[2]) != 16 || len(f[3]) != 2 {
		return false
	}
	hex := strings.Trim(f[1]+f[2]+f[3], "0123456789abcdef") == ""
	return hex && strings.Trim(f[1], "0") != "" && strings.Trim(f[2], "0") != ""
}

// Reply implements [agents.Adapter].
func (Adapter) Reply(call events.HookCall, v core.Verdict) events.HookLine {
	if !v.Allow {
		return agents.Refuse(call, v)
	}
	var b bytes.Buffer
	b.WriteString(`{"decision":"allow","code":"` + string(events.CodeChecked) + `","args":`)
	b.Write(v.Args) // byte for byte what was checked
	b.WriteByte('}')
	return events.HookLine{Stdout: b.String()}
}
