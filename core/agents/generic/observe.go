package generic

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// Observe implements [agents.Adapter]. Observed events have the names of the
// hooks' events, and read the keys of a gated one, without tool; a tool's end
// (after_tool_call, tool_error) also
//
//	"operation"?: "…", "tool": {…}, "result"?: {"text"?: "…", "error"?: "…",
//	 "failed"?: true, "duration_ms"?: 12}
//
// and message_withdrawn needs operation.
func (Adapter) Observe(call events.HookCall) (core.Observation, error) {
	w, err := observe(call)
	if err != nil {
		return core.Observation{}, fmt.Errorf("stdin: %w", err)
	}
	return w, nil
}

func observe(call events.HookCall) (core.Observation, error) {
	signal := core.Signal(call.Event)
	ofTool := agents.OfTool(signal)
	own := []string{"operation"}
	if ofTool {
		own = append(own, "tool", "result")
	}
	o, w, err := read(call, own...)
	w.Signal = signal
	w.Operation = events.ID(text(&err, o.Text, "operation"))
	switch {
	case err != nil:
	case w.Operation != "":
		_, err = events.ParseID(string(w.Operation))
	case signal == core.SignalMessageWithdrawn:
		err = errors.New(`"operation" is missing`)
	}
	if err != nil || !ofTool {
		return w, err
	}
	if w.Tool, w.Args, err = tool(o); err == nil {
		w.Result, err = result(o)
	}
	return w, err
}

// result is what a tool gave back, nil if the agent does not tell.
func result(o agents.Object) (*core.ToolResult, error) {
	raw, there := o.Get("result")
	if !there {
		return nil, nil
	}
	in, err := agents.ReadObject(raw)
	if err != nil {
		return nil, fmt.Errorf(`"result": %w`, err)
	}
	err = in.Only("text", "error", "failed", "duration_ms")
	r := &core.ToolResult{Text: text(&err, in.Text, "text"), Error: text(&err, in.Text, "error")}
	var ms float64
	for name, into := range map[string]any{"failed": &r.Failed, "duration_ms": &ms} {
		if raw, there := in.Get(name); there && err == nil {
			err = json.Unmarshal(raw, into)
		}
	}
	const most = 1e12 // some thirty years
	if err == nil && !(ms >= 0 && ms <= most) {
		err = errors.New(`"duration_ms" is not possible`)
	}
	if err != nil {
		return nil, fmt.Errorf(`"result": %w`, err)
	}
	r.Duration = time.Duration(ms * float64(time.Millisecond))
	return r, nil
}

// Heard implements [agents.Adapter].
func (Adapter) Heard(_ events.HookCall, h core.Heard) events.HookLine {
	if h.Context == "" {
		return events.HookLine{}
	}
	o := agents.Object{{Name: "extra_context", Value: agents.Quote(h.Context)}}
	return events.HookLine{Stdout: string(o.Encode())}
}
