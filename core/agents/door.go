package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/events"
)

// DoorOptions configure a [Door]. Desk, Conn, Core and Epoch are required.
type DoorOptions struct {
	Desk Desk
	// Conn is the core's own connection to the account of the doors.
	Conn  *nats.Conn
	Core  events.Token
	Epoch events.ID
	// Stopping is the Desk's error that says that this core is stopping. Who
	// hears it is sent to the next core.
	Stopping error
	// Log hears what goes wrong; nil means nowhere.
	Log *slog.Logger
}

// Times of the door.
const (
	afterward  = 5 * time.Second // the lease of an operation once its asker has heard a no
	awaitFor   = 25 * time.Second
	sweepEvery = time.Second
	flushFor   = 5 * time.Second
)

// Door answers the agents that speak NATS. It listens to the exact subjects of
// the sessions that were opened at it, and to the lobby.
type Door struct {
	o        DoorOptions
	commands chan *nats.Msg
	verbs    map[string]verb
	busy     busy
	opened   opened
	held     held
	tasks    sync.WaitGroup
}

// backlog is how many commands wait for the dispatcher at most; the rest is
// dropped, and an agent asks again.
const backlog = 1 << 14

// NewDoor makes a door that is still shut. Run serves it.
func NewDoor(o DoorOptions) *Door {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Door{o: o, commands: make(chan *nats.Msg, backlog), verbs: doorVerbs(), busy: busy{of: map[events.ID]load{}}}
	d.opened = opened{conn: o.Conn, to: d.commands, of: map[events.ID]map[events.Token]*entry{}, subs: map[events.Token]*listening{}}
	d.held = held{of: map[holder]*holding{}, count: map[events.ID]int{}}
	return d
}

// Run serves until ctx ends, then stops listening, sends who still asks to the
// next core, and waits for the commands that are under way. The end of a core
// ends no operation.
func (d *Door) Run(ctx context.Context) error {
	lobby := []string{
		events.AgentLobbySubject(events.DoorAll, "*", events.VerbCores),
		events.AgentLobbySubject(string(d.o.Core), "*", "*"),
	}
	for _, s := range lobby {
		sub, err := d.o.Conn.ChanSubscribe(s, d.commands)
		if err != nil {
			return fmt.Errorf("open the agents' lobby: %w", err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	if err := flush(ctx, d.o.Conn); err != nil && ctx.Err() == nil {
		return fmt.Errorf("open the agents' lobby: %w", err)
	}
	defer d.shut(ctx)
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sweep.C:
			d.lapse()
		case m := <-d.commands:
			d.dispatch(ctx, m)
		}
	}
}

// shut answers what has arrived, and waits for what is under way.
func (d *Door) shut(ctx context.Context) {
	d.opened.close()
	for len(d.commands) > 0 { // nobody else takes one out
		m := <-d.commands
		if at, err := events.ParseAgentSubject(m.Subject); err == nil && repliable(m, at.Agent) {
			d.send(m, refusal{stopping()})
		}
	}
	d.tasks.Wait()
	_ = flush(context.WithoutCancel(ctx), d.o.Conn)
}

// lapse lets go of the operations whose askers have not been heard of for the
// time of their lease.
func (d *Door) lapse() {
	for _, h := range d.held.lapsed(time.Now()) {
		d.tasks.Go(func() { d.o.Desk.Gone(h.op, h.secret, events.EndAgentGone) })
	}
}

// dispatch begins one command, on a goroutine of its own: it may wait for the
// log, and holds up nobody else.
func (d *Door) dispatch(ctx context.Context, m *nats.Msg) {
	at, err := events.ParseAgentSubject(m.Subject)
	if err != nil || !repliable(m, at.Agent) {
		d.o.Log.Debug("a command that cannot be answered was dropped", "subject", m.Subject, "reply", m.Reply)
		return
	}
	v, no := d.admit(at, m.Data)
	if no == nil && !d.busy.take(at.Agent, v.class, len(m.Data)) {
		no = refuse(events.RejectTooMany, "too much is under way; repeat when some replies have come")
	}
	if no != nil {
		d.send(m, refusal{no})
		return
	}
	d.tasks.Go(func() {
		defer d.busy.give(at.Agent, v.class, len(m.Data))
		d.serve(ctx, v, at, m)
	})
}

// repliable reports whether the reply would go to the agent's own inbox. The
// core may publish everywhere, so it must not be told where.
func repliable(m *nats.Msg, agent events.ID) bool {
	return strings.HasPrefix(m.Reply, events.InboxPrefix(agent)+".") && !strings.ContainsAny(m.Reply, "*> \t\r\n")
}

// admit finds the verb of a command and checks what can be checked unread.
func (d *Door) admit(at events.AgentDoorSubject, data []byte) (verb, *events.Refused) {
	v, ok := d.verbs[at.Verb]
	switch {
	case !ok || v.lobby != (at.Core != ""):
		return verb{}, refuse(events.RejectMalformed, "%.32q is no verb of this subject", at.Verb)
	case len(data) > v.limit:
		return verb{}, refuse(events.RejectMalformed, "a command of %d bytes; %s takes %d", len(data), at.Verb, v.limit)
	}
	return v, nil
}

// serve runs a verb. A panic in it ends this command and nothing else.
func (d *Door) serve(ctx context.Context, v verb, at events.AgentDoorSubject, m *nats.Msg) {
	defer func() {
		if p := recover(); p != nil {
			d.o.Log.Error("a command failed inside the core", "verb", at.Verb, "panic", p, "stack", string(debug.Stack()))
			d.send(m, refusal{refuse(events.RejectInternal, "the core failed at this command; its log has the details")})
		}
	}()
	run, err := v.read(m.Data)
	if err != nil {
		d.send(m, refusal{refuse(events.RejectMalformed, "%s", err)})
		return
	}
	from := caller{agent: at.Agent}
	if !v.lobby {
		var ok bool
		if from, ok = d.opened.find(at.Agent, at.Session); !ok {
			d.send(m, refusal{refuse(events.RejectNotAttached, "this connection has not opened the session; session_open does")})
			return
		}
	}
	d.send(m, run(ctx, d, from))
}

func (d *Door) send(m *nats.Msg, reply any) {
	asJSON := len(m.Data) > 0 && m.Data[0] == '{'
	data, err := events.EncodeReply(reply, asJSON)
	if err != nil || int64(len(data)) > d.o.Conn.MaxPayload() {
		d.o.Log.Error("a reply does not fit its encoding", "subject", m.Subject, "bytes", len(data), "error", err)
		data, err = events.EncodeReply(refusal{refuse(events.RejectInternal, "the reply cannot be said in this encoding")}, asJSON)
	}
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		d.o.Log.Error("reply to an agent", "subject", m.Subject, "error", err)
	}
}

// refusal is how every reply says no.
type refusal struct {
	Refused *events.Refused `json:"refused"`
}

// maxHint bounds a refusal's hint, bytes: it may quote what was sent.
const maxHint = 512

func refuse(code events.Reject, format string, args ...any) *events.Refused {
	hint := fmt.Sprintf(format, args...)
	if len(hint) > maxHint {
		hint = strings.ToValidUTF8(hint[:maxHint], "") + "…"
	}
	return &events.Refused{Code: code, Hint: hint}
}

// stopping sends an agent to the next core, as a core does that does not know
// its session.
func stopping() *events.Refused {
	return refuse(events.RejectNotAttached, "this core is stopping; open the session at the next one")
}

// no is the desk's error as a refusal, nil for nil.
func (d *Door) no(err error) *events.Refused {
	if err == nil {
		return nil
	}
	if r, ok := errors.AsType[*events.Refused](err); ok {
		return r
	}
	if d.isStopping(err) {
		return stopping()
	}
	d.o.Log.Error("a command failed inside the core", "error", err)
	return refuse(events.RejectInternal, "%s", err)
}

func (d *Door) isStopping(err error) bool {
	return d.o.Stopping != nil && errors.Is(err, d.o.Stopping) || errors.Is(err, context.Canceled)
}

// flush waits until the server has seen what was sent before.
func flush(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, flushFor)
	defer cancel()
	return nc.FlushWithContext(ctx)
}
