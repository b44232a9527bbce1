// Package gemini translates the hooks of Gemini CLI.
//
// Its hooks read {session_id, cwd, hook_event_name, …}. BeforeTool adds tool_name
// and tool_input; there is no call id. Silence with exit 0 is "no objection";
// hookSpecificOutput.tool_input replaces the arguments and must be complete;
// exit 2 with text on stderr is a deny in every version, and the JSON on stdout
// says the same to versions that read it. Anything else lets the tool run, so
// nothing else is ever sent.
//
// BeforeAgent adds prompt, which is about to be submitted. Gemini throws a refused
// one away, so the deny's reason holds it, for the person who wrote it.
//
// Of the observed ones a tool's end (AfterTool) tells what ran, and what hooks
// say of it goes back as hookSpecificOutput.additionalContext.
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

// The events that are more than a word.
const (
	beforeTool  = "BeforeTool"
	beforeAgent = "BeforeAgent"
	afterTool   = "AfterTool"
)

// Adapter translates; its zero value is ready.
type Adapter struct{}

// Translate implements [agents.Adapter]. Keys that it does not know are left
// alone: the agent's payload grows with its versions.
func (Adapter) Translate(call events.HookCall) (core.Proposal, error) {
	in, err := read(call)
	if err != nil {
		return core.Proposal{}, fmt.Errorf("gemini's payload: %w", err)
	}
	p := core.Proposal{Agent: Agent, Native: in.session, Cwd: in.cwd, Path: events.MainPath}
	if call.Event == beforeAgent {
		p.Kind, p.Args = events.KindUserPrompt, in.args
		return p, nil
	}
	p.Kind, p.Tool = events.KindToolCall, events.Tool{Name: in.tool, Kind: in.kind}
	if p.Args, err = agents.AddKindName(in.args, in.kind); err != nil {
		return core.Proposal{}, fmt.Errorf("gemini's tool_input: %w", err)
	}
	return p, nil
}

// Reply implements [agents.Adapter].
func (a Adapter) Reply(call events.HookCall, v core.Verdict) events.HookLine {
	switch {
	case !v.Allow:
		return a.Deny(call, v.Code, agents.Reason(v))
	case call.Event == beforeAgent:
		return a.submit(call, v)
	case !v.Changed:
		return events.HookLine{}
	}
	args, err := ownArgs(call, v.Args)
	if err != nil {
		code := events.CodeChangedAfterCheck
		return agents.Deny(Agent, call.Event, code, agents.NotChecked(code, err.Error()))
	}
	return say(beforeTool, "tool_input", args)
}

// submit lets a prompt on. Gemini sends what its user wrote: a prompt that was
// changed cannot be sent in its place.
func (a Adapter) submit(call events.HookCall, v core.Verdict) events.HookLine {
	if v.Changed {
		code := events.CodeChangedAfterCheck
		return a.Deny(call, code, agents.NotChecked(code, "gemini cannot submit a prompt that was changed"))
	}
	return additionalContext(beforeAgent, v.Reminder)
}

// Deny implements [agents.Denier].
func (Adapter) Deny(call events.HookCall, code events.Code, reason string) events.HookLine {
	if call.Event == beforeAgent {
		if o, err := agents.ReadObject([]byte(call.Stdin)); err == nil {
			if prompt, err := o.Need("prompt"); err == nil {
				reason += "\n\nThe message that was not sent:\n" + prompt
			}
		}
	}
	return agents.Deny(Agent, call.Event, code, reason)
}

// say is a line with one key for an event.
func say(event, key string, value []byte) events.HookLine {
	return events.HookLine{
		Stdout: `{"hookSpecificOutput":{"hookEventName":"` + event + `","` + key + `":` + string(value) + `}}`,
	}
}

// additionalContext is what the model is to read besides, silence for nothing.
func additionalContext(event, text string) events.HookLine {
	if text == "" {
		return events.HookLine{}
	}
	return say(event, "additionalContext", agents.Quote(text))
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

// input is what a call is about: of a tool its name, kind and arguments, of a
// prompt its text as a JSON string.
type input struct {
	session, cwd, tool, kind string
	args                     []byte
}

func read(call events.HookCall) (input, error) {
	o, in, err := readBase(call)
	switch {
	case err != nil:
		return input{}, err
	case call.Event == beforeAgent:
		if _, err := o.Text("prompt"); err != nil {
			return input{}, err
		}
		in.args, err = need(o, "prompt")
		return in, err
	}
	return in, in.readTool(o)
}

// readBase reads what every event has.
func readBase(call events.HookCall) (agents.Object, input, error) {
	o, err := agents.ReadObject([]byte(call.Stdin))
	if err != nil {
		return nil, input{}, err
	}
	var in input
	if in.session, err = o.Need("session_id"); err != nil {
		return nil, input{}, err
	}
	if in.cwd, err = o.Text("cwd"); err != nil {
		return nil, input{}, err
	}
	event, err := o.Need("hook_event_name")
	if err != nil {
		return nil, input{}, err
	}
	if event != call.Event {
		return nil, input{}, fmt.Errorf("it is about %q, but agent-hook was started for %s", event, call.Event)
	}
	return o, in, nil
}

func (in *input) readTool(o agents.Object) (err error) {
	if in.tool, err = o.Need("tool_name"); err != nil {
		return err
	}
	mcp, _ := o.Get("mcp_context")
	in.kind = kindOf(in.tool, len(mcp) > 0 && string(mcp) != "null")
	in.args, err = need(o, "tool_input")
	return err
}

func need(o agents.Object, name string) ([]byte, error) {
	raw, there := o.Get(name)
	if !there || string(raw) == "null" && name == "prompt" {
		return nil, fmt.Errorf("%q is missing", name)
	}
	return raw, nil
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
