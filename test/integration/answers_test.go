package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// rounds of TestTwoAnswers.
const rounds = 1000

// TestTwoAnswers has two processes answer each of a thousand questions, one yes
// and one no, taking turns in being first. The core is stopped (SIGSTOP) until
// both answers are in its sockets, so both are on their way before it can reply
// to either. One wins, the other hears who was faster, and what runs is what
// the winner said.
func TestTwoAnswers(t *testing.T) {
	h := newHome(t, askAboutWrites)
	core := h.startCore()
	frontends := []*answerer{h.answerer(t), h.answerer(t)}
	viewer := h.viewer(t)
	var tally struct{ winners, both, none, yes, first int }
	for round := range rounds {
		r := h.race(t, core, viewer, frontends, round)
		switch {
		case r.accepted == 1:
			tally.winners++
		case r.accepted > 1:
			tally.both++
		default:
			tally.none++
		}
		if r.yes {
			tally.yes++
		}
		if r.first {
			tally.first++
		}
	}
	t.Logf("winners %d both %d none %d", tally.winners, tally.both, tally.none)
	t.Logf("%d times the yes was faster, %d times the one that was sent first", tally.yes, tally.first)
	if tally.winners != rounds {
		t.Errorf("%d questions of %d had one winner", tally.winners, rounds)
	}
	h.stopCore()
	e := h.evidence(t)
	t.Run("B12 B5 F1 one answer each in the log", func(t *testing.T) {
		if n := len(facts[events.Response](e)); n != rounds {
			t.Errorf("%d answers in the log, want %d", n, rounds)
		}
		e.checkRuns(t)
	})
	t.Run("B95 B96 one span each", func(t *testing.T) { e.checkSpans(t) })
}

// race is one round.
type race struct {
	accepted int
	yes      bool // the yes won
	first    bool // the one that was sent first won
}

func (h *home) race(t *testing.T, core *process, viewer *frontends.Client, by []*answerer, round int) race {
	t.Helper()
	args := fmt.Sprintf(`{"path":"%d.txt"}`, round)
	call := h.propose(t, payload("two answers", "write", args))
	q := openQuestion(t, viewer, call.Operation)
	for _, f := range by {
		f.tell("list", string(q.ID))
		f.hear("listed", q.ID)
	}
	answers := []events.Answer{events.AnswerContinue, events.AnswerCancel}
	yes := round % 2 // the frontend that says yes
	order := []int{round / 2 % 2, 1 - round/2%2}
	freeze(t, core)
	for _, i := range order {
		by[i].tell("answer", string(q.ID), string(q.Version.Digest), string(answers[(i+yes)%2]))
		by[i].hear("sent", q.ID)
	}
	core.signal(syscall.SIGCONT)
	var r race
	winner := -1
	replies := make([]events.Ack, 2)
	for i, f := range by {
		if err := json.Unmarshal([]byte(f.hear("reply", q.ID)), &replies[i]); err != nil {
			t.Fatal(err)
		}
		if replies[i].Refused == nil {
			r.accepted++
			winner = i
		}
	}
	if r.accepted != 1 {
		t.Errorf("round %d: replies %+v", round, replies)
		_ = call.conn.Close()
		return r
	}
	won := answers[(winner+yes)%2]
	r.yes, r.first = won == events.AnswerContinue, winner == order[0]
	no := replies[1-winner].Refused
	if no.Code != events.RejectAlreadyAnswered || no.Answer != won || no.Who == "" || no.When == 0 {
		t.Errorf("round %d: the loser heard %+v, the winner said %s", round, no, won)
	}
	line, ran := call.verdict()
	if r.yes != (line.Exit == 0) || r.yes != bytes.Equal(ran, []byte(args)) {
		t.Errorf("round %d: %s won, and the agent heard %+v", round, won, line)
	}
	return r
}

// freeze stops a process and returns when it has stopped.
func freeze(t *testing.T, p *process) {
	t.Helper()
	p.signal(syscall.SIGSTOP)
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.pid(), &ws, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			t.Fatalf("wait for %s to stop: %v", p, err)
		case ws.Stopped():
			return
		default:
			t.Fatalf("%s has ended", p)
		}
	}
}

// openQuestion waits until a frontend has the open question of an operation.
func openQuestion(t testing.TB, c *frontends.Client, op events.ID) (q events.Question) {
	t.Helper()
	must(t, "question", func() error {
		for _, q = range c.Inbox().Questions() {
			if q.Operation == op {
				return nil
			}
		}
		return errNotYet
	})
	return q
}

// viewer attaches a frontend to the core from the test itself. It can show
// questions, so that they are asked.
func (h *home) viewer(t testing.TB) *frontends.Client {
	t.Helper()
	c, err := frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", h.dirs.natsSocket())
		},
		ID: engine.NewID(time.Now()), Kind: events.FrontendWeb, Capable: true, Name: "viewer",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the viewer ended: %v", err)
		}
	})
	must(t, "list of questions", func() error {
		if !c.Inbox().Complete() {
			return errNotYet
		}
		return nil
	})
	return c
}

// answerer is a process of answererMain.
type answerer struct {
	t   testing.TB
	p   *process
	in  io.Writer
	out *bufio.Reader
}

func (h *home) answerer(t testing.TB) *answerer {
	t.Helper()
	cmd := h.command("", "answerer")
	cmd.Stdin = nil
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pr, pw := io.Pipe()
	p := h.launchTo(cmd, pw)
	go func() { <-p.ended; _ = pw.Close() }()
	a := &answerer{t: t, p: p, in: in, out: bufio.NewReader(pr)}
	a.hear("attached", "")
	return a
}

func (a *answerer) tell(words ...string) {
	a.t.Helper()
	if _, err := fmt.Fprintln(a.in, strings.Join(words, " ")); err != nil {
		a.t.Fatal(err)
	}
}

// hear reads what the process says next and returns what follows the question.
func (a *answerer) hear(word string, q events.ID) string {
	a.t.Helper()
	line, err := a.out.ReadString('\n')
	if err != nil {
		a.t.Fatalf("the answering process said %q, then: %v: %v", line, err, still(a.p))
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), strings.TrimSpace(word+" "+string(q)))
	if !ok {
		a.t.Fatalf("the answering process said %q, want %s %s", line, word, q)
	}
	return strings.TrimSpace(rest)
}
