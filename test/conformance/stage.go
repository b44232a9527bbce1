package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// rules ask about every write. In front of the question and behind it a hook changes
// the arguments of those that say so.
const rules = `version: 1
hooks:
  - id: amend-proposed
    event: before_tool_call
    match: {args: {content: {equals: ` + proposed + `}}}
    execution: {mode: blocking}
    run:
      type: shell
      shell: |-
        echo '{"action":"modify","args_override":{"content":"` + amended + `"}}' > "$FERMATA_HOOK_RESULT"
  - id: ask-before-write
    event: before_tool_call
    match: {tool_kind: filesystem.write}
    execution: {mode: blocking}
    run: {type: verdict, action: ask, reason: This writes a file.}
  - id: amend-continued
    event: before_tool_call
    match: {args: {content: {equals: ` + amended + `}}}
    execution: {mode: blocking}
    run:
      type: shell
      shell: |-
        echo '{"action":"modify","args_override":{"content":"in the end"}}' > "$FERMATA_HOOK_RESULT"
`

const settings = "mode: process\nnotify:\n  desktop: \"off\"\n"

// stage is a core of its own, a second frontend, and the program under test
// behind a relay.
type stage struct {
	dir     string
	relay   *relay
	rival   *frontends.Client
	program *program
	asked   int // questions so far
}

// program is what is tested. Its person types on its stdin, or works through the
// driver.
type program struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	out    printed
	driver string
	ended  chan struct{}
}

// printed is what the program has written to stdout and stderr.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) since(at int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()[at:]
}

func (p *printed) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Len()
}

func newID() events.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails
	return events.NewID(time.Now(), entropy)
}

// environment of the core or the program, with its sockets in a directory.
func (s *stage) environment(sockets string) []string {
	return append(os.Environ(), "FERMATA_AUTOSTART=0", "LC_ALL=C", "FERMATA_CONFIG_DIR="+s.dir+"/config",
		"FERMATA_STATE_DIR="+s.dir+"/state", "FERMATA_RUNTIME_DIR="+sockets)
}

// startCore starts the core and waits until it answers. It lives as long as ctx.
func (s *stage) startCore(ctx context.Context, binary string) error {
	for name, text := range map[string]string{"hooks.yaml": rules, "config.yaml": settings} {
		if err := os.MkdirAll(s.dir+"/config", 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.dir, "config", name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	var said printed
	cmd := exec.CommandContext(ctx, binary, "serve")
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = s.environment(s.dir+"/core"), &said, &said, time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() { defer close(gone); _ = cmd.Wait() }()
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := net.Dial("unix", s.dir+"/core/nats.sock")
		if err == nil {
			return c.Close()
		}
		select {
		case <-gone:
			return fmt.Errorf("the core did not start: %s", said.since(0))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.New("the core does not answer")
		}
	}
}

// attach makes another frontend, straight to the core. It lives as long as ctx.
func (s *stage) attach(ctx context.Context) (*frontends.Client, error) {
	socket := s.dir + "/core/nats.sock"
	c, err := frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", socket) },
		ID:   newID(), Kind: events.FrontendCLI, Capable: true, Name: "conformance",
	})
	if err != nil {
		return nil, err
	}
	go func() { _ = c.Run(ctx) }() // its end shows where it is used
	return c, s.await(ctx, "attachment of another frontend", c.Inbox().Complete)
}

func (s *stage) await(ctx context.Context, what string, done func() bool) error {
	for limit := time.Now().Add(10 * time.Second); !done(); {
		if time.Now().After(limit) {
			return fmt.Errorf("no %s within 10 s", what)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// startProgram starts what is tested, with the relay's sockets.
func (s *stage) startProgram(ctx context.Context, driver string, argv []string) error {
	p := &program{driver: driver, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	p.cmd.Env = append(s.environment(s.dir+"/relay"), "PATH="+s.dir+"/bin:"+os.Getenv("PATH"))
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = &p.out, &p.out, time.Second
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() { defer close(p.ended); _ = p.cmd.Wait() }()
	s.program = p
	return nil
}

// does is what the person at the program does: c, x or l with a question, or enter,
// which is a key that answers nothing.
func (p *program) does(ctx context.Context, verb string, q question) error {
	if p.driver != "" {
		out, err := exec.CommandContext(ctx, p.driver, verb, strconv.Itoa(q.number), string(q.id)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("the driver: %w: %s", err, out)
		}
		return nil
	}
	line := verb + " " + strconv.Itoa(q.number) + "\n"
	if verb == "enter" {
		line = "\ny\nyes\n"
	}
	_, err := io.WriteString(p.stdin, line)
	return err
}

// question is one that an agent of ours has brought about.
type question struct {
	number    int // as the program counts them
	id        events.ID
	operation events.ID
	after     events.ID // the question about the same operation that came before
	project   events.Token
	session   events.Token
	digest    events.Digest
	asker     net.Conn
	at        time.Time // when the core had it
}

// ask makes an agent want to write, and waits until there is a question.
func (s *stage) ask(ctx context.Context, content string) (question, error) {
	s.asked++
	q := question{number: s.asked, operation: newID()}
	payload, err := json.Marshal(map[string]any{
		"session_id": "conformance", "agent": "generic", "cwd": s.dir,
		"tool": map[string]any{"name": "write", "kind": "filesystem.write", "args": map[string]string{"content": content, "path": "a.txt"}},
	})
	if err != nil {
		return q, err
	}
	call, err := json.Marshal(events.HookCall{
		V: 1, Operation: q.operation, Secret: string(newID()), Agent: "generic", Event: string(events.BeforeToolCall),
		Stdin: string(payload), PID: os.Getpid(), PPID: os.Getppid(), Cwd: s.dir, Pane: s.pane(),
	})
	if err != nil {
		return q, err
	}
	if q.asker, err = new(net.Dialer).DialContext(ctx, "unix", s.dir+"/core/agent.sock"); err != nil {
		return q, err
	}
	if _, err := q.asker.Write(append(call, '\n')); err != nil {
		return q, err
	}
	err = s.await(ctx, "question", func() bool { return s.found(&q) })
	return q, err
}

// found completes a question that the core has asked; one that the program has
// answered by itself has ended already.
func (s *stage) found(q *question) bool {
	for _, open := range s.rival.Inbox().Questions() {
		if open.Operation == q.operation && open.ID != q.after {
			q.id, q.project, q.session, q.digest, q.at = open.ID, open.Project, open.Session, open.Version.Digest, time.Now()
			return true
		}
	}
	for _, f := range s.relay.so() {
		var live events.Live
		if f.onFeed() && read(f.payload, &live) == nil && live.Asked != nil && live.Asked.Operation == q.operation && live.Asked.ID != q.after {
			q.id, q.project, q.session, q.digest, q.at = live.Asked.ID, live.Asked.Project, live.Asked.Session, live.Asked.Version.Digest, time.Now()
			return true
		}
	}
	return false
}

// verdict waits for what the agent hears.
func (q question) verdict() (events.HookLine, error) {
	if err := q.asker.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return events.HookLine{}, err
	}
	in := bufio.NewReader(q.asker)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return events.HookLine{}, err
		}
		var line events.HookLine
		if err := json.Unmarshal(text, &line); err != nil {
			return line, err
		}
		if !line.Accepted {
			return line, q.asker.Close()
		}
	}
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
