package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Payload is what a process is told about an event. Fields that its event does
// not have are not written.
type Payload struct {
	Event     events.HookEvent
	Timestamp time.Time
	SessionID string // the agent's own id
	Profile   string
	Cwd       string
	Tool      events.Tool
	Args      []byte // JSON, passed on byte for byte
	// Text is a prompt as a JSON string, passed on byte for byte. Input says
	// what kind of text it is: prompt, injection or retry_note. Injected says
	// that it was added to a turn that ran already.
	Text     []byte
	Input    string
	Injected bool
	// Result is what the tool gave back, nil before it ran.
	Result *ResultPayload
	// Path names the sub-agent's or workflow's run, Turn is the agent's id of
	// the turn, Reason a code: how the turn or run ended, what made a context
	// compaction necessary. Each is left out when empty.
	Path   string
	Turn   string
	Reason string
	// ConfirmationAvailable says that a question could be shown now.
	ConfirmationAvailable bool
	Attempt               int // rechecks so far, 0–3
	OperationID           events.ID
}

// ResultPayload is what a tool gave back, or why it did not run. Error is why
// it could not run, "" when it ran; scripts are told that there was one, and
// its text where there is no other. HookConfirmation is declined, timed_out or
// unavailable, "" when no question of a hook ended the call.
type ResultPayload struct {
	Text             string
	Error            string
	DurationMS       int64
	Failed           bool
	ApprovalRejected bool
	RejectionSource  string
	HookDenied       bool
	HookConfirmation string
}

// Encode writes the payload as UTF-8 JSON, schema 1.
func (p Payload) Encode() []byte {
	b := members{}
	b.number("schema", 1)
	b.text("event", string(p.Event))
	b.text("timestamp", p.Timestamp.UTC().Format("2006-01-02T15:04:05.000000Z"))
	b.text("session_id", p.SessionID)
	b.text("profile", p.Profile)
	b.text("cwd", p.Cwd)
	p.encodeSubject(&b)
	b.code("path", p.Path)
	b.code("turn_id", p.Turn)
	b.code("reason", p.Reason)
	if p.Event.Gated() {
		b.flag("confirmation_available", p.ConfirmationAvailable)
		b.number("attempt", int64(p.Attempt))
		b.text("operation_id", string(p.OperationID))
	} else {
		b.code("operation_id", string(p.OperationID))
	}
	return b.end()
}

// encodeSubject writes what only events of this kind have, under the names that
// scripts know.
func (p Payload) encodeSubject(b *members) {
	switch p.Event {
	case events.BeforeToolCall, events.AfterToolCall, events.ToolError:
		b.raw("tool", p.tool())
		if p.Result != nil {
			b.raw("result", p.Result.encode())
		}
	case events.ApprovalRequested, events.ApprovalResolved:
		b.text("request_id", string(p.OperationID))
		b.text("caller_name", p.Profile)
		b.raw("tool", p.tool())
		if p.Reason == "approved" || p.Reason == "rejected" {
			b.flag("approved", p.Reason == "approved")
		}
	case events.UserPromptSubmit:
		b.raw("text", p.Text)
		b.flag("injected", p.Injected)
		b.code("input", p.Input)
	case events.SessionRestored:
		b.text("restored_session_id", p.SessionID)
	case events.AfterTurn:
		p.encodeStatus(b)
	case events.SubAgentStart, events.SubAgentEnd:
		b.raw("sub_agent", p.subAgent())
		p.encodeStatus(b)
	case events.WorkflowRunStart:
		b.code("run_id", p.Path)
	case events.WorkflowRunEnd:
		b.code("run_id", p.Path)
		b.code("outcome", p.Reason)
	case events.PreCompact:
		b.code("trigger", p.Reason)
	}
}

// encodeStatus says how a turn or run ended, if that is known.
func (p Payload) encodeStatus(b *members) {
	switch p.Reason {
	case "ok", "interrupted", "failed", "cancelled":
		b.text("status", p.Reason)
		b.flag("failed", p.Reason != "ok")
	}
}

func (p Payload) tool() []byte {
	b := members{}
	b.text("name", p.Tool.Name)
	b.text("kind", p.Tool.Kind)
	b.text("call_id", p.Tool.CallID)
	b.raw("args", p.Args)
	return b.end()
}

// subAgent names the run at the end of a path such as "main > reviewer#1".
func (p Payload) subAgent() []byte {
	name, _, _ := strings.Cut(p.Path[strings.LastIndex(p.Path, ">")+1:], "#")
	b := members{}
	b.code("name", strings.TrimSpace(name))
	b.code("invocation_id", p.Path)
	return b.end()
}

func (r ResultPayload) encode() []byte {
	text := r.Text
	if text == "" {
		text = r.Error
	}
	b := members{}
	b.text("text", text)
	b.number("duration_ms", r.DurationMS)
	b.flag("error", r.Error != "")
	b.flag("failed", r.Failed || r.Error != "" || r.ApprovalRejected)
	b.flag("approval_rejected", r.ApprovalRejected)
	if r.ApprovalRejected {
		b.text("rejection_source", r.RejectionSource)
		b.flag("hook_denied", r.HookDenied)
	}
	b.code("hook_confirmation", r.HookConfirmation)
	return b.end()
}

// members writes the members of a JSON object in the order of the calls.
type members struct{ buffer bytes.Buffer }

func (m *members) name(name string) {
	separator := byte(',')
	if m.buffer.Len() == 0 {
		separator = '{'
	}
	m.buffer.WriteByte(separator)
	m.buffer.WriteString(`"` + name + `":`)
}

// raw writes a value that is JSON already, nothing as null.
func (m *members) raw(name string, value []byte) {
	m.name(name)
	if len(value) == 0 {
		m.buffer.WriteString("null")
	}
	m.buffer.Write(value)
}

// text writes a string with <, > and & as they are: scripts compare the text.
// What is no UTF-8 becomes U+FFFD.
func (m *members) text(name, value string) {
	m.name(name)
	e := json.NewEncoder(&m.buffer)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // a string always has a form
	m.buffer.Truncate(m.buffer.Len() - len("\n"))
}

// code writes a word that there need not be.
func (m *members) code(name, value string) {
	if value != "" {
		m.text(name, value)
	}
}

func (m *members) flag(name string, value bool) {
	m.name(name)
	m.buffer.WriteString(strconv.FormatBool(value))
}

func (m *members) number(name string, value int64) {
	m.name(name)
	m.buffer.WriteString(strconv.FormatInt(value, 10))
}

func (m *members) end() []byte {
	if m.buffer.Len() == 0 {
		m.buffer.WriteByte('{')
	}
	m.buffer.WriteByte('}')
	return m.buffer.Bytes()
}

// readBack gives what a run needs to know of a payload that was encoded for an
// earlier start: what its filters and templates ask for.
func readBack(encoded []byte) (Payload, error) {
	var fields struct {
		SessionID string `json:"session_id"`
		Profile   string `json:"profile"`
		Cwd       string `json:"cwd"`
		Tool      struct {
			Args json.RawMessage `json:"args"`
		} `json:"tool"`
	}
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return Payload{}, fmt.Errorf("no payload: %w", err)
	}
	return Payload{SessionID: fields.SessionID, Profile: fields.Profile, Cwd: fields.Cwd, Args: fields.Tool.Args}, nil
}
