package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// redial is how often agent-hook tries again, and so does an asker here.
const redial = 20 * time.Millisecond

// asker makes calls over agent.sock as agent-hook does: a connection for each
// call, the same operation again when the core goes, a receipt at the end.
type asker struct {
	socket string
	// accepted is called whenever a core has taken the call; nil = nobody.
	accepted func()
	receipt  []byte // of the call that is under way
}

// payload is what the agent wrote to agent-hook.
func payload() string {
	b, _ := json.Marshal(map[string]any{
		"session_id": "bench", "agent": "generic", "cwd": "/",
		"tool": map[string]any{"name": "write", "kind": "filesystem.write", "args": json.RawMessage(argument())},
	})
	return string(b)
}

var errCore = errors.New("the core went")

// once makes one call and waits until the core has closed it.
func (a asker) once(ctx context.Context) error {
	rest, err := a.verdict(ctx)
	if err != nil {
		return err
	}
	return rest()
}

// verdict makes one call and waits for its verdict, which must be an allow; the
// receipt is on its way then. The rest waits until the core has recorded it.
func (a asker) verdict(ctx context.Context) (rest func() error, err error) {
	op := newID()
	a.receipt = fmt.Appendf(nil, "{\"receipt\":%q}\n", op)
	call, err := json.Marshal(events.HookCall{
		V: 1, Operation: op, Secret: "a secret of the asker", Agent: "generic", Event: "before_tool_call",
		Stdin: payload(), PID: os.Getpid(), PPID: os.Getppid(), Cwd: "/",
	})
	if err != nil {
		return nil, err
	}
	line := append(call, '\n')
	for {
		c, err := a.converse(ctx, line)
		if err == nil {
			return func() error {
				_, _ = c.Read(make([]byte, 1)) // the core closes, or has gone
				return c.Close()
			}, nil
		}
		if !errors.Is(err, errCore) || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-time.After(redial):
		case <-ctx.Done():
			return nil, fmt.Errorf("stuck: %w", err)
		}
	}
}

// converse speaks with one core, errCore if that is lost. The connection that
// it returns has had its verdict and its receipt.
func (a asker) converse(ctx context.Context, line []byte) (_ net.Conn, err error) {
	c, err := net.Dial("unix", a.socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCore, err)
	}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := c.Write(line); err != nil {
		return nil, fmt.Errorf("%w: %w", errCore, err)
	}
	in := bufio.NewReaderSize(c, 2048)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errCore, err)
		}
		var r events.HookLine
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, err
		}
		if !r.Accepted {
			return c, a.confirm(c, r)
		}
		if a.accepted != nil {
			a.accepted()
		}
	}
}

func (a asker) confirm(c net.Conn, r events.HookLine) error {
	if r.Exit != 0 {
		return fmt.Errorf("lost: the call was denied: %s", r.Stderr)
	}
	if _, err := c.Write(a.receipt); err != nil {
		return fmt.Errorf("%w: %w", errCore, err)
	}
	return nil
}
