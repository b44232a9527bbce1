package agents

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

var errNotSaid = errors.New("it left, or confirmed a verdict that it had not heard")

// asker is a call that was accepted, at its connection. A person may think for
// days, and thousands may wait: while one does there is this, one goroutine
// that listens for the receipt, and nothing large on its stack.
type asker struct {
	socket  *Socket
	conn    net.Conn
	call    events.HookCall
	adapter Adapter

	mu   sync.Mutex // held while the verdict is being said
	said error      // errNotSaid before the verdict, nil once it was said whole
}

// stay holds the connection until the verdict is delivered or the asker goes.
func (a *asker) stay(ctx context.Context) {
	s := a.socket
	defer s.forget(a.conn)
	defer s.gone(ctx, &a.call)
	s.wg.Add(1) // the verdict's
	stop := s.o.Desk.Notify(a.call.Operation, a.call.Secret, func(v core.Verdict, err error) {
		go func() {
			defer s.wg.Done()
			a.say(ctx, v, err)
		}()
	})
	err := a.hear()
	if stop() {
		s.wg.Done()
	}
	a.conclude(ctx, err)
}

// say tells the verdict, or why there is none. After anything but a verdict that
// was said whole the connection closes, which ends hear.
func (a *asker) say(ctx context.Context, v core.Verdict, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() {
		if a.said != nil {
			_ = a.conn.Close()
		}
	}()
	defer a.socket.mend(a.conn, &a.call)
	if err != nil {
		a.said = err
		a.socket.refused(ctx, a.conn, &a.call, err)
		return
	}
	_ = a.conn.SetReadDeadline(time.Now().Add(a.socket.o.FirstLine))
	a.said = send(a.conn, a.adapter.Reply(a.call, v))
}

// hear waits for the receipt, or for the connection's end.
func (a *asker) hear() error {
	line, err := readLine(a.conn, 64, maxReceipt)
	if err != nil {
		return err
	}
	return checkReceipt(line, a.call.Operation)
}

// conclude records the receipt, if it is one for a verdict that was said.
func (a *asker) conclude(ctx context.Context, heard error) {
	if heard != nil {
		_ = a.conn.Close() // nobody reads what is still being said
	}
	a.mu.Lock()
	err := a.said
	a.mu.Unlock()
	if err == nil {
		err = heard
	}
	log := a.socket.o.Log.With("operation", a.call.Operation)
	if err != nil {
		log.Info("an asker went without its verdict", "agent", a.call.Agent, "pid", a.call.PID, "cause", err)
		return
	}
	if err := a.socket.o.Desk.Receipt(ctx, a.call.Operation, a.call.Secret, ""); err != nil {
		log.Warn("a receipt was not recorded", "error", err)
	}
}

func checkReceipt(line []byte, op events.ID) error {
	var r events.HookReceipt
	if _, err := events.DecodeCommand(line, &r); err != nil {
		return err
	}
	if r.Receipt != op {
		return errors.New("a receipt for another operation")
	}
	return nil
}
