package core

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

// machine drives one operation with random commands, in and out of turn, and
// keeps what the log says of it so far.
type machine struct {
	st        *story
	kind      events.Kind
	hooks     map[events.Digest][]events.Hook // of each configuration
	watch     map[events.Digest][]WatchHook
	config    events.Digest // that is effective now
	asked     int
	runs      int
	snapshots []snapshot

	ends      map[events.ID]int
	newest    events.Version
	checked   events.Version
	rechecks  int
	committed int
	over      bool
	open      map[events.ID]bool // runs that decide nothing: true while they run
	said      []string           // reminders of the pass that counts
}

// snapshot is a state and how it looked when it was current.
type snapshot struct {
	s    State
	look string
}

func newMachine(t *rapid.T) *machine {
	m := &machine{
		st:    newStory(t),
		hooks: map[events.Digest][]events.Hook{}, config: confA, ends: map[events.ID]int{},
		watch: map[events.Digest][]WatchHook{}, open: map[events.ID]bool{},
		kind: rapid.SampledFrom([]events.Kind{
			events.KindToolCall, events.KindToolCall, events.KindToolCall, events.KindUserPrompt, events.KindInjection,
		}).Draw(t, "kind"),
	}
	for _, config := range []events.Digest{confA, confB} {
		for i := range rapid.SampledFrom([]int{4, 3, 2, 1, 0}).Draw(t, "hooks") {
			m.hooks[config] = append(m.hooks[config], hook(i))
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "watchers") {
			m.watch[config] = append(m.watch[config], WatchHook{Hook: hook(10 + i), Mode: events.ModeFireAndForget, Durable: i == 1})
		}
	}
	return m
}

// plan matches every second hook only on arguments of odd length, as a filter
// on arguments would.
func (m *machine) plan(config events.Digest, args []byte) Plan {
	p := Plan{Config: config, Watch: m.watch[config]}
	for _, h := range m.hooks[config] {
		if h.Index%2 == 0 || len(args)%2 == 1 {
			p.Hooks = append(p.Hooks, h)
		}
	}
	return p
}

func (m *machine) next(args []byte) Next {
	m.runs++
	config := m.st.s.Config
	if m.st.s.Phase == PhaseNone {
		config = confA
	}
	n := Next{Plan: m.plan(config, args), Run: events.ID(fmt.Sprintf("01k0000000000000000r%06d", m.runs)), Available: true}
	for i := range 2 {
		n.Watch = append(n.Watch, events.ID(fmt.Sprintf("01k0000000000000000w%05d%d", m.runs, i)))
	}
	if m.config != config {
		fresh := m.plan(m.config, args)
		n.Fresh = &fresh
	}
	return n
}

var (
	genText      = rapid.SampledFrom([]string{`"fix the cache"`, `""`, `"go\non"`})
	genArgs      = rapid.SampledFrom([]string{`{"a":1}`, `{"a":2}`, `{"a":33}`, `{"a":44}`, `{"a":5,"b":6}`, `{}`, `[1]`})
	genFrontend  = rapid.SampledFrom([]events.ID{tui, web})
	genPrincipal = rapid.SampledFrom([]string{ana, ana, ana, bob})
	genAnswer    = rapid.SampledFrom([]events.Answer{
		events.AnswerContinue, events.AnswerContinue, events.AnswerContinue, events.AnswerContinue,
		events.AnswerCancel, events.AnswerClientCancels, events.AnswerOnce, "nonsense",
	})
	genEffect = rapid.SampledFrom([]events.Effect{
		events.EffectAsk, events.EffectModify, events.EffectAsk, events.EffectModify, events.EffectAsk, events.EffectModify,
		events.EffectAsk, events.EffectModify, events.EffectAllow, events.EffectAllow, events.EffectError, events.EffectBlock,
	})
	genWithdrawal = rapid.SampledFrom(append(events.EndReasons(events.ResultWithdrawn), events.EndInternal))
	genEnd        = rapid.SampledFrom([]events.EndReason{
		events.EndDeadline, events.EndNoFrontend, events.EndUnclaimed, events.EndStoreError, events.EndInternal,
	})
)

// rarely is true once in ten draws. (Numbers will not do: rapid prefers small
// ones, and the front of lists.)
func rarely(t *rapid.T, what string) bool {
	return rapid.SampledFrom([]bool{false, false, false, false, false, false, false, false, false, true}).Draw(t, what)
}

// question is mostly the open one, sometimes an old or a foreign one.
func (m *machine) question(t *rapid.T) events.ID {
	if !rarely(t, "another question") || m.asked == 0 {
		return m.st.s.Question.ID
	}
	return questionID(rapid.IntRange(0, m.asked).Draw(t, "old"))
}

func questionID(n int) events.ID { return events.ID(fmt.Sprintf("01k0000000000000000q%06d", n)) }

func (m *machine) propose(t *rapid.T) Command {
	args := genArgs.Draw(t, "args")
	if m.kind != events.KindToolCall {
		args = genText.Draw(t, "text")
	}
	p := propose1(args, m.next([]byte(args)))
	p.Op.Kind = m.kind
	switch {
	case rarely(t, "too late"):
		p.End = events.EndTurnEnded
	case rarely(t, "stranger"):
		p.Op.Secret = "a stranger's"
	case rarely(t, "too large"):
		p.Args, p.Refuse, p.Reason = nil, events.CodeTooLarge, "5 MiB, at most 4 MiB fit"
	}
	return p
}

func (m *machine) hookDone(t *rapid.T) Command {
	s := m.st.s
	c := HookDone{Run: s.Run.Run, Effect: genEffect.Draw(t, "effect"), Outcome: events.RunOK, Reason: "because", Stderr: "x"}
	if rarely(t, "stale") {
		c.Run = "01k0000000000000000000gone"
	}
	if m.kind != events.KindToolCall { // nothing can change an input
		if c.Effect == events.EffectModify {
			c.Effect = events.EffectAllow
		}
		c.Reminder = rapid.SampledFrom([]string{"", "today is Monday", "be brief"}).Draw(t, "reminder")
	} else if c.Effect == events.EffectModify || c.Effect == events.EffectAsk && rapid.Bool().Draw(t, "override") {
		c.Args = []byte(genArgs.Draw(t, "args"))
	}
	if c.Effect == events.EffectAsk {
		m.asked++
		c.Ask = &Ask{
			Question: questionID(m.asked), Gate: events.GateHook, WhenNobody: events.NobodyReject,
			Available: !rarely(t, "nobody"), Deadline: events.Micros(rapid.IntRange(0, 1).Draw(t, "deadline")),
		}
		if rarely(t, "a repeat") {
			c.Ask.Repeat = &Repeat{Code: events.CodeDeclined, Question: "01k0000000000000000000earl", Words: "no means no"}
		}
	}
	after := s.Args()
	if c.Args != nil {
		after = c.Args
	}
	c.Next = m.next(after)
	return c
}

func (m *machine) answer(t *rapid.T) Command {
	s := m.st.s
	a := Answer{
		Question: m.question(t), Frontend: genFrontend.Draw(t, "frontend"), Principal: genPrincipal.Draw(t, "principal"),
		Digest: s.Current().Digest, Answer: genAnswer.Draw(t, "answer"), Human: !rarely(t, "robot"),
		Text: rapid.SampledFrom([]string{"", "use the mirror"}).Draw(t, "text"), Repeats: s.Question.Rejected, Next: m.next(s.Args()),
	}
	switch rapid.IntRange(0, 9).Draw(t, "how") {
	case 0:
		a.Digest = confA
	case 1:
		a.Claim = 1
	case 2, 3, 4, 5:
		a.Claim, a.Frontend = s.Question.Claim().Seq, s.Question.Claim().Frontend
	}
	return a
}

// forward is what an undisturbed run of things would bring next. Without it
// few histories would get far.
func (m *machine) forward(t *rapid.T) Command {
	s := m.st.s
	switch {
	case s.Phase == PhaseNone:
		return m.propose(t)
	case s.Phase == PhaseHook:
		return m.hookDone(t)
	case s.Phase == PhaseAsking && s.Question.Claim().Seq == 0:
		return yes(s, m.next(s.Args()))
	case s.Phase == PhaseAsking:
		a := yes(s, m.next(s.Args()))
		a.Frontend, a.Principal, a.Claim = s.Question.Claim().Frontend, s.Question.Claim().Principal, s.Question.Claim().Seq
		return a
	case s.Phase == PhaseCommitted && !s.Delivered:
		return Receipt{}
	}
	return Finish{Outcome: events.OutcomeOK}
}

// actions are what rapid picks from.
func (m *machine) actions() map[string]func(*rapid.T) {
	run := func(draw func(*rapid.T) Command) func(*rapid.T) {
		return func(t *rapid.T) { m.do(t, draw(t)) }
	}
	return map[string]func(*rapid.T){
		"forward": run(m.forward), "forward 2": run(m.forward), "forward 3": run(m.forward), "forward 4": run(m.forward),
		"forward 5": run(m.forward), "forward 6": run(m.forward), "forward 7": run(m.forward), "forward 8": run(m.forward),
		"propose": run(m.propose), "hook done": run(m.hookDone), "answer": run(m.answer),
		"abandon": run(func(*rapid.T) Command { return Abandon{Next: m.next(m.st.s.Args())} }),
		"present": run(func(t *rapid.T) Command {
			return Present{Question: m.question(t), Frontend: genFrontend.Draw(t, "frontend"), At: 5}
		}),
		"claim": run(func(t *rapid.T) Command {
			return TakeClaim{Question: m.question(t), Frontend: genFrontend.Draw(t, "frontend"), Principal: genPrincipal.Draw(t, "principal")}
		}),
		"release": run(func(t *rapid.T) Command {
			return Release{Question: m.question(t), Frontend: genFrontend.Draw(t, "frontend"), Reason: events.ReleasedLapsed}
		}),
		"end question": run(func(t *rapid.T) Command {
			if !rarely(t, "this one") {
				return EndQuestion{Question: "01k0000000000000000000gone", Reason: events.EndDeadline}
			}
			return EndQuestion{Question: m.question(t), Reason: genEnd.Draw(t, "end")}
		}),
		"withdraw": run(func(t *rapid.T) Command {
			if !rarely(t, "at all") {
				return Receipt{}
			}
			return Withdraw{Reason: genWithdrawal.Draw(t, "reason")}
		}),
		"finish": run(func(t *rapid.T) Command {
			return Finish{Outcome: rapid.SampledFrom([]events.Outcome{events.OutcomeOK, events.OutcomeUnknown}).Draw(t, "outcome")}
		}),
		"commit": run(func(t *rapid.T) Command {
			if rarely(t, "something else") {
				return Commit{Digest: confA}
			}
			return Commit{Digest: m.st.s.Current().Digest}
		}),
		"record": func(t *rapid.T) {
			if m.st.s.Phase != PhaseNone {
				m.do(t, m.record(t))
			}
		},
		"configure": func(t *rapid.T) { m.config = rapid.SampledFrom([]events.Digest{confA, confB}).Draw(t, "config") },
		"":          func(t *rapid.T) { m.invariants(t) },
	}
}

// record ends runs that nothing waits for, some of them for the second time, or
// begins one of an observed event.
func (m *machine) record(t *rapid.T) Command {
	var c Record
	for _, id := range slices.Sorted(maps.Keys(m.open)) {
		if rapid.Bool().Draw(t, "ends") {
			c.Events = append(c.Events, events.HookRan{Run: id, Hook: hook(10), Effect: events.EffectAllow, Outcome: events.RunOK, Mode: events.ModeAsync})
		}
	}
	if rapid.Bool().Draw(t, "begins") {
		m.runs++
		c.Events = append(c.Events, events.HookStarted{
			Run: events.ID(fmt.Sprintf("01k0000000000000000e%06d", m.runs)), Hook: hook(20), Event: events.AfterToolCall,
		})
	}
	return c
}

func (m *machine) do(t *rapid.T, c Command) {
	before := m.st.s
	m.snapshots = append(m.snapshots, snapshot{before, fmt.Sprintf("%+v", before)})
	d1, err1 := Decide(before, c)
	d2, err2 := Decide(before, c)
	if !reflect.DeepEqual(d1, d2) || fmt.Sprint(err1) != fmt.Sprint(err2) {
		t.Fatalf("%T is decided in two ways", c)
	}
	var refused *events.Refused
	if err1 != nil && !errors.As(err1, &refused) {
		t.Fatalf("%+v\nis no fault of the caller: %v", c, err1)
	}
	for _, b := range d1.Bodies {
		if strings.HasPrefix(b.Key, events.ReminderBody("")) {
			m.said = append(m.said, string(b.Data))
		}
	}
	for _, e := range d1.Events {
		if !m.observeRun(t, e) {
			m.observe(t, e)
		}
	}
	m.st.write(d1)
}

// observeRun follows the runs that decide nothing: each begins once and ends
// once, and a watcher begins with the commit.
func (m *machine) observeRun(t *rapid.T, e events.Event) bool {
	if s, ok := e.(events.HookStarted); ok && !s.AtGate() {
		if _, again := m.open[s.Run]; again || s.Event == "" && (m.committed != 1 || m.over || s.Available) {
			t.Fatalf("%+v begins; committed %d, over %v", s, m.committed, m.over)
		}
		m.open[s.Run] = true
		return true
	}
	if r, ok := e.(events.HookRan); ok && !r.AtGate() {
		if !m.open[r.Run] {
			t.Fatalf("%+v ends and does not run", r)
		}
		m.open[r.Run] = false
		return true
	}
	return false
}

// observe follows the log as a stranger would, who knows nothing of State.
func (m *machine) observe(t *rapid.T, e events.Event) {
	if m.over {
		switch e.(type) {
		case events.HookRan, events.AnswerRejected, events.OperationDelivered, events.OperationFinished:
		default:
			t.Fatalf("%s behind the end", e.EventType())
		}
	}
	switch e := e.(type) {
	case events.OperationProposed:
		m.newest = e.Version
	case events.ArgumentsChanged:
		if e.To.N != m.newest.N+1 || e.From != m.newest.N || e.To.Digest == m.newest.Digest {
			t.Fatalf("%+v follows %+v", e, m.newest)
		}
		m.newest = e.To
	case events.Request:
		m.ends[e.ID] += 0
		if e.Version != m.newest {
			t.Fatal("the question is about an old version")
		}
	case events.Response:
		m.ends[e.ID]++
		if e.Digest != m.newest.Digest {
			t.Fatal("the answer is about an old version")
		}
	case events.Withdrawn:
		m.ends[e.ID]++
		if events.ResultOf(e.Reason) != e.Result {
			t.Fatalf("%+v", e)
		}
	case events.RecheckStarted:
		m.rechecks++
		m.said = nil
		if e.Attempt != m.rechecks {
			t.Fatalf("attempt %d is the %d. recheck", e.Attempt, m.rechecks)
		}
	case events.OperationChecked:
		m.checked = e.Version
	case events.OperationCommitted:
		m.committed++
		if e.Version != m.checked || e.Version != m.newest {
			t.Fatalf("committed %+v, checked %+v, newest %+v", e.Version, m.checked, m.newest)
		}
	case events.OperationRefused, events.OperationAborted, events.OperationFinished:
		m.over = true
	}
}

func claimed(s State) int {
	all, _, _ := s.Question.Claims.times("", "")
	return all
}

func (m *machine) invariants(t *rapid.T) {
	s := m.st.s
	open := 0
	for id, n := range m.ends {
		switch {
		case n > 1:
			t.Fatalf("question %s ended %d times", id, n)
		case n == 0:
			open++
		}
	}
	if want := btoi(s.Phase == PhaseAsking); open != want || btoi(s.Question.Open) != want {
		t.Fatalf("%d questions open in phase %d", open, s.Phase)
	}
	if m.rechecks > MaxRechecks || m.committed > 1 || s.Outsiders > maxOutsiders+3 || claimed(s) > maxClaims+1 {
		t.Fatalf("out of bounds: %d rechecks, %d commits, %+v", m.rechecks, m.committed, s)
	}
	if m.over != (s.Phase == PhaseEnded) {
		t.Fatalf("phase %d, over %v", s.Phase, m.over)
	}
	m.pendingFits(t)
	m.verdictFits(t)
	m.canEnd(t)
}

// verdictFits: an allow says what the hooks of the last pass want to be read, and
// a refused input comes back as it came.
func (m *machine) verdictFits(t *rapid.T) {
	s := m.st.s
	v, ok := VerdictOf(s)
	switch {
	case !ok:
	case v.Kind != m.kind:
		t.Fatalf("the verdict is about %q, proposed was %q", v.Kind, m.kind)
	case v.Allow && v.Reminder != strings.Join(m.said, "\n\n"):
		t.Fatalf("reminder %q, said was %q", v.Reminder, m.said)
	case !v.Allow && m.kind != events.KindToolCall && string(v.Args) != string(s.Body(events.ArgsBody(0))):
		t.Fatalf("the input came back as %q", v.Args)
	}
}

// pendingFits: an operation always waits for something, and says for what.
func (m *machine) pendingFits(t *rapid.T) {
	s := m.st.s
	kinds := ""
	running := 0
	for _, e := range Pending(s) {
		if _, ok := e.(Watching); ok {
			running++
			continue
		}
		kinds += fmt.Sprintf("%T ", e)
	}
	for _, open := range m.open {
		running -= btoi(open)
	}
	want := map[Phase][]string{
		PhaseNone: {""}, PhaseHook: {"core.RunHook "}, PhaseAsking: {"core.Offer ", "core.Offer core.WaitUntil "},
		PhaseCommitted: {"core.Deliver ", ""}, PhaseEnded: {"core.Deliver ", "", "core.RunHook core.Deliver ", "core.RunHook "},
	}[s.Phase]
	if !slices.Contains(want, kinds) || running != 0 {
		t.Fatalf("phase %d waits for %q, %d runs too many", s.Phase, kinds, running)
	}
	if s.Over() && (s.RunOpen || len(s.Ending().Watch) > 0) {
		t.Fatal("it would leave memory with an open run")
	}
}

// canEnd: from wherever it stands, the operation can be ended now.
func (m *machine) canEnd(t *rapid.T) {
	s := m.st.s
	ends := []Command{Withdraw{Reason: events.EndShutdown}}
	switch {
	case s.Phase == PhaseNone || s.Phase == PhaseEnded:
		return
	case s.Phase == PhaseAsking:
		ends = append(ends, EndQuestion{Question: s.Question.ID, Reason: events.EndDeadline})
	case s.Delivered:
		ends = []Command{Finish{Outcome: events.OutcomeUnknown}}
	}
	for _, c := range ends {
		d, err := Decide(s, c)
		after := Apply(s, events.Message{Events: d.Events})
		if err != nil || after.Phase != PhaseEnded || after.Question.Open {
			t.Fatalf("%+v leads to %s, phase %d: %v", c, types(d.Events), after.Phase, err)
		}
	}
}

// unchanged: no state was touched by those that came out of it.
func (m *machine) unchanged(t *rapid.T) {
	for i, snap := range m.snapshots {
		if diff := cmp.Diff(snap.look, fmt.Sprintf("%+v", snap.s)); diff != "" {
			t.Fatalf("state %d has changed:\n%s", i, diff)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestB11B48B58AnyHistory: whatever is commanded in whatever order, what the
// package promises of every history holds.
func TestB11B48B58AnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(m.actions())
		m.unchanged(t)
	})
}

// TestB48B49LongHistories: hooks that ask and rewrite without end, and a person
// who always says yes, still come to an end.
func TestB48B49LongHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		m.hooks[confA] = []events.Hook{hook(0), hook(1), hook(2), hook(3)}
		for steps := 0; m.st.s.Phase != PhaseEnded; steps++ {
			if steps > 2*4*(MaxRechecks+1)+6 {
				t.Fatalf("no end after %d steps: %s", steps, types(m.st.log))
			}
			if rarely(t, "new configuration") {
				m.config = confB
			}
			m.do(t, m.forward(t))
			m.invariants(t)
		}
		m.unchanged(t)
	})
}
