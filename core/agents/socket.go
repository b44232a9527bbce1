package agents

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// SocketOptions configure a [Socket]. Listener and Desk are required.
type SocketOptions struct {
	// Listener is agent.sock. Only the user's own processes may get through
	// it; the socket does not ask who they are. It is closed when Run ends.
	Listener net.Listener
	Desk     Desk
	// Adapters by agent. Calls of an agent without one are denied.
	Adapters map[events.Agent]Adapter
	// Stopping is the Desk's error that says that this core is stopping. Such
	// a call gets no verdict: its connection closes and its asker comes back
	// to the next core.
	Stopping error
	// Control answers a control line; what it returns is stdout, its error
	// stderr with exit 1. nil denies all of them.
	Control func(ctx context.Context, event string) (string, error)
	// MaxConns bounds the open connections; 0 means 20,000. One more is denied.
	MaxConns int
	// FirstLine is the time that a connection has to say its call; 0 means
	// 10 s. The receipt has the same.
	FirstLine time.Duration
	// Log hears what goes wrong; nil means nowhere.
	Log *slog.Logger
	// Now is the clock of agents' deadlines; nil means time.Now.
	Now func() time.Time
}

// A control line is an [events.HookCall] of the agent [ControlAgent], with a
// word as its event and no operation: how the CLI speaks to its core.
const (
	ControlAgent  = "core"
	ControlStatus = "status"
	ControlStop   = "stop"
)

// Socket serves agent.sock.
type Socket struct {
	o SocketOptions

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	wg     sync.WaitGroup
}

// NewSocket makes a socket. Run serves it.
func NewSocket(o SocketOptions) *Socket {
	if o.MaxConns == 0 {
		o.MaxConns = 20_000
	}
	if o.FirstLine == 0 {
		o.FirstLine = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Socket{o: o, conns: map[net.Conn]struct{}{}}
}

// Run serves until ctx ends, which is no error. It then closes every
// connection and says nothing on them: the end of a core ends no operation,
// its askers come back.
func (s *Socket) Run(ctx context.Context) error {
	defer s.wg.Wait()
	defer s.close()
	defer context.AfterFunc(ctx, s.close)()
	for {
		c, err := s.o.Listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = c.Close()
			}
			return nil
		}
		if err != nil {
			if isClosed(err) {
				return err
			}
			s.o.Log.Error("cannot accept an agent's call", "error", err) // no file left, for instance
			if sleep(ctx, 50*time.Millisecond) != nil {
				return nil
			}
			continue
		}
		s.admit(ctx, c)
	}
}

// sleep waits, or returns why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (s *Socket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	_ = s.o.Listener.Close()
	for c := range s.conns {
		_ = c.Close()
	}
}

// admit starts serving a connection, or denies it when there are too many.
func (s *Socket) admit(ctx context.Context, c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return
	}
	full := len(s.conns) >= s.o.MaxConns
	if !full {
		s.conns[c] = struct{}{}
	}
	s.wg.Go(func() {
		if full {
			defer s.forget(c)
			s.o.Log.Error("too many agents' calls at once", "limit", s.o.MaxConns)
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_ = send(c, Deny("", "", events.CodeLogUnavailable,
				NotChecked(events.CodeLogUnavailable, "the core has too many calls waiting")))
			return
		}
		if waits := s.serve(ctx, c); !waits {
			s.forget(c)
		}
	})
}

func (s *Socket) forget(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// serve reads a connection's call and answers it, or, when its verdict is still
// to come, leaves it to a goroutine of its own and returns true: reading has
// made this one's stack large, and a person may think for days.
func (s *Socket) serve(ctx context.Context, c net.Conn) (waits bool) {
	var call events.HookCall
	defer s.mend(c, &call)
	call, event, ok := s.receive(ctx, c)
	if !ok {
		return false
	}
	if !event.Gated {
		_ = send(c, s.observe(ctx, c, call, event))
		return false
	}
	adapter, ok := s.o.Adapters[event.Agent]
	if !ok {
		s.deny(c, call, events.CodeNeedsNewerCore, "this version has no adapter for "+call.Agent)
		return false
	}
	if !s.propose(ctx, c, call, event, adapter) {
		return false
	}
	a := &asker{socket: s, conn: c, call: call, adapter: adapter, said: errNotSaid}
	s.wg.Go(func() { a.stay(ctx) })
	return true
}

// mend, deferred, makes a panic a deny: nothing that an agent sends may take
// the core down. Of an observed event there is nothing to deny.
func (s *Socket) mend(c net.Conn, call *events.HookCall) {
	p := recover()
	if p == nil {
		return
	}
	s.o.Log.Error("a call broke its adapter", "agent", call.Agent, "event", call.Event, "panic", p,
		"stack", string(debug.Stack()))
	agent, code := events.Agent(call.Agent), events.CodeNoCanonicalForm
	line := Deny(agent, call.Event, code, NotChecked(code, "its payload broke the core's adapter"))
	if e, known := Lookup(agent, call.Event); known && !e.Gated {
		line = events.HookLine{}
	}
	_ = send(c, line)
}

// observe tells the desk of an event that nobody can stop, and gives the reply.
// Whatever is wrong with it is the core's to know, and not the agent's. Only of a
// tool's end the agent waits, when it has heard that the core has it.
func (s *Socket) observe(ctx context.Context, c net.Conn, call events.HookCall, e NativeEvent) events.HookLine {
	adapter, ok := s.o.Adapters[e.Agent]
	if !ok {
		return events.HookLine{}
	}
	log := s.o.Log.With("agent", call.Agent, "event", call.Event)
	o, err := adapter.Observe(call)
	if err != nil {
		log.Warn("an observed event cannot be read", "error", err)
		return events.HookLine{}
	}
	if o.Cwd == "" {
		o.Cwd = call.Cwd
	}
	o.Pane = call.Pane
	if OfTool(o.Signal) {
		_ = send(c, events.HookLine{Accepted: true}) // it is recorded, whether the agent waits or not
	}
	heard, err := s.o.Desk.Observe(ctx, o)
	if err != nil {
		if ctx.Err() == nil {
			log.Warn("an observed event was not recorded", "error", err)
		}
		return events.HookLine{}
	}
	if !OfTool(o.Signal) {
		return events.HookLine{}
	}
	return adapter.Heard(call, heard)
}

// receive reads the call and finds its event in the table.
func (s *Socket) receive(ctx context.Context, c net.Conn) (events.HookCall, NativeEvent, bool) {
	_ = c.SetReadDeadline(time.Now().Add(s.o.FirstLine))
	line, err := readLine(c, 4<<10, MaxLine)
	if err != nil {
		switch {
		case isClosed(err): // it left without a word
		case errors.Is(err, errLineTooLong):
			s.deny(c, events.HookCall{}, events.CodeTooLarge, err.Error())
		default:
			s.deny(c, events.HookCall{}, events.CodeNoCanonicalForm, "agent-hook's line did not arrive: "+err.Error())
		}
		return events.HookCall{}, NativeEvent{}, false
	}
	_ = c.SetReadDeadline(time.Time{})
	call, err := DecodeCall(line)
	event, known := Lookup(events.Agent(call.Agent), call.Event)
	if bad, ok := errors.AsType[*badCall](err); ok {
		if known && !event.Gated {
			s.o.Log.Warn("an observed event cannot be read", "agent", call.Agent, "event", call.Event, "error", bad)
			_ = send(c, events.HookLine{})
			return call, event, false
		}
		s.deny(c, call, bad.code, bad.text)
		return call, event, false
	}
	if call.Agent == ControlAgent && s.o.Control != nil {
		_ = send(c, s.control(ctx, call.Event))
		return call, event, false
	}
	if !known {
		s.deny(c, call, events.CodeNeedsNewerCore, "this version knows no event "+clip(call.Event)+" of an agent "+clip(call.Agent))
	}
	return call, event, known
}

func (s *Socket) control(ctx context.Context, event string) events.HookLine {
	out, err := s.o.Control(ctx, event)
	if err != nil {
		return events.HookLine{Exit: 1, Stderr: err.Error() + "\n"}
	}
	return events.HookLine{Stdout: out}
}

// propose puts the operation before the desk and tells agent-hook that it is
// there. False: the exchange is over.
func (s *Socket) propose(ctx context.Context, c net.Conn, call events.HookCall, e NativeEvent, a Adapter) bool {
	p, err := a.Translate(call)
	if err != nil {
		s.deny(c, call, events.CodeNoCanonicalForm, err.Error())
		return false
	}
	p.Operation, p.Secret, p.Pane = call.Operation, call.Secret, call.Pane
	p.Deadline = deadline(call, e, s.o.Now())
	if p.Cwd == "" {
		p.Cwd = call.Cwd
	}
	if err := s.o.Desk.Propose(ctx, p); err != nil {
		s.refused(ctx, c, &call, err)
		return false
	}
	if err := send(c, events.HookLine{Accepted: true}); err != nil {
		s.gone(ctx, &call)
		return false
	}
	return true
}

// gone reports the end of an asker's connection, unless it is the core that
// goes: that ends no operation.
func (s *Socket) gone(ctx context.Context, call *events.HookCall) {
	if ctx.Err() == nil {
		s.o.Desk.Gone(call.Operation, call.Secret, events.EndAgentGone)
	}
}

// refused says the desk's no as a deny.
func (s *Socket) refused(ctx context.Context, c net.Conn, call *events.HookCall, err error) {
	if ctx.Err() != nil || s.o.Stopping != nil && errors.Is(err, s.o.Stopping) {
		return
	}
	code, text := events.CodeLogUnavailable, err.Error()
	if r, ok := errors.AsType[*events.Refused](err); ok {
		code = refusalCode(r.Code)
	}
	s.o.Log.Error("a call was refused at the door", "operation", call.Operation, "agent", call.Agent, "error", err)
	s.deny(c, *call, code, text)
}

func refusalCode(r events.Reject) events.Code {
	switch r {
	case events.RejectMalformed:
		return events.CodeNoCanonicalForm
	case events.RejectNotYours, events.RejectAlreadyCommitted, events.RejectUnknownOperation, events.RejectWithdrawn:
		return events.CodeEnded
	case events.RejectStaleVersion:
		return events.CodeChangedAfterCheck
	}
	return events.CodeLogUnavailable
}

func (s *Socket) deny(c net.Conn, call events.HookCall, code events.Code, text string) {
	s.o.Log.Warn("denied at the door", "agent", clip(call.Agent), "event", clip(call.Event), "code", code, "reason", text)
	agent, reason := events.Agent(call.Agent), NotChecked(code, text)
	if d, ok := s.o.Adapters[agent].(Denier); ok {
		_ = send(c, d.Deny(call, code, reason))
		return
	}
	_ = send(c, Deny(agent, call.Event, code, reason))
}

// send writes one line. A peer that does not read it within ten seconds is
// gone.
func send(c net.Conn, line events.HookLine) error {
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	_, err = c.Write(append(b, '\n'))
	return err
}
