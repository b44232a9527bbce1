package agents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

type target struct {
	Path  string   `json:"path"`
	Force bool     `json:"force,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

var remove = agents.Call{Tool: "delete_file", Kind: "filesystem.write", CallID: "c1"}

// runs is a tool that remembers what it was called with.
type runs struct {
	mu   sync.Mutex
	with []target
	err  error
}

func (r *runs) run(_ context.Context, t target) (agents.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.with = append(r.with, t)
	return agents.Result{Text: "gone: " + t.Path}, r.err
}

func (r *runs) want(t *testing.T, paths ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []string
	for _, a := range r.with {
		got = append(got, a.Path)
	}
	if !slices.Equal(got, paths) {
		t.Errorf("the tool ran with %q, want %q", got, paths)
	}
}

func refused(t *testing.T, err error, code events.Code) (r agents.Refused) {
	t.Helper()
	no, ok := errors.AsType[*agents.Refused](err)
	if !ok || no.Code != code || no.Message == "" {
		t.Fatalf("got %#v, want a refusal with the code %s and words for the model", err, code)
	}
	return *no
}

// TestB64ToolRunsWhatWasChecked: the tool gets what the checked bytes say, and
// the right to run is for these bytes.
func TestB64ToolRunsWhatWasChecked(t *testing.T) {
	inPlace(t, func(p *place) {
		s, tool := p.session(), &runs{}
		p.office.decide = with(`{"tags":["a<b"],"path":"b.txt"}`)
		p.office.heard.Context = "mind the others"
		mine := target{Path: "a.txt", Tags: []string{"x"}}
		r, err := agents.Do(p.ctx, s, remove, mine, tool.run)
		if err != nil || r.Text != "gone: b.txt" || r.ExtraContext != "mind the others" {
			t.Errorf("%+v, %v", r, err)
		}
		tool.want(t, "b.txt")
		if mine.Tags[0] != "x" {
			t.Error("B63: the caller's own arguments changed")
		}
		f := p.office.first()
		if f.finished.Ran != f.verdict.Version.Digest || f.finished.Outcome != events.OutcomeOK || f.finished.Result.Text != r.Text {
			t.Errorf("finished %+v", f.finished)
		}
		if string(f.p.Args) != `{"path":"a.txt","tags":["x"]}` || f.p.Tool != (events.Tool{Name: "delete_file", Kind: "filesystem.write", CallID: "c1"}) {
			t.Errorf("proposed %+v", f.p)
		}
		tool.err = errors.New("no such file")
		if _, err := agents.Do(p.ctx, s, remove, mine, tool.run); !errors.Is(err, tool.err) {
			t.Errorf("the tool's own error is %v", err)
		}
		p.told("proposed", "committed", "finished ok", "proposed", "committed", "finished failed")
	})
}

func TestB58B61WhatMayNotRunDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		decide func(core.Proposal) *core.Verdict
		fail   func(string) error
		code   events.Code
		told   []string
	}{
		"declined":                              {declined, nil, events.CodeDeclined, []string{"proposed"}},
		"arguments that the tool does not have": {with(`{"path":"a","dry_run":true}`), nil, events.CodeChangedAfterCheck, []string{"proposed", "withdrawn caller_cancelled"}},
		"arguments of another type":             {with(`{"path":7}`), nil, events.CodeChangedAfterCheck, []string{"proposed", "withdrawn caller_cancelled"}},
		"arguments that are not the checked ones": {func(p core.Proposal) *core.Verdict {
			v := yes(p)
			v.Args = []byte(`{"path":"elsewhere"}`)
			return v
		}, nil, events.CodeChangedAfterCheck, []string{"proposed", "another digest"}},
		"a commit that is refused": {yes, func(what string) error {
			if what == "commit" {
				return &events.Refused{Code: events.RejectWithdrawn, EndReason: events.EndInterrupted}
			}
			return nil
		}, events.CodeEnded, []string{"proposed"}},
		"a full log": {yes, func(what string) error {
			if what == "propose" {
				return &events.Refused{Code: events.RejectLogUnavailable}
			}
			return nil
		}, events.CodeLogUnavailable, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inPlace(t, func(p *place) {
				s, tool := p.session(), &runs{}
				p.office.mu.Lock()
				p.office.decide, p.office.before = c.decide, c.fail
				p.office.mu.Unlock()
				_, err := agents.Do(p.ctx, s, remove, target{Path: "a"}, tool.run)
				refused(t, err, c.code)
				tool.want(t)
				p.told(c.told...)
			})
		})
	}
	inPlace(t, func(p *place) {
		if _, err := agents.Do(p.ctx, p.session(), remove, make(chan int), nil); err == nil || !strings.Contains(err.Error(), "no JSON") {
			t.Errorf("arguments without JSON: %v", err)
		}
		p.told()
	})
}

// A wait has no end of its own; who stops waiting withdraws.
func TestB20WaitsAndWithdrawals(t *testing.T) {
	inPlace(t, func(p *place) {
		s, tool := p.session(), &runs{}
		done := make(chan error, 1)
		go func() { _, err := agents.Do(p.ctx, s, remove, target{Path: "a"}, tool.run); done <- err }()
		<-time.After(49 * time.Hour) // of the bubble's clock
		p.told("proposed")
		p.office.rule(yes)
		must(t, <-done)
		tool.want(t, "a")
		p.told("proposed", "committed", "finished ok")
	})
	why := errors.New("the user pressed a key")
	inPlace(t, func(p *place) {
		s := p.session()
		ctx, cancel := context.WithCancelCause(p.ctx)
		time.AfterFunc(time.Minute, func() { cancel(why) })
		if _, err := agents.Do(ctx, s, remove, target{}, (&runs{}).run); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		p.told("proposed", "withdrawn caller_cancelled")
	})
	inPlace(t, func(p *place) {
		s, call := p.session(), remove
		call.Timeout = 90 * time.Second
		began := time.Now()
		_, err := agents.Do(p.ctx, s, call, target{}, (&runs{}).run)
		refused(t, err, events.CodeCoreUnreachable)
		if took := time.Since(began); took != call.Timeout {
			t.Errorf("it took %v", took)
		}
		if d := p.office.first().p.Deadline; !d.Equal(began.Add(call.Timeout)) {
			t.Errorf("the core knows the deadline %v", d)
		}
		p.told("proposed", "withdrawn caller_cancelled")
	})
	inPlace(t, func(p *place) { // B70
		s := p.session()
		ctx, cancel := context.WithCancelCause(p.ctx)
		time.AfterFunc(time.Minute, func() { cancel(agents.ErrMessageWithdrawn) })
		err := s.Prompt(ctx, agents.Input{Kind: events.KindInjection, Text: "x"}, nil)
		if !errors.Is(err, agents.ErrMessageWithdrawn) {
			t.Errorf("got %v", err)
		}
		p.told("proposed", "observed message_withdrawn")
	})
}

func TestB60B90Prompt(t *testing.T) {
	const text = "say <b>\t日本 \\ \u2028"
	inPlace(t, func(p *place) {
		s := p.session()
		p.office.decide = func(q core.Proposal) *core.Verdict { v := yes(q); v.Reminder = "be kind"; return v }
		var got []string
		submit := func(_ context.Context, text, reminder string) error { got = append(got, text, reminder); return nil }
		must(t, s.Prompt(p.ctx, agents.Input{Text: text, Turn: "t1"}, submit))
		if !slices.Equal(got, []string{text, "be kind"}) {
			t.Errorf("submitted %q", got)
		}
		if q := p.office.first().p; q.Kind != events.KindUserPrompt || q.Turn != "t1" {
			t.Errorf("proposed %+v", q)
		}
		p.office.decide = declined
		for kind, word := range map[events.Kind]string{"": "prompt", events.KindInjection: "injection", events.KindRetryNote: "retry_note"} {
			err := s.Prompt(p.ctx, agents.Input{Kind: kind, Text: text}, submit)
			if r := refused(t, err, events.CodeDeclined); r.Text != text || r.Input != word {
				t.Errorf("%q came back as %+v", kind, r)
			}
		}
		if len(got) != 2 {
			t.Errorf("a refused input was submitted: %q", got)
		}
	})
}

// TestF3CoreRestarts: whatever dies at whatever point, the same operation goes on
// and runs once, or not at all.
func TestF3CoreRestarts(t *testing.T) {
	inPlace(t, func(p *place) {
		s, tool := p.session(), &runs{}
		done := make(chan error, 1)
		go func() { _, err := agents.Do(p.ctx, s, remove, target{Path: "a"}, tool.run); done <- err }()
		<-time.After(time.Minute)
		p.kill()
		<-time.After(10 * time.Second)
		p.start()
		<-time.After(time.Second)
		p.told("proposed", "joined")
		p.office.rule(yes)
		must(t, <-done)
		tool.want(t, "a")
	})
	for name, c := range map[string]struct {
		recorded bool
		ran      []string
	}{"its commit is lost": {false, []string{"a"}}, "the reply to its commit is lost": {true, nil}} {
		inPlace(t, func(p *place) {
			s, tool := p.session(), &runs{}
			cut := sync.OnceValue(func() error {
				p.cut()
				if c.recorded {
					return nil
				}
				return errStopping
			})
			p.office.decide, p.office.before = yes, func(what string) error {
				if what == "commit" {
					return cut()
				}
				return nil
			}
			if !c.recorded {
				first := true
				p.office.before = func(what string) error {
					if what == "commit" && first {
						first = false
						return cut()
					}
					return nil
				}
			}
			_, err := agents.Do(p.ctx, s, remove, target{Path: "a"}, tool.run)
			if c.recorded {
				refused(t, err, events.CodeEnded)
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			tool.want(t, c.ran...)
			if told := p.office.heardSoFar(); !slices.Contains(told, "joined") {
				t.Errorf("%s: the office heard %q, and not the proposal again", name, told)
			}
		})
	}
	inPlace(t, func(p *place) { // it does not come back
		s := p.session()
		done := make(chan error, 1)
		go func() { _, err := agents.Do(p.ctx, s, remove, target{}, (&runs{}).run); done <- err }()
		<-time.After(time.Minute)
		p.kill()
		gone := time.Now()
		refused(t, <-done, events.CodeCoreUnreachable)
		if took := time.Since(gone); took < time.Minute || took > 65*time.Second {
			t.Errorf("it gave up after %v", took)
		}
		_, err := agents.Do(p.ctx, s, remove, target{}, (&runs{}).run)
		refused(t, err, events.CodeCoreUnreachable)
		if took := time.Since(gone); took > 70*time.Second {
			t.Errorf("a new call gave up after %v more", took-time.Minute)
		}
	})
}

// Many calls at once, while connections and cores come and go: each runs once.
func TestF3ManyCallsThroughTrouble(t *testing.T) {
	inPlace(t, func(p *place) {
		const calls = 300
		p.office.decide = func(q core.Proposal) *core.Verdict {
			if len(q.Args)%2 == 0 {
				return yes(q)
			}
			return nil
		}
		s := p.session()
		var ran, lost atomic.Int32
		var all sync.WaitGroup
		var mu sync.Mutex
		seen := map[string]int{}
		for i := range calls {
			all.Go(func() {
				<-time.After(time.Duration(rand.IntN(20_000)) * time.Millisecond)
				_, err := agents.Do(p.ctx, s, remove, target{Path: strings.Repeat("x", i)}, func(_ context.Context, a target) (agents.Result, error) {
					mu.Lock()
					defer mu.Unlock()
					seen[a.Path]++
					ran.Add(1)
					return agents.Result{}, nil
				})
				if r, ok := errors.AsType[*agents.Refused](err); ok && r.Code == events.CodeEnded {
					lost.Add(1) // its commit was recorded and nobody heard: it must not run
				} else if err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			})
		}
		for range 20 {
			<-time.After(time.Second)
			p.cut()
			p.office.rule(yes)
		}
		p.kill()
		<-time.After(5 * time.Second)
		p.start()
		<-time.After(5 * time.Second)
		p.office.rule(yes)
		all.Wait()
		if ran.Load()+lost.Load() != calls || len(seen) != int(ran.Load()) || lost.Load() > calls/10 {
			t.Errorf("%d ran (%d different), %d were refused; %d were called", ran.Load(), len(seen), lost.Load(), calls)
		}
	})
}

func TestSessionsOfTheClient(t *testing.T) {
	inPlace(t, func(p *place) {
		c := p.client()
		root, err := c.Open(p.ctx, agents.SessionOptions{Native: "old", Cwd: "/w"})
		must(t, err)
		child, err := c.Open(p.ctx, agents.SessionOptions{Native: "child", Parent: root})
		must(t, err)
		if here, _ := os.Getwd(); !root.Restored() || child.Restored() || root.Token() == child.Token() || here == "" {
			t.Errorf("root %+v, child %+v", root, child)
		}
		must(t, root.Turn(p.ctx, "t1"))
		must(t, root.Observe(p.ctx, events.SubAgentStart, "main > a#1"))
		must(t, root.Interrupt(p.ctx))
		must(t, root.BuildChanged(p.ctx))
		must(t, root.EndTurn(p.ctx, "t1"))
		must(t, child.Leave(p.ctx))
		must(t, root.Close(p.ctx))
		p.told("observed before_turn", "observed sub_agent_start", "observed user_interrupt", "observed build_changed",
			"observed after_turn", "observed session_changed", "observed session_end")
		r, err := root.Check(p.ctx, remove, target{Path: "x"})
		if err != nil || r.Would != "ask" || !r.Available { // a closed session is opened again
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := c.Open(p.ctx, agents.SessionOptions{Native: ""}); err == nil {
			t.Error("a session without a name was opened")
		}
		c.Close()
		if err := root.Turn(p.ctx, "t2"); !errors.Is(err, agents.ErrClosed) {
			t.Errorf("a closed client says %v", err)
		}
	})
}

func TestWithoutACore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts, began := 0, time.Now()
		_, err := agents.Dial(t.Context(), agents.DialOptions{
			Dial:  func(context.Context) (net.Conn, error) { return nil, io.ErrClosedPipe },
			Start: func() error { starts++; return errors.New("cannot") },
		})
		u, ok := errors.AsType[*agents.Unreachable](err)
		if took := time.Since(began); !ok || !errors.Is(u, io.ErrClosedPipe) || took < 3*time.Second || took > 4*time.Second || starts != 3 {
			t.Errorf("%v after %v and %d starts", err, took, starts)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errStopping)
		silent := func(context.Context) (net.Conn, error) { a, _ := net.Pipe(); return a, nil }
		if _, err := agents.Dial(ctx, agents.DialOptions{Dial: silent}); !errors.Is(err, errStopping) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDefaultSocket(t *testing.T) {
	for _, v := range []string{"FERMATA_RUNTIME_DIR", "XDG_RUNTIME_DIR", "TMPDIR"} {
		t.Setenv(v, "")
	}
	check := func(want string) {
		t.Helper()
		if got, err := agents.DefaultSocket(); err != nil || got != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	check(fmt.Sprintf("/tmp/fermata-%d/nats.sock", os.Getuid()))
	t.Setenv("TMPDIR", "/t/")
	check(fmt.Sprintf("/t/fermata-%d/nats.sock", os.Getuid()))
	t.Setenv("XDG_RUNTIME_DIR", "/run/x")
	check("/run/x/fermata/nats.sock")
	t.Setenv("FERMATA_RUNTIME_DIR", "/r")
	check("/r/nats.sock")
	t.Setenv("FERMATA_RUNTIME_DIR", "r")
	if _, err := agents.DefaultSocket(); err == nil {
		t.Error("a relative directory was taken")
	}
}

// The user's own socket is found by itself, and trusted only in a directory that
// is the user's alone.
func TestDialsTheUsersOwnSocket(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "agents")
	must(t, err)
	defer os.RemoveAll(dir)
	run := filepath.Join(dir, "run")
	server, err := natsd.Start(natsd.Options{StateDir: filepath.Join(dir, "state"), RuntimeDir: run})
	must(t, err)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = server.Run(ctx) }()
	nc, err := server.Doors()
	must(t, err)
	defer nc.Close()
	desk := newOffice()
	desk.decide = yes
	go func() {
		_ = agents.NewDoor(agents.DoorOptions{Desk: desk, Conn: nc, Core: coreToken, Epoch: nobody}).Run(ctx)
	}()
	t.Setenv("FERMATA_RUNTIME_DIR", run)
	c, err := agents.Dial(ctx, agents.DialOptions{})
	must(t, err)
	defer c.Close()
	s, err := c.Open(ctx, agents.SessionOptions{Native: "s"})
	must(t, err)
	tool := &runs{}
	_, err = agents.Do(ctx, s, remove, target{Path: "a"}, tool.run)
	must(t, err)
	tool.want(t, "a")

	must(t, os.Chmod(run, 0o755)) //nolint:gosec // that is what must be refused
	if _, err := agents.Dial(ctx, agents.DialOptions{}); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("an open directory: %v", err)
	}
}
