package integration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

// asker is an agent-hook that is no process: it speaks the protocol of
// agent.sock from the test.
type asker struct {
	t         testing.TB
	conn      net.Conn
	in        *bufio.Reader
	Operation events.ID
}

// payload is what a generic agent says about one call. Args is JSON.
func payload(session, tool, args string) string {
	s, _ := json.Marshal(session) // a string always encodes
	return fmt.Sprintf(`{"session_id":%s,"agent":"generic","cwd":"/","tool":{"name":%q,"kind":"filesystem.write","args":%s}}`, s, tool, args)
}

// propose brings a call before the core and returns when it is in the log.
func (h *home) propose(t testing.TB, stdin string) *asker {
	t.Helper()
	return h.proposeAs(t, engine.NewID(time.Now()), stdin)
}

// proposeAs brings a call under an id of its own: the same id again is the same
// call.
func (h *home) proposeAs(t testing.TB, id events.ID, stdin string) *asker {
	t.Helper()
	a := h.dial(t)
	a.Operation = id
	line, err := json.Marshal(events.HookCall{
		V: 1, Operation: a.Operation, Secret: string(a.Operation), Agent: "generic", Event: string(events.BeforeToolCall),
		Stdin: stdin, PID: os.Getpid(), PPID: os.Getppid(), Cwd: "/",
	})
	if err != nil {
		t.Fatal(err)
	}
	a.say(string(line) + "\n")
	if first := a.hear(); !first.Accepted {
		t.Fatalf("the core did not accept a call: %+v", first)
	}
	return a
}

// dial connects to agent.sock and says nothing yet.
func (h *home) dial(t testing.TB) *asker {
	t.Helper()
	conn, err := net.Dial("unix", h.dirs.agentSocket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(4 * patience)); err != nil {
		t.Fatal(err)
	}
	return &asker{t: t, conn: conn, in: bufio.NewReader(conn)}
}

func (a *asker) say(text string) {
	a.t.Helper()
	if _, err := a.conn.Write([]byte(text)); err != nil {
		a.t.Fatal(err)
	}
}

// hear reads the core's next line.
func (a *asker) hear() events.HookLine {
	a.t.Helper()
	text, err := a.in.ReadBytes('\n')
	if err != nil {
		a.t.Fatalf("the core said %q, then: %v", text, err)
	}
	var line events.HookLine
	if err := json.Unmarshal(text, &line); err != nil {
		a.t.Fatal(err)
	}
	return line
}

// verdict waits for the verdict, confirms it as agent-hook does, and returns
// what may run, nil for nothing.
func (a *asker) verdict() (line events.HookLine, args json.RawMessage) {
	a.t.Helper()
	line = a.hear()
	a.say(`{"receipt":"` + string(a.Operation) + "\"}\n")
	_ = a.conn.Close()
	var decision struct {
		Decision string
		Args     json.RawMessage
	}
	if err := json.Unmarshal([]byte(line.Stdout), &decision); err != nil {
		a.t.Fatalf("%v: %+v", err, line)
	}
	if allow := decision.Decision == "allow"; allow != (line.Exit == 0) {
		a.t.Fatalf("exit %d with %s", line.Exit, line.Stdout)
	}
	return line, decision.Args
}
