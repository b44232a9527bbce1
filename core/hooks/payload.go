package hooks

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Payload is what a process is told about an operation.
type Payload struct {
	Event     events.HookEvent
	Timestamp time.Time
	SessionID string // the agent's own id
	Profile   string
	Cwd       string
	Tool      events.Tool
	Args      []byte // JSON, passed on byte for byte
	// ConfirmationAvailable says that a question could be shown now.
	ConfirmationAvailable bool
	Attempt               int // rechecks so far, 0–3
	OperationID           events.ID
}

// Encode writes the payload as UTF-8 JSON, schema 1.
func (p Payload) Encode() []byte {
	var b bytes.Buffer
	b.WriteString(`{"schema":1`)
	member(&b, "event", p.Event)
	member(&b, "timestamp", p.Timestamp.UTC().Format("2006-01-02T15:04:05.000000Z"))
	member(&b, "session_id", p.SessionID)
	member(&b, "profile", p.Profile)
	member(&b, "cwd", p.Cwd)
	b.WriteString(`,"tool":{"name":`)
	encode(&b, p.Tool.Name)
	member(&b, "kind", p.Tool.Kind)
	member(&b, "call_id", p.Tool.CallID)
	b.WriteString(`,"args":`)
	if len(p.Args) == 0 {
		b.WriteString("null")
	}
	b.Write(p.Args)
	b.WriteByte('}')
	member(&b, "confirmation_available", p.ConfirmationAvailable)
	member(&b, "attempt", p.Attempt)
	member(&b, "operation_id", p.OperationID)
	b.WriteByte('}')
	return b.Bytes()
}

func member(b *bytes.Buffer, name string, v any) {
	b.WriteString(`,"` + name + `":`)
	encode(b, v)
}

// encode writes a string, number or bool, with <, > and & as they are: scripts
// compare the text.
func encode(b *bytes.Buffer, v any) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // cannot fail for these types
	b.Truncate(b.Len() - 1)
}
