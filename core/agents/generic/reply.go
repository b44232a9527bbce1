package generic

import (
	"encoding/json"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// Reply implements [agents.Adapter].
func (a Adapter) Reply(call events.HookCall, v core.Verdict) events.HookLine {
	if !v.Allow {
		return a.Deny(call, v.Code, agents.Reason(v))
	}
	reply := agents.Object{
		{Name: "decision", Value: agents.Quote("allow")},
		{Name: "code", Value: agents.Quote(string(events.CodeChecked))},
		{Name: "operation", Value: agents.Quote(string(v.Operation))},
	}
	key := "args"
	if call.Event == string(events.UserPromptSubmit) {
		key = "text"
	}
	reply = append(reply, agents.Field{Name: key, Value: v.Args}) // byte for byte what was checked
	if v.Reminder != "" {
		reply = append(reply, agents.Field{Name: "system_reminder", Value: agents.Quote(v.Reminder)})
	}
	return events.HookLine{Stdout: string(reply.Encode())}
}

// Deny implements [agents.Denier]: a refused input comes back as it was written,
// with what kind of input it is.
func (Adapter) Deny(call events.HookCall, code events.Code, reason string) events.HookLine {
	line := agents.Deny(Agent, call.Event, code, reason)
	if call.Event != string(events.UserPromptSubmit) {
		return line
	}
	kind, written, ok := refused(call)
	if !ok {
		return line
	}
	line.Stdout = string(agents.Object{
		{Name: "decision", Value: agents.Quote("deny")},
		{Name: "code", Value: agents.Quote(string(code))},
		{Name: "refused", Value: agents.Quote(events.InputWord(kind))},
		{Name: "reason", Value: agents.Quote(reason)},
		{Name: "text", Value: written},
	}.Encode())
	return line
}

// refused reads the input of a call that may be wrong in everything else.
func refused(call events.HookCall) (kind events.Kind, written json.RawMessage, ok bool) {
	o, err := agents.ReadObject([]byte(call.Stdin))
	if err != nil {
		return "", nil, false
	}
	kind, written, err = input(o)
	return kind, written, err == nil
}
