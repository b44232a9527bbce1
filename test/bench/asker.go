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

// once makes one call and waits for its verdict, which must be an allow.
func (a asker) once(ctx context.Context) error {
	call, err := json.Marshal(events.HookCall{
		V: 1, Operation: newID(), Secret: "a secret of the asker", Agent: "generic", Event: "before_tool_call",
		Stdin: payload(), PID: os.Getpid(), PPID: os.Getppid(), Cwd: "/",
	})
	if err != nil {
		return err
	}
	line := append(call, '\n')
	for {
		err := a.converse(ctx, line)
		if !errors.Is(err, errCore) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(redial):
		case <-ctx.Done():
			return fmt.Errorf("stuck: %w", err)
		}
	}
}

// converse speaks with one core, errCore if that is lost.
func (a asker) converse(ctx context.Context, line []byte) error {
	c, err := net.Dial("unix", a.socket)
	if err != nil {
		return fmt.Errorf("%w: %w", errCore, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := c.Write(line); err != nil {
		return fmt.Errorf("%w: %w", errCore, err)
	}
	in := bufio.NewReaderSize(c, 2048)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%w: %w", errCore, err)
		}
		var r events.HookLine
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		if r.Accepted {
			if a.accepted != nil {
				a.accepted()
			}
			continue
		}
		return a.confirm(c, line, r)
	}
}

func (a asker) confirm(c net.Conn, line []byte, r events.HookLine) error {
	var call events.HookCall
	if err := json.Unmarshal(line, &call); err != nil {
		return err
	}
	receipt, err := json.Marshal(events.HookReceipt{Receipt: call.Operation})
	if err != nil {
		return err
	}
	if _, err := c.Write(append(receipt, '\n')); err != nil {
		return fmt.Errorf("%w: %w", errCore, err)
	}
	if r.Exit != 0 {
		return fmt.Errorf("lost: the call was denied: %s", r.Stderr)
	}
	return nil
}
