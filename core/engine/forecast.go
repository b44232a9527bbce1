package engine

import (
	"context"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// Check says what would happen to an operation, as far as rules say it without a
// program: no program is run, nobody is asked, nothing is recorded. Rules that
// cannot be read, and arguments that can be read in two ways where a rule
// concerns them, block.
func (e *Engine) Check(ctx context.Context, p core.Proposal) core.Forecast {
	f := core.Forecast{Would: events.WouldBlock}
	place, known := e.placeOf(p)
	f.Available = known && e.capable(place) > 0
	set, err := e.o.Rules.For(p.Cwd)
	if err != nil {
		return f
	}
	sub := hooks.Subject{Event: gateOf(p.Kind), Agent: p.Agent, Profile: p.Profile, Cwd: p.Cwd, Tool: p.Tool, Args: p.Args}
	var cmd core.Propose
	if e.arguments(&cmd, set, p, sub); cmd.Refuse != "" {
		return f
	}
	sub.Args = cmd.Args
	f.Hooks = set.Plan(sub)
	f.Would = e.forecast(ctx, set, sub, f.Hooks)
	return f
}

// placeOf finds the session of a proposal.
func (e *Engine) placeOf(p core.Proposal) (Place, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ses, ok := e.sessions[events.SessionToken(e.o.Core, p.Agent, p.Native)]
	if !ok {
		return Place{}, false
	}
	return ses.place, true
}

// forecast goes through the plan up to the first rule that decides. A rule that
// needs no program is run as it would be: it starts nothing.
func (e *Engine) forecast(ctx context.Context, set *hooks.Set, sub hooks.Subject, plan []events.Hook) events.Would {
	for _, ref := range plan {
		hook := set.Hook(ref.Index)
		if hook.Run.Type != hooks.RunVerdict {
			return events.WouldRun
		}
		in := hooks.Input{Payload: hooks.Payload{Event: sub.Event, Tool: sub.Tool, Args: sub.Args, Cwd: sub.Cwd}, Cwd: sub.Cwd}
		switch e.o.Run(ctx, hook, in).Effect {
		case events.EffectAsk:
			return events.WouldAsk
		case events.EffectBlock, events.EffectModify: // no rule without a program modifies
			return events.WouldBlock
		case events.EffectAllow, events.EffectError, events.EffectAskNotApplied:
		}
	}
	return events.WouldAllow
}
