// Package gemini translates the hooks of Gemini CLI.
//
// Its BeforeTool hook reads {session_id, cwd, hook_event_name, tool_name,
// tool_input, …}; there is no call id. Silence with exit 0 is "no objection";
// hookSpecificOutput.tool_input replaces the arguments and must be complete;
// exit 2 with text on stderr is a deny in every version, and the JSON on stdout
// says the same to versions that read it. Anything else lets the tool run, so
// nothing else is ever sent.
//
// BeforeAgent (a prompt about to be submitted) is gated by Gemini but not
// supported here yet: it is denied with words that say so.
package gemini

import (
	"errors"
	"fmt"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// Agent is this adapter's name.
const Agent events.Agent = "gemini"

const beforeTool = "BeforeTool"

// Adapter translates; its zero value is ready.
type Adapter struct{}

// Translate implements [agents.Adapter]. Keys that it does not know are left
// alone: the agent's payload grows with its versions.
func (Adapter) Translate(call events.HookCall) (core.Proposal, error) {
	if call.Event != beforeTool {
		return core.Proposal{}, fmt.Errorf("%s of gemini is not supported yet; take it out of the hooks in its settings.json", call.Event)
	}
	in, err := read(call)
	if err != nil {
		return core.Proposal{}, fmt.Errorf("gemini's payload: %w", err)
	}
	args, err := agents.AddKindName(in.args, in.kind)
	if err != nil {
		return core.Proposal{}, fmt.Errorf("gemini's tool_input: %w", err)
	}
	return core.Proposal{
		Agent: Agent, Native: in.session, Cwd: in.cwd, Path: "main",
		Kind: events.KindToolCall, Event: events.BeforeToolCall,
		Tool: events.Tool{Name: in.tool, Kind: in.kind},
		Args: args,
	}, nil
}

// Reply implements [agents.Adapter].
func (Adapter) Reply(call events.HookCall, v core.Verdict) events.HookLine {
	switch {
	case !v.Allow:
		return agents.Refuse(call, v)
	case !v.Changed:
		return events.HookLine{}
	}
	args, err := ownArgs(call, v.Args)
	if err != nil {
		code := events.CodeChangedAfterCheck
		return agents.Deny(Agent, call.Event, code, agents.NotChecked(code, err.Error()))
	}
	return events.HookLine{
		Stdout: `{"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":` + string(args) + `}}`,
	}
}

// ownArgs gives changed arguments the names that Gemini's tool knows.
func ownArgs(call events.HookCall, checked []byte) ([]byte, error) {
	in, err := read(call)
	if err != nil {
		return nil, err
	}
	args, err := agents.OwnNames(checked, in.args, in.kind)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 || args[0] != '{' {
		return nil, errors.New("gemini's tools take an object, and the checked arguments are none")
	}
	return args, nil
}

type input struct {
	session, cwd, tool, kind string
	args                     []byte
}

func read(call events.HookCall) (input, error) {
	o, err := agents.ReadObject([]byte(call.Stdin))
	if err != nil {
		return input{}, err
	}
	var in input
	if in.session, err = o.Need("session_id"); err != nil {
		return input{}, err
	}
	if in.tool, err = o.Need("tool_name"); err != nil {
		return input{}, err
	}
	if in.cwd, err = o.Text("cwd"); err != nil {
		return input{}, err
	}
	event, err := o.Need("hook_event_name")
	if err != nil {
		return input{}, err
	}
	if event != call.Event {
		return input{}, fmt.Errorf("it is about %q, but agent-hook was started for %s", event, call.Event)
	}
	args, there := o.Get("tool_input")
	if !there {
		return input{}, errors.New(`"tool_input" is missing`)
	}
	mcp, _ := o.Get("mcp_context")
	in.args, in.kind = args, kindOf(in.tool, len(mcp) > 0 && string(mcp) != "null")
	return in, nil
}

// kinds of Gemini's own tools; everything else is "other".
var kinds = map[string]string{
	"run_shell_command":     "shell",
	"read_file":             "filesystem.read",
	"read_many_files":       "filesystem.read",
	"list_directory":        "filesystem.read",
	"write_file":            "filesystem.write",
	"replace":               "filesystem.write",
	"glob":                  "search",
	"grep_search":           "search",
	"search_file_content":   "search",
	"google_web_search":     "web_search",
	"web_fetch":             "web_fetch",
	"ask_user":              "ask_user",
	"write_todos":           "todo",
	"save_memory":           "context",
	"activate_skill":        "skill",
	"codebase_investigator": "sub_agent",
	"cli_help":              "sub_agent",
	"delegate_to_agent":     "sub_agent",
}

// kindOf tells a tool's kind. A tool of an MCP server is mcp whatever it calls
// itself: a server must not get the kind of a built-in by taking its name.
func kindOf(tool string, mcp bool) string {
	if mcp {
		return "mcp"
	}
	if k, ok := kinds[tool]; ok {
		return k
	}
	return "other"
}
