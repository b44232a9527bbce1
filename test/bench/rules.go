package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// bareProgram is what a hook starts when only the start is to be measured.
const bareProgram = "/bin/true"

const processRule = `version: 1
hooks:
  - id: process
    event: before_tool_call
    execution: {mode: blocking}
    run: {type: command, argv: [` + bareProgram + `]}
`

// rulesInACall is how many rules without a program a measured call passes.
const rulesInACall = 20

// allowRules match the measured call by one of its arguments and let it on.
func allowRules(n int) string {
	var b strings.Builder
	b.WriteString("version: 1\nhooks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - id: rule-%d\n    event: before_tool_call\n    match: {tool_kind: filesystem.write, args: {content: {regex: '^x+$'}}}\n"+
			"    execution: {mode: blocking}\n    run: {type: verdict, action: allow}\n", i)
	}
	return b.String()
}

// turns takes the time of several things, one after the other, n times a round.
// The first round warms up. Each thing gets one figure a round, the median in
// nanoseconds.
func turns(b *bench, n int, things ...func() error) ([]series, error) {
	figures := make([]series, len(things))
	for round := range b.rounds + 1 {
		lists := make([][]time.Duration, len(things))
		for range n {
			for i, do := range things {
				began := time.Now()
				if err := do(); err != nil {
					return nil, err
				}
				lists[i] = append(lists[i], time.Since(began))
			}
		}
		for i := range things {
			if round > 0 {
				figures[i] = append(figures[i], medianOf(lists[i]))
			}
		}
	}
	return figures, nil
}

// less is what one thing costs more than another, round by round.
func (s series) less(other series, share float64) series {
	r := make(series, len(s))
	for i := range s {
		r[i] = (s[i] - other[i]) / share
	}
	return r
}

// openPair opens a house whose calls pass a rule, and one whose calls pass none.
func openPair(ctx context.Context, b *bench, rule string) (with, without *house, err error) {
	if with, err = openHouse(ctx, b, houseOptions{mode: "process", rule: rule, programs: true}); err != nil {
		return nil, nil, err
	}
	if without, err = openHouse(ctx, b, houseOptions{mode: "process", rule: noRule}); err != nil {
		with.close()
		return nil, nil, err
	}
	return with, without, nil
}

// hookOverhead is what a hook costs beside a bare start of the program that it
// starts: its run alone, and all that it adds to a call.
func hookOverhead(ctx context.Context, b *bench) ([]row, error) {
	with, without, err := openPair(ctx, b, processRule)
	if err != nil {
		return nil, err
	}
	defer with.close()
	defer without.close()
	run, err := ruleRun(b, processRule)
	if err != nil {
		return nil, err
	}
	settle(ctx)
	figures, err := turns(b, 60,
		func() error { return exec.CommandContext(ctx, bareProgram).Run() },
		func() error { return run(ctx) },
		func() error { return with.once(ctx) },
		func() error { return without.once(ctx) },
	)
	if err != nil {
		return nil, err
	}
	bare := figures[0]
	return []row{
		against("hook overhead: its run, against a bare start of its program", figures[1], bare, micros, atMost(2, "≤ 2 ×")),
		against("hook overhead: what it adds to a call", figures[2].less(figures[3], 1), bare, micros, atMost(2.5, "≤ 2.5 ×")),
	}, nil
}

// verdictRule is what a rule without a program costs beside one awaited append:
// to match it and carry it out, and all that it adds to a call, in which the log
// keeps its run.
func verdictRule(ctx context.Context, b *bench) ([]row, error) {
	f, err := openFloor(ctx, b, "process")
	if err != nil {
		return nil, err
	}
	defer f.close()
	with, without, err := openPair(ctx, b, allowRules(rulesInACall))
	if err != nil {
		return nil, err
	}
	defer with.close()
	defer without.close()
	run, err := ruleRun(b, allowRules(rulesInACall))
	if err != nil {
		return nil, err
	}
	settle(ctx)
	figures, err := turns(b, 100,
		func() error { return f.append(ctx) },
		func() error { return run(ctx) },
		func() error { return with.once(ctx) },
		func() error { return without.once(ctx) },
	)
	if err != nil {
		return nil, err
	}
	none := make(series, b.rounds)
	return []row{
		against("verdict rule: matched and carried out, against one append", figures[1].less(none, rulesInACall), figures[0], tenths, atMost(1, "≤ 1 ×")),
		against("verdict rule: what it adds to a call", figures[2].less(figures[3], rulesInACall), figures[0], tenths, atMost(2, "≤ 2 ×")),
	}, nil
}

func tenths(ns float64) string { return fmt.Sprintf("%.1f µs", ns/1e3) }

// ruleRun is all that package hooks does for a call under a file of rules: find
// the hooks that match and run them, one after the other.
func ruleRun(b *bench, rule string) (func(context.Context) error, error) {
	dir, err := b.temp()
	if err != nil {
		return nil, err
	}
	if err := writeRule(dir, rule); err != nil {
		return nil, err
	}
	set, err := hooks.NewStore(hooks.StoreOptions{GlobalDir: filepath.Join(dir, "c")}).For(dir)
	if err != nil {
		return nil, err
	}
	p := (&house{}).proposal()
	sub := hooks.Subject{Event: events.BeforeToolCall, Agent: p.Agent, Cwd: p.Cwd, Tool: p.Tool, Args: p.Args}
	in := hooks.Input{Cwd: p.Cwd, Payload: hooks.Payload{
		Event: events.BeforeToolCall, Timestamp: time.Now(), SessionID: p.Native, Cwd: p.Cwd, Tool: p.Tool, Args: p.Args, OperationID: p.Operation,
	}}
	run := programRunner(dir)
	return func(ctx context.Context) error {
		plan := set.Plan(sub)
		if len(plan) == 0 {
			return fmt.Errorf("no rule of %s matches", dir)
		}
		for _, h := range plan {
			if r := run(ctx, set.Hook(h.Index), in); r.Effect != events.EffectAllow || r.Outcome != events.RunOK {
				return fmt.Errorf("hook %s: %s %s: %s", h.ID, r.Effect, r.Outcome, r.Reason)
			}
		}
		return nil
	}, nil
}

// programRunner runs hooks as the core does.
func programRunner(dir string) hooks.Runner {
	return hooks.NewRunner(hooks.RunnerOptions{TempDir: dir, Environ: []string{"PATH=/usr/bin:/bin"}})
}
