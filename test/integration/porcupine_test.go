package integration_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// The crowd of TestPorcupine.
const (
	crowdSeats    = 8
	crowdSessions = 8
	crowdAbreast  = 48 // questions open at once
	crowdPersons  = 2  // at each frontend
)

// porcupine8 has eight frontends answer so many questions of a core that is a process
// of its own, over its sockets, while frontends are killed, restarted, cut off and
// halted at random. Their people claim, give back, take over, answer with and without
// a claim, with a made-up one, twice, and late; agents go away in between. What
// everybody did and heard about each question must be explained by one order in which
// everything happened at once (porcupine).
func porcupine8(t *testing.T, questions int) {
	t.Helper()
	h := newHome(t, askAboutWrites)
	h.startCore()
	w := newCrowd(t, h)
	w.questions = questions
	began := time.Now()
	w.work()
	t.Logf("%d questions in %v; frontends killed %d, left %d, cut off %d, halted %d", questions, time.Since(began).Round(time.Millisecond),
		w.faults[0].Load(), w.faults[1].Load(), w.faults[2].Load(), w.faults[3].Load())
	w.checkClosed()
	w.leave()
	h.stopCore()
	w.check()
}

// deed is what somebody tried with one question.
type deed struct {
	question events.ID
	verb     string // claim, release, answer, late, withdraw, see
	who      events.ID
	token    uint64
	answer   events.Answer
}

// echo is what they heard: the claim that was granted, or how the question ended.
type echo struct {
	lost   bool // nothing: whether it was done is not known
	code   events.Reject
	token  uint64
	answer events.Answer
	reason events.EndReason // of a question that ended without an answer
}

// slip is one question of the specification: open and held by at most one, answered
// for ever, or withdrawn for ever.
type slip struct {
	holder events.ID
	token  uint64 // someToken: granted, and nobody heard which
	by     events.ID
	answer events.Answer
	reason events.EndReason
}

const someToken = math.MaxUint64

func (s slip) open() bool { return s.answer == "" && s.reason == "" }

// crowdModel is the specification of all questions. Every frontend is the same
// person's, so a claim of an open question is always granted.
var crowdModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		parts := map[events.ID][]porcupine.Operation{}
		for _, op := range all {
			q := op.Input.(deed).question
			parts[q] = append(parts[q], op)
		}
		list := make([][]porcupine.Operation, 0, len(parts))
		for _, p := range parts {
			list = append(list, p)
		}
		return list
	},
	Init: func() any { return slip{} },
	Step: func(state, input, output any) (bool, any) {
		s, d, h := state.(slip), input.(deed), output.(echo)
		if h.lost {
			return true, s.perhaps(d)
		}
		if !s.open() {
			return s.isEcho(d, h), s
		}
		return s.step(d, h)
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
}

// step is a deed with an open question.
func (s slip) step(d deed, h echo) (bool, slip) {
	switch d.verb {
	case "claim":
		again := s.holder == d.who && (s.token == h.token || s.token == someToken)
		fresh := s.holder != d.who && (h.token > s.token || s.token == someToken)
		s.holder, s.token = d.who, h.token
		return h.code == "" && (again || fresh), s
	case "release":
		if s.holder == d.who && s.token == d.token {
			s.holder = ""
		}
		return h.code == "", s
	case "answer":
		if d.token != 0 && (s.holder != d.who || s.token != d.token) {
			return h.code == events.RejectNotClaimer, s
		}
		s.by, s.answer = d.who, d.answer
		return h.code == "", s
	case "withdraw":
		s.reason = h.reason
		return h.reason != "", s
	}
	return false, s
}

// isEcho reports whether a deed with a question that is over got the answer that it
// must get: the first one's again, or who was faster. A claim that is given back
// while its question ends may hear that it is.
func (s slip) isEcho(d deed, h echo) bool {
	switch {
	case d.verb == "answer" && s.answer == d.answer && s.by == d.who:
		return h.code == ""
	case d.verb == "release" && h.code == "":
		return true
	}
	if s.answer != "" {
		h.code = cmpOr(d.verb == "see" || d.verb == "withdraw", events.RejectAlreadyAnswered, h.code)
		return h.code == events.RejectAlreadyAnswered && h.answer == s.answer
	}
	h.code = cmpOr(d.verb == "see", events.RejectWithdrawn, h.code)
	return h.code == events.RejectWithdrawn && h.reason == s.reason
}

func cmpOr[T any](is bool, a, b T) T {
	if is {
		return a
	}
	return b
}

// perhaps is a deed of which nobody heard. If it never happened, it has a place
// behind everything else, where it changes nothing.
func (s slip) perhaps(d deed) slip {
	switch {
	case !s.open():
	case d.verb == "claim" && s.holder != d.who:
		s.holder, s.token = d.who, someToken
	case d.verb == "release" && s.holder == d.who && s.token == d.token:
		s.holder = ""
	case d.verb == "answer" && (d.token == 0 || s.holder == d.who && s.token == d.token):
		s.by, s.answer = d.who, d.answer
	}
	return s
}

// crowd is eight frontends and a witness, their people, and the agents.
type crowd struct {
	t         *testing.T
	h         *home
	questions int // that are asked
	seats     []*seat
	witness   *frontends.Client
	clock     atomic.Int64
	faults    [4]atomic.Int64

	mu      sync.Mutex
	history []porcupine.Operation
	asked   map[events.ID]chan struct{} // by operation: its question is on a screen
	ran     map[events.ID]bool          // by operation: what its agent was told
	gone    map[events.ID]int64         // by operation: when its agent went away
	seen    map[events.ID]int64         // by question: when its end had arrived
	latest  []events.ID                 // questions that were open of late
}

func newCrowd(t *testing.T, h *home) *crowd {
	t.Helper()
	w := &crowd{
		t: t, h: h,
		asked: map[events.ID]chan struct{}{}, ran: map[events.ID]bool{}, gone: map[events.ID]int64{}, seen: map[events.ID]int64{},
	}
	for range crowdSeats {
		s := &seat{w: w}
		s.sit()
		w.seats = append(w.seats, s)
	}
	w.witness = h.viewer(t)
	for _, s := range w.seats {
		must(t, "attached frontend", func() error {
			if !s.now().c.Inbox().Complete() {
				return errNotYet
			}
			return nil
		})
	}
	return w
}

// work has all questions asked and settled.
func (w *crowd) work() {
	ctx, cancel := context.WithCancel(w.t.Context())
	var around, agents sync.WaitGroup
	around.Go(func() { w.watch(ctx) })
	around.Go(func() { w.trouble(ctx) })
	for i, s := range w.seats {
		for n := range crowdPersons {
			around.Go(func() { s.person(ctx, rand.New(rand.NewPCG(uint64(i), uint64(n)))) })
		}
	}
	var next atomic.Int64
	for i := range crowdAbreast {
		agents.Go(func() {
			random := rand.New(rand.NewPCG(99, uint64(i)))
			for n := next.Add(1); n <= int64(w.questions) && !w.t.Failed(); n = next.Add(1) {
				w.agent(int(n), random)
			}
		})
	}
	agents.Wait()
	cancel()
	around.Wait()
}

// agent makes one call. One of ten agents goes away as soon as its question is on a
// screen, or a moment later.
func (w *crowd) agent(n int, random *rand.Rand) {
	args := fmt.Sprintf(`{"n":%d}`, n)
	op, shown := freshID(), make(chan struct{})
	w.mu.Lock()
	w.asked[op] = shown
	w.mu.Unlock()
	a := w.h.proposeAs(w.t, op, payload(fmt.Sprintf("s%d", n%crowdSessions), "write", args))
	if random.IntN(10) == 0 {
		select {
		case <-shown:
		case <-time.After(patience):
			w.t.Errorf("call %d is on no screen", n)
		}
		<-time.After(time.Duration(random.IntN(2000)) * time.Microsecond)
		w.mu.Lock()
		w.gone[op] = w.clock.Add(1)
		w.mu.Unlock()
		_ = a.conn.Close()
		return
	}
	line, ran := a.verdict()
	if (line.Exit == 0) != (string(ran) == args) {
		w.t.Errorf("call %d: %+v", n, line)
	}
	w.mu.Lock()
	w.ran[op] = line.Exit == 0
	w.mu.Unlock()
}

// watch notes what the witness sees.
func (w *crowd) watch(ctx context.Context) {
	for u, err := range w.witness.Updates(ctx) {
		switch {
		case err != nil:
			return
		case u.Kind == frontends.KindAsked:
			if q, open := w.witness.Inbox().Question(u.Question); open {
				w.show(q.Operation)
			}
		case u.Kind == frontends.KindLine: // it was over before the witness looked
			w.show(u.Operation)
		case u.Kind == frontends.KindEnded:
			w.see(u.Question)
		case u.Kind == frontends.KindResynced:
			for _, q := range w.witness.Inbox().Questions() {
				w.show(q.Operation)
			}
		}
	}
}

func (w *crowd) show(op events.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if shown := w.asked[op]; shown != nil {
		close(shown)
		delete(w.asked, op)
	}
}

func (w *crowd) see(q events.ID) {
	end, known := w.witness.Inbox().Ended(q)
	if !known {
		return
	}
	e := echo{answer: end.Answer}
	if end.Answer == "" {
		e.reason = end.Reason
	}
	call := w.clock.Add(1)
	w.note(deed{question: q, verb: "see"}, e, call, w.clock.Add(1))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[q] = call
	w.latest = append(w.latest, q)
	w.latest = w.latest[max(0, len(w.latest)-64):]
}

func (w *crowd) note(d deed, e echo, call, back int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, porcupine.Operation{Input: d, Call: call, Output: e, Return: back})
}

// trouble kills, closes, cuts off and halts frontends, one after another. The last
// seat is never killed, so that somebody is always there to be asked.
func (w *crowd) trouble(ctx context.Context) {
	random := rand.New(rand.NewPCG(7, 7))
	for ctx.Err() == nil {
		<-time.After(time.Duration(10+random.IntN(50)) * time.Millisecond)
		s, what := w.seats[random.IntN(crowdSeats)], random.IntN(4)
		if s == w.seats[crowdSeats-1] {
			what |= 2
		}
		w.faults[what].Add(1)
		switch what {
		case 0:
			s.now().kill()
			s.sit()
		case 1:
			s.now().leave()
			s.sit()
		case 2:
			s.now().wire.cut()
		case 3:
			s.now().wire.halt(time.Duration(random.IntN(200)) * time.Millisecond)
		}
	}
}

// checkClosed: every dialog of every frontend is closed, and as the witness says.
func (w *crowd) checkClosed() {
	for i, s := range w.seats {
		inbox := s.now().c.Inbox()
		must(w.t, fmt.Sprintf("empty list on frontend %d", i), func() error {
			if n := len(inbox.Questions()); n > 0 || !inbox.Complete() {
				return fmt.Errorf("%d questions are open: %w", n, errNotYet)
			}
			return nil
		})
		for q := range w.seen {
			ours, known := inbox.Ended(q)
			theirs, _ := w.witness.Inbox().Ended(q)
			if known && theirs.Question == q && (ours.Answer != theirs.Answer || ours.Reason != theirs.Reason) {
				w.t.Errorf("question %s ended %+v on one screen and %+v on another", q, ours, theirs)
			}
		}
	}
	must(w.t, "an empty core", func() error {
		if st, err := w.h.status(); err != nil || st.Open != 0 {
			return fmt.Errorf("%+v, %w", st, errNotYet)
		}
		return nil
	})
}

func (w *crowd) leave() {
	for _, s := range w.seats {
		s.now().leave()
	}
}

// check holds the history and the log against each other.
func (w *crowd) check() {
	t := w.t
	seed, err := os.ReadFile(filepath.Join(w.h.dirs.State, "keys", "core"))
	if err != nil {
		t.Fatal(err)
	}
	var e evidence
	e.readLog(t, w.h, events.CoreToken(string(seed)))
	ends, committed := e.endings(), map[events.ID]int{}
	for _, f := range facts[events.OperationCommitted](e) {
		committed[f.Message.Operation]++
	}
	for _, f := range facts[events.Request](e) {
		w.settle(f.Event.ID, f.Message.Operation, ends[f.Event.ID], committed[f.Message.Operation])
	}
	if len(ends) != w.questions {
		t.Errorf("%d questions in the log, want %d", len(ends), w.questions)
	}
	for _, part := range crowdModel.Partition(w.history) {
		if how := porcupine.CheckOperationsTimeout(crowdModel, part, 5*time.Second); how != porcupine.Ok {
			t.Fatalf("%s: no order explains this history:%s", how, chronicle(part))
		}
	}
	if !t.Failed() {
		t.Logf("history ok: %d deeds with %d questions, none lost, none answered twice", len(w.history), len(ends))
	}
}

// settle: one end, the asker was told what it says, and what was allowed was given
// once. The agents that went away become a part of the history.
func (w *crowd) settle(q, op events.ID, ends []ending, committed int) {
	if len(ends) != 1 {
		w.t.Errorf("question %s ended %d times: %v", q, len(ends), ends)
		return
	}
	end, yes := ends[0], ends[0].reason == events.EndContinue
	at, gone := w.gone[op]
	if !gone {
		ran, told := w.ran[op]
		if !told || ran != yes || end.result != events.ResultAnswered || committed != cmpOr(yes, 1, 0) {
			w.t.Errorf("question %s ended %v; its agent was told: %v, to run: %v; %d commits", q, end, told, ran, committed)
		}
		return
	}
	e := echo{answer: map[events.EndReason]events.Answer{events.EndContinue: events.AnswerContinue, events.EndCancel: events.AnswerCancel}[end.reason]}
	if end.result != events.ResultAnswered {
		if e.reason = end.reason; end.reason != events.EndAgentGone && end.reason != events.EndCallerCancelled {
			w.t.Errorf("question %s ended %v", q, end)
		}
	}
	w.note(deed{question: q, verb: "withdraw"}, e, at, max(at+1, w.seen[q]))
}

// chronicle is the history of one question, a line for each deed.
func chronicle(part []porcupine.Operation) string {
	slices.SortFunc(part, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, op := range part {
		fmt.Fprintf(&text, "\n%d–%d %+v → %+v", op.Call, op.Return, op.Input, op.Output)
	}
	return text.String()
}

// seat is a place for one frontend after another.
type seat struct {
	w *crowd

	mu   sync.Mutex
	life *life
}

// life is a frontend from its start to its end. What its people were about when it
// ended, nobody knows.
type life struct {
	c      *frontends.Client
	id     events.ID
	wire   *wire
	ctx    context.Context // of its people's calls
	end    context.CancelFunc
	cancel context.CancelFunc
	ended  chan struct{}
}

func (s *seat) now() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// sit starts a frontend.
func (s *seat) sit() {
	l := &life{id: freshID(), wire: &wire{socket: s.w.h.dirs.natsSocket()}, ended: make(chan struct{})}
	var err error
	l.c, err = frontends.New(frontends.Options{Dial: l.wire.dial, ID: l.id, Kind: events.FrontendTUI, Capable: true, Name: "one of many"})
	if err != nil {
		s.w.t.Error(err)
		return
	}
	run, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.ctx, l.end = context.WithCancel(context.Background())
	go func() {
		defer close(l.ended)
		if err := l.c.Run(run); err != nil {
			s.w.t.Errorf("a frontend ended: %v", err)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life = l
}

// kill ends a frontend without a goodbye.
func (l *life) kill() {
	l.wire.die()
	l.leave()
}

// leave ends a frontend as its person does.
func (l *life) leave() {
	l.end()
	l.cancel()
	<-l.ended
}

// wire is the way of one frontend to the core. It can be cut and be halted.
type wire struct {
	socket string
	cuts   atomic.Int64
	pause  sync.RWMutex // held while nothing passes

	mu   sync.Mutex
	conn net.Conn
	dead bool
}

func (w *wire) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", w.socket)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	w.conn = conn
	return &slow{conn, &w.pause}, nil
}

func (w *wire) cut() {
	w.cuts.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		_ = w.conn.Close()
	}
}

func (w *wire) die() {
	w.mu.Lock()
	w.dead = true
	w.mu.Unlock()
	w.cut()
}

func (w *wire) halt(d time.Duration) {
	w.pause.Lock()
	defer w.pause.Unlock()
	<-time.After(d)
}

// slow lets nothing pass while its wire is halted.
type slow struct {
	net.Conn
	pause *sync.RWMutex
}

// Read implements net.Conn.
func (s *slow) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.pause.RLock()
	defer s.pause.RUnlock()
	return n, err
}

// Write implements net.Conn.
func (s *slow) Write(b []byte) (int, error) {
	s.pause.RLock()
	defer s.pause.RUnlock()
	return s.Conn.Write(b)
}

// person goes on answering whatever is oldest, and now and then what is over.
func (s *seat) person(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		p := person{s.w, s.now(), random}
		open := p.c.Inbox().Questions()
		if p.ctx.Err() != nil {
			open = nil
		}
		late := p.late()
		switch {
		case late != "" && random.IntN(40) == 0:
			p.isLate(late)
		case len(open) == 0:
			<-time.After(time.Millisecond)
		default:
			p.play(open[random.IntN(len(open))])
		}
	}
}

// person is somebody at a frontend, for the length of one decision.
type person struct {
	w *crowd
	*life
	random *rand.Rand
}

func (p person) late() events.ID {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if len(p.w.latest) == 0 {
		return ""
	}
	return p.w.latest[p.random.IntN(len(p.w.latest))]
}

// play is one person's way with a question.
func (p person) play(q events.Question) {
	switch p.random.IntN(20) {
	default:
		if token := p.claims(q.ID); token != 0 {
			p.answers(q.ID, q.Version.Digest, token)
		}
	case 0, 1, 2, 3, 4, 5:
		p.answers(q.ID, q.Version.Digest, 0)
	case 6: // a look, and away
		if token := p.claims(q.ID); token != 0 {
			p.releases(q.ID, token)
		}
	case 7: // a made-up claim
		p.answers(q.ID, q.Version.Digest, 1+p.random.Uint64N(1<<40))
	case 8: // claims and goes silent
		p.claims(q.ID)
	case 9: // everything at once
		var all sync.WaitGroup
		for range 2 {
			other := person{p.w, p.life, rand.New(rand.NewPCG(p.random.Uint64(), 1))}
			all.Go(func() { other.claims(q.ID) })
			all.Go(func() { other.answers(q.ID, q.Version.Digest, 0) })
		}
		all.Wait()
	}
}

func (p person) claims(q events.ID) (token uint64) {
	p.does(deed{question: q, verb: "claim"}, func() (uint64, error) {
		var err error
		token, err = p.c.Claim(p.ctx, q)
		return token, err
	})
	return token
}

func (p person) releases(q events.ID, token uint64) {
	p.does(deed{question: q, verb: "release", token: token}, func() (uint64, error) {
		return 0, p.c.Release(p.ctx, q, token)
	})
}

// isLate answers what is over, and something else than was asked.
func (p person) isLate(q events.ID) {
	p.does(deed{question: q, verb: "late"}, func() (uint64, error) {
		_, err := p.c.Answer(p.ctx, events.Respond{Question: q, Digest: events.DigestOf([]byte("{}")), Answer: events.AnswerContinue, Human: true})
		return 0, err
	})
}

// answers gives an answer, and now and then the same again.
func (p person) answers(q events.ID, digest events.Digest, token uint64) {
	r := events.Respond{Question: q, Digest: digest, Claim: token, Answer: events.AnswerContinue, Human: true}
	if p.random.IntN(2) == 0 {
		r.Answer = events.AnswerCancel
	}
	for range 1 + p.random.IntN(4)/3 {
		p.does(deed{question: q, verb: "answer", token: token, answer: r.Answer}, func() (uint64, error) {
			_, err := p.c.Answer(p.ctx, r)
			return 0, err
		})
	}
}

// does notes a deed and what came of it. When the wire was cut meanwhile, the
// client has said it again, and the first time may have counted too.
func (p person) does(d deed, do func() (uint64, error)) {
	if p.ctx.Err() != nil { // nothing is sent any more
		return
	}
	d.who = p.id
	cuts, call := p.wire.cuts.Load(), p.w.clock.Add(1)
	token, err := do()
	back := p.w.clock.Add(1)
	e := echo{token: token}
	var no *events.Refused
	switch {
	case errors.As(err, &no):
		e = echo{code: no.Code, answer: no.Answer, reason: no.EndReason}
	case err != nil:
		e = echo{lost: true}
	}
	if e.lost || d.verb == "claim" && cuts != p.wire.cuts.Load() {
		p.w.note(d, echo{lost: true}, call, math.MaxInt64)
	}
	if !e.lost {
		p.w.note(d, e, call, back)
	}
}
