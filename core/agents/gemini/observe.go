package gemini

import (
	"errors"
	"fmt"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// Observe implements [agents.Adapter].
func (Adapter) Observe(call events.HookCall) (core.Observation, error) {
	w, err := observe(call)
	if err != nil {
		return core.Observation{}, fmt.Errorf("gemini's payload: %w", err)
	}
	return w, nil
}

func observe(call events.HookCall) (core.Observation, error) {
	o, in, err := readBase(call)
	if err != nil {
		return core.Observation{}, err
	}
	w := core.Observation{Agent: Agent, Native: in.session, Cwd: in.cwd, Path: events.MainPath}
	if call.Event == afterTool {
		err := toolEnd(o, in, &w)
		return w, err
	}
	w.Signal, err = signalOf(call.Event, o)
	return w, err
}

// toolEnd reads what ran and what came of it.
func toolEnd(o agents.Object, in input, w *core.Observation) error {
	if err := in.readTool(o); err != nil {
		return err
	}
	w.Signal = core.Signal(events.AfterToolCall)
	w.Tool = events.Tool{Name: in.tool, Kind: in.kind}
	var err error
	if w.Args, err = agents.AddKindName(in.args, in.kind); err != nil {
		return fmt.Errorf("tool_input: %w", err)
	}
	raw, there := o.Get("tool_response")
	if !there {
		return nil
	}
	response, err := agents.ReadObject(raw)
	if err != nil {
		return fmt.Errorf("tool_response: %w", err)
	}
	content, _ := response.Get("llmContent")
	w.Result = &core.ToolResult{Text: plain(content)}
	if failure, there := response.Get("error"); there && string(failure) != "null" {
		w.Signal = core.Signal(events.ToolError)
		w.Result.Error, w.Result.Failed = message(failure), true
	}
	return nil
}

// message is the text of Gemini's error, which is a text or has one.
func message(failure []byte) string {
	if o, err := agents.ReadObject(failure); err == nil {
		if text, err := o.Need("message"); err == nil {
			return text
		}
	}
	return plain(failure)
}

// plain is a string as it is, and the JSON of everything else.
func plain(raw []byte) string {
	if text, err := (agents.Object{{Name: "it", Value: raw}}).Text("it"); err == nil && len(raw) > 0 {
		return text
	}
	return string(raw)
}

// signalOf tells what an event means, which some say only in a field.
func signalOf(event string, o agents.Object) (core.Signal, error) {
	switch event {
	case "AfterAgent":
		return core.Signal(events.AfterTurn), nil
	case "PreCompress":
		return core.Signal(events.PreCompact), nil
	case "SessionStart":
		source, err := o.Text("source")
		if source == "resume" {
			return core.Signal(events.SessionRestored), err
		}
		return core.Signal(events.SessionStart), err
	case "SessionEnd":
		reason, err := o.Text("reason")
		if reason == "clear" {
			return core.SignalSessionChanged, err
		}
		return core.Signal(events.SessionEnd), err
	case "Notification":
		if about, err := o.Need("notification_type"); err != nil || about != "ToolPermission" {
			return "", errors.Join(err, fmt.Errorf("a notification about %q", about))
		}
		return core.Signal(events.ApprovalRequested), nil
	}
	return "", fmt.Errorf("%s is not observed", event)
}

// Heard implements [agents.Adapter].
func (Adapter) Heard(call events.HookCall, h core.Heard) events.HookLine {
	return additionalContext(call.Event, h.Context)
}
