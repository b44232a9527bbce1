package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core/agents"
	genericagent "github.com/fermata-hitl/fermata/core/agents/generic"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/tracing"
)

// leakRules are three hooks for each call: a rule, a program that is waited for,
// and one that only watches.
const leakRules = `version: 1
settings: {max_parallel_hooks: 8}
hooks:
  - id: rule
    event: before_tool_call
    execution: {mode: blocking}
    run: {type: verdict, action: allow}
  - id: program
    event: before_tool_call
    execution: {mode: blocking}
    run: {type: command, argv: [/bin/true]}
  - id: watcher
    event: before_tool_call
    execution: {mode: async}
    run: {type: shell, shell: ":"}
`

// leakAbreast is how many calls are made at once, over so many sessions.
const (
	leakAbreast  = 16
	leakSessions = 20
)

// held is what a process holds: open descriptors, child processes, goroutines.
type held struct{ descriptors, children, goroutines int }

// TestLeaks10000 makes 10,000 calls ([leakCalls]) with three hooks each through a real core,
// which lives in this process together with its askers: socket, engine, hooks,
// log and spans. What the process holds is the same before and after.
func TestLeaks10000(t *testing.T) {
	c := openCore(t, leakRules)
	c.calls(t, 10*leakSessions) // what is opened once is open from here on
	before := c.quiet(t)
	c.calls(t, leakCalls)
	var after held
	err := await("quiet core that holds what it held before", func() error {
		if after = holds(t); after.descriptors > before.descriptors || after.children > before.children || after.goroutines > before.goroutines {
			return errNotYet
		}
		return nil
	})
	if err != nil {
		t.Errorf("before %+v, after %+v: %v", before, after, err)
		describe(t)
	}
	t.Logf("before %+v, after %+v", before, after)
	if got, want := c.runs(t), 3*(leakCalls+10*leakSessions); got != want {
		t.Errorf("%d hooks ran to their end, want %d", got, want)
	}
}

// describe says what is open, for whoever looks for a leak.
func describe(t *testing.T) {
	t.Helper()
	_ = pprof.Lookup("goroutine").WriteTo(t.Output(), 1)
	for _, fd := range names(t, "/proc/self/fd") {
		to, _ := os.Readlink("/proc/self/fd/" + fd)
		t.Log("descriptor", fd, to)
	}
}

// holds counts what this process holds now.
func holds(t *testing.T) held {
	t.Helper()
	h := held{descriptors: len(names(t, "/proc/self/fd")), goroutines: runtime.NumGoroutine()}
	for _, pid := range names(t, "/proc") {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue // no process, or none any more
		}
		// pid (name) state ppid: a name may hold spaces and brackets
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			h.children++
		}
	}
	return h
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	list, err := d.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// leakCore is a core in this process.
type leakCore struct {
	socket string
	log    *journal.Journal
}

// runs counts the hooks' runs that ended well, by the log.
func (c *leakCore) runs(t *testing.T) (n int) {
	t.Helper()
	for r, err := range c.log.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		m, err := events.DecodeMessage(r.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Events {
			if ran, ok := e.(events.HookRan); ok && ran.Outcome == events.RunOK {
				n++
			}
		}
	}
	return n
}

// quiet waits until nothing changes any more, and returns what is held then.
func (c *leakCore) quiet(t *testing.T) (now held) {
	t.Helper()
	still, last := 0, held{}
	must(t, "quiet core", func() error {
		if now = holds(t); now != last || now.children > 0 {
			last, still = now, 0
			return errNotYet
		}
		if still++; still < 50 {
			return errNotYet
		}
		return nil
	})
	return now
}

// openCore opens all rooms of a core but the frontends' door, and closes them
// when the test is over.
func openCore(t *testing.T, rules string) *leakCore {
	t.Helper()
	h := emptyHome(t)
	h.write("hooks.yaml", rules)
	newID := func() events.ID { return engine.NewID(time.Now()) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	server, err := natsd.Start(natsd.Options{StateDir: h.dirs.State, RuntimeDir: h.dirs.Runtime, MaxStore: 4 << 30})
	check(err)
	t.Cleanup(server.Close)
	nc, err := server.Core()
	check(err)
	t.Cleanup(nc.Close)
	token := events.CoreToken("leaks")
	log, err := journal.Open(t.Context(), nc, journal.Options{Core: token, Replicas: 1, MaxBytes: 2 << 30, Now: time.Now, NewID: newID})
	check(err)
	sink, err := tracing.OpenFile(filepath.Join(h.dirs.State, "traces.jsonl"), string(token))
	check(err)
	t.Cleanup(func() { _ = sink.Close() })
	traces, err := tracing.New(tracing.Options{
		StoreID: string(token), Key: tracing.Key{ID: "k1", Secret: []byte(strings.Repeat("k", tracing.KeySize))}, Sink: sink,
	})
	check(err)
	eng := engine.New(engine.Options{
		Log: log, Alone: true, Core: token, Epoch: newID(), Owner: "uid:1", Logger: slog.New(slog.DiscardHandler),
		Rules:    hooks.NewStore(hooks.StoreOptions{GlobalDir: h.dirs.Config}),
		Run:      hooks.NewRunner(hooks.RunnerOptions{TempDir: h.dirs.Runtime, Environ: []string{"PATH=/usr/bin:/bin", "SHELL=/bin/sh"}}),
		Snapshot: filepath.Join(h.dirs.State, "snapshot"),
	})
	check(eng.Recover(t.Context()))
	listener, err := server.ListenAgents()
	check(err)
	socket := agents.NewSocket(agents.SocketOptions{
		Listener: listener, Desk: eng, Stopping: engine.ErrStopped,
		Adapters: map[events.Agent]agents.Adapter{"generic": genericagent.Adapter{}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var rooms sync.WaitGroup
	t.Cleanup(func() { cancel(); rooms.Wait() })
	for name, run := range map[string]func(context.Context) error{
		"engine": eng.Run, "socket": socket.Run,
		"spans": func(ctx context.Context) error {
			return traces.Run(ctx, func(yield func(tracing.Record, error) bool) {
				for r, err := range log.Follow(ctx, 0) {
					if !yield(tracing.Record{Seq: r.Seq, Subject: r.Subject, Data: r.Data}, err) {
						return
					}
				}
			})
		},
	} {
		rooms.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	return &leakCore{socket: h.dirs.agentSocket(), log: log}
}

// calls makes n calls, each of which must be allowed.
func (c *leakCore) calls(t *testing.T, n int) {
	t.Helper()
	next := make(chan int)
	var askers sync.WaitGroup
	for range leakAbreast {
		askers.Go(func() {
			for i := range next {
				if err := c.call("leaks-" + strconv.Itoa(i%leakSessions)); err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	askers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// call is one call as agent-hook makes it, up to the core's goodbye.
func (c *leakCore) call(session string) error {
	conn, err := net.Dial("unix", c.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	id := engine.NewID(time.Now())
	line, err := json.Marshal(events.HookCall{
		V: 1, Operation: id, Secret: string(id), Agent: "generic", Event: string(events.BeforeToolCall),
		Stdin: payload(session, "write", `{"path":"a"}`), PID: os.Getpid(), PPID: os.Getppid(), Cwd: "/",
	})
	if err != nil {
		return err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		var heard events.HookLine
		if err := json.Unmarshal(text, &heard); err != nil {
			return err
		}
		if heard.Accepted {
			continue
		}
		if heard.Exit != 0 {
			return errors.New(heard.Stderr)
		}
		if _, err := fmt.Fprintf(conn, "{\"receipt\":%q}\n", id); err != nil {
			return err
		}
		_, _ = in.ReadByte() // the core closes
		return nil
	}
}
