package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fermata-hitl/fermata/events"
)

const (
	op       = events.ID("01k00000000000000000000001")
	q1       = events.ID("01k0000000000000000000000a")
	q2       = events.ID("01k0000000000000000000000b")
	q3       = events.ID("01k0000000000000000000000c")
	tui      = events.ID("01k0000000000000000000000f")
	web      = events.ID("01k0000000000000000000000g")
	ana, bob = "uid:1000", "uid:1001"
)

var (
	confA = events.DigestOf([]byte("configuration a"))
	confB = events.DigestOf([]byte("configuration b"))
)

func hook(i int) events.Hook {
	return events.Hook{ID: fmt.Sprintf("hook-%d", i), Scope: events.ScopeProject, File: ".fermata/hooks.yaml", Line: 6 + i, Index: i}
}

// next is a plan of configuration a with the hooks of these indexes.
func next(run events.ID, indexes ...int) Next {
	n := Next{Plan: Plan{Config: confA}, Run: run, Available: true}
	for _, i := range indexes {
		n.Plan.Hooks = append(n.Plan.Hooks, hook(i))
	}
	return n
}

// watch is a hook that nothing waits for.
func watch(i int) WatchHook { return WatchHook{Hook: hook(i), Mode: events.ModeAsync} }

// watching adds hooks that nothing waits for to a plan, with ids for their runs.
func (n Next) watching(list ...WatchHook) Next {
	n.Plan.Watch = list
	for i := range list {
		n.Watch = append(n.Watch, run(900+i))
	}
	return n
}

func run(i int) events.ID { return events.ID(fmt.Sprintf("01k0000000000000000000r%03d", i)) }

func propose1(args string, n Next) Propose {
	return Propose{
		At: 1, Args: []byte(args), Next: n,
		Op: events.OperationProposed{
			Kind: events.KindToolCall, Agent: "claude", Path: "main", Tool: events.Tool{Name: "Bash", Kind: "shell", CallID: "toolu_1"},
			Cwd: "/home/ana/src/myproj", Config: confA, Secret: events.DigestOf([]byte("secret")),
		},
	}
}

func askDone(r events.ID, q events.ID, n Next) HookDone {
	return HookDone{
		Run: r, Effect: events.EffectAsk, Outcome: events.RunOK, Reason: "This changes production.", Next: n,
		Ask: &Ask{Question: q, Gate: events.GateHook, Deadline: 99, DeadlineFrom: "hook", WhenNobody: events.NobodyReject, Offered: 2, Available: true},
	}
}

func allowDone(r events.ID, n Next) HookDone {
	return HookDone{Run: r, Effect: events.EffectAllow, Outcome: events.RunOK, Next: n}
}

func modifyDone(r events.ID, args string, n Next) HookDone {
	return HookDone{Run: r, Effect: events.EffectModify, Outcome: events.RunOK, Args: []byte(args), Next: n}
}

// yes is what ana says on the TUI about the open question of s.
func yes(s State, n Next) Answer {
	return Answer{
		Question: s.Question.ID, Frontend: tui, Kind: events.FrontendTUI, Principal: ana,
		Digest: s.Current().Digest, Answer: events.AnswerContinue, Human: true, Next: n,
	}
}

func no(s State) Answer {
	a := yes(s, Next{})
	a.Answer = events.AnswerCancel
	return a
}

// tester is what *testing.T and *rapid.T have in common here.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// story plays commands against one operation. Every decision goes through the
// codec, and the fold of what comes back must be the state that was kept.
type story struct {
	t    tester
	s    State
	twin State // folded from decoded messages
	log  []events.Event
	seq  uint64
}

func newStory(t tester) *story { return &story{t: t, seq: 100} }

// do decides and applies. It returns the types of what happened and the code
// of the refusal as "A,B !code".
func (st *story) do(c Command) string {
	st.t.Helper()
	d, err := Decide(st.s, c)
	refused := new(events.Refused)
	if err != nil && !errors.As(err, &refused) {
		st.t.Fatalf("%T: %v", c, err)
	}
	st.write(d)
	return strings.TrimSpace(types(d.Events) + bang(refused))
}

// want is do with its expected result.
func (st *story) want(want string, c Command) {
	st.t.Helper()
	if got := st.do(c); got != want {
		st.t.Fatalf("%T\n got  %s\n want %s", c, got, want)
	}
}

// must is do for a command that has to be accepted.
func (st *story) must(commands ...Command) *story {
	st.t.Helper()
	for _, c := range commands {
		if got := st.do(c); got == "" || strings.Contains(got, "!") {
			st.t.Fatalf("%+v: got %q", c, got)
		}
	}
	return st
}

func (st *story) write(d Decision) {
	st.t.Helper()
	if len(d.Events) == 0 {
		if len(d.Bodies) > 0 {
			st.t.Fatal("bodies without events")
		}
		return
	}
	st.seq += 7
	m := events.Message{
		ID: events.ID(fmt.Sprintf("01k0000000000000000000%04d", st.seq)), Project: "project", Session: "session", Operation: op, Turn: "turn 1",
		At: events.Micros(st.seq * 1000), Principal: "core", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Prev: st.s.Hash.Digest(), Events: d.Events,
	}
	for _, b := range d.Bodies {
		b.Salt = make([]byte, events.SaltSize)
		m.Bodies = append(m.Bodies, b)
	}
	raw, hash, err := events.EncodeMessage(m)
	if err != nil {
		st.t.Fatal(err)
	}
	m.Seq, m.Hash = st.seq, hash
	back, err := events.DecodeMessage(raw)
	if err != nil {
		st.t.Fatal(err)
	}
	back.Seq = st.seq
	st.s, st.twin = Apply(st.s, m), Apply(st.twin, back)
	st.log = append(st.log, d.Events...)
	if diff := cmp.Diff(st.s, st.twin, cmpopts.EquateEmpty()); diff != "" {
		st.t.Fatalf("the fold of the log differs from the state (-kept +folded):\n%s", diff)
	}
}

func types(list []events.Event) string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = strings.NewReplacer("HookConfirmation", "", "Operation", "").Replace(string(e.EventType()))
	}
	return strings.Join(names, ",")
}

func bang(r *events.Refused) string {
	if r.Code == "" {
		return ""
	}
	return " !" + string(r.Code)
}

// last is the newest event of a type.
func last[E events.Event](st *story) E {
	st.t.Helper()
	for _, v := range slices.Backward(st.log) {
		if e, ok := v.(E); ok {
			return e
		}
	}
	var none E
	st.t.Fatalf("no %T in %s", none, types(st.log))
	return none
}

// newest is the newest event of a type that fits.
func newest[E events.Event](st *story, fits func(E) bool) (none E) {
	st.t.Helper()
	for _, v := range slices.Backward(st.log) {
		if e, ok := v.(E); ok && fits(e) {
			return e
		}
	}
	st.t.Fatalf("no such %T in %s", none, types(st.log))
	return none
}

func count[E events.Event](st *story) (n int) {
	for _, e := range st.log {
		if _, ok := e.(E); ok {
			n++
		}
	}
	return n
}
