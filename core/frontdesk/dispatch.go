package frontdesk

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

// What one frontend may have under way in verbs that wait.
const (
	maxBusy      = 512
	maxBusyBytes = 32 << 20
)

// refusal is how every reply says no.
type refusal struct {
	Refused *events.Refused `json:"refused"`
}

// maxHint bounds a refusal's hint, bytes: it may quote what was sent.
const maxHint = 512

func refused(code events.Reject, format string, args ...any) *events.Refused {
	hint := fmt.Sprintf(format, args...)
	if len(hint) > maxHint {
		hint = strings.ToValidUTF8(hint[:maxHint], "") + "…"
	}
	return &events.Refused{Code: code, Hint: hint}
}

// dispatch answers one command. A verb that may wait for the log gets a
// goroutine, so that it holds up nobody else; the others are answered in their
// order of arrival.
func (d *Door) dispatch(ctx context.Context, m *nats.Msg) {
	at, err := events.ParseDoorSubject(m.Subject)
	if err != nil || !repliable(m, at.Frontend) {
		d.o.Log.Debug("a command that cannot be answered was dropped", "subject", m.Subject, "reply", m.Reply)
		return
	}
	v, no := d.admit(at, m.Data)
	if no != nil {
		d.send(m, refusal{no}, looksLikeJSON(m.Data))
		return
	}
	principal, live := d.o.Principal("fe." + string(at.Frontend))
	if !live {
		d.send(m, refusal{refused(events.RejectNotAllowed, "no live connection has this id")}, looksLikeJSON(m.Data))
		return
	}
	who := engine.Frontend{ID: at.Frontend, Principal: principal}
	if !v.waits {
		d.serve(ctx, v, who, at, m)
		return
	}
	if !d.busy.take(at.Frontend, len(m.Data)) {
		d.send(m, refusal{refused(events.RejectTooMany, "%d commands are under way; wait for some replies", maxBusy)}, looksLikeJSON(m.Data))
		return
	}
	d.tasks.Go(func() {
		defer d.busy.give(at.Frontend, len(m.Data))
		d.serve(ctx, v, who, at, m)
	})
}

// repliable reports whether the reply would go to the frontend's own inbox. The
// core may publish everywhere, so it must not be told where.
func repliable(m *nats.Msg, frontend events.ID) bool {
	inbox := events.InboxPrefix(frontend) + "."
	return strings.HasPrefix(m.Reply, inbox) && !strings.ContainsAny(m.Reply, "*> \t\r\n")
}

// admit finds the verb of a command and checks what can be checked unread.
func (d *Door) admit(at events.DoorSubject, data []byte) (verb, *events.Refused) {
	v, ok := d.verbs[at.Verb]
	if !ok || v.lobby != (at.Scope != "") {
		return verb{}, refused(events.RejectMalformed, "%.32q is no verb of this subject", at.Verb)
	}
	if len(data) > v.limit {
		return verb{}, refused(events.RejectMalformed, "a command of %d bytes; %s takes %d", len(data), at.Verb, v.limit)
	}
	return v, nil
}

// serve runs a verb. A panic in it ends this command and nothing else.
func (d *Door) serve(ctx context.Context, v verb, who engine.Frontend, at events.DoorSubject, m *nats.Msg) {
	asJSON := looksLikeJSON(m.Data)
	defer func() {
		if p := recover(); p != nil {
			d.o.Log.Error("a command failed inside the core", "verb", at.Verb, "panic", p, "stack", string(debug.Stack()))
			d.send(m, refusal{refused(events.RejectInternal, "the core failed at this command; its log has the details")}, asJSON)
		}
	}()
	run, err := v.read(m.Data)
	if err != nil {
		d.send(m, refusal{refused(events.RejectMalformed, "%s", err)}, asJSON)
		return
	}
	d.send(m, run(ctx, d, who, at), asJSON)
}

func (d *Door) send(m *nats.Msg, reply any, asJSON bool) {
	data, err := events.EncodeReply(reply, asJSON)
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		d.o.Log.Error("reply to a frontend", "subject", m.Subject, "error", err)
	}
}

func looksLikeJSON(data []byte) bool { return len(data) > 0 && data[0] == '{' }

// busy counts what each frontend has under way.
type busy struct {
	mu sync.Mutex
	of map[events.ID]load
}

type load struct{ commands, bytes int }

func (b *busy) take(id events.ID, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.of[id]
	if l.commands >= maxBusy || l.commands > 0 && l.bytes+bytes > maxBusyBytes {
		return false
	}
	b.of[id] = load{l.commands + 1, l.bytes + bytes}
	return true
}

func (b *busy) give(id events.ID, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.of[id]
	if l = (load{l.commands - 1, l.bytes - bytes}); l.commands == 0 {
		delete(b.of, id)
		return
	}
	b.of[id] = l
}
