package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// forecast is what a dry run found out, and the one object that it prints as
// JSON. Would is allow, block or ask, AfterYes what would follow if a person
// continued. Args are the arguments as hooks left them.
type forecast struct {
	Event    events.HookEvent `json:"event"`
	Tool     *events.Tool     `json:"tool,omitempty"`
	Cwd      string           `json:"cwd"`
	Would    events.Would     `json:"would"`
	AfterYes events.Would     `json:"after_yes,omitempty"`
	By       string           `json:"by,omitempty"`
	Code     events.Code      `json:"code,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Args     json.RawMessage  `json:"args,omitempty"`
	Hooks    []hookRun        `json:"hooks"`
	// Untrusted says that the project's hooks were used without anybody's trust.
	Untrusted bool  `json:"untrusted,omitempty"`
	cause     error // of Reason, when no rules could be asked
}

// hookRun is one hook of the event, in the order in which they come. Why says
// why it did not run: off, other_call, other_args or not_reached; Condition is
// then the path of what did not hold, such as match.tool_kind.
type hookRun struct {
	Hook       string       `json:"hook"`
	Scope      events.Scope `json:"scope"`
	File       string       `json:"file"`
	Line       int          `json:"line"`
	Mode       hooks.Mode   `json:"mode"`
	Matched    bool         `json:"matched"`
	Why        string       `json:"why,omitempty"`
	Condition  string       `json:"condition,omitempty"`
	Verdict    string       `json:"verdict,omitempty"`
	Code       events.Code  `json:"code,omitempty"`
	Reason     string       `json:"reason,omitempty"`
	NotApplied string       `json:"not_applied,omitempty"`
	FailedOpen bool         `json:"failed_open,omitempty"`
	Reminder   string       `json:"system_reminder,omitempty"`
	Context    string       `json:"extra_context,omitempty"`
	Note       string       `json:"note,omitempty"` // what whoever wrote the hook should know
	MS         int64        `json:"duration_ms"`
	ran        bool
	note       hooks.Message // of Note
}

// Why a hook did not run.
const (
	whyOff        = "off"
	whyOtherCall  = "other_call" // its tool, agent, profile or directory is another
	whyOtherArgs  = "other_args"
	whyNotReached = "not_reached"
)

func (c cli) hooksRun() *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "run EVENT", Short: c.w.Say(words.RunShort), Long: c.w.Say(words.RunLong), Args: c.exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			event := events.HookEvent(args[0])
			if !event.Gated() && !slices.Contains(events.ObservedEvents(), event) {
				return c.fault(words.UnknownEvent, args[0])
			}
			book, err := c.rulebook(dir)
			if err != nil {
				return err
			}
			p, err := c.readPayload(cmd.InOrStdin(), event, book.dir)
			if err != nil {
				return err
			}
			f, err := book.dryRun(cmd.Context(), p, dir != "")
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), f)
			} else {
				book.printForecast(cmd.OutOrStdout(), f)
			}
			if err == nil && f.Would != events.WouldAllow {
				return exitError{code: exitRefused}
			}
			return err
		},
	}
	c.text(cmd, &dir, "dir", "DIR", words.FlagRunDir)
	c.json(cmd, &asJSON)
	return cmd
}

// maxPayload bounds what a dry run reads, bytes; a core takes no more.
const maxPayload = 4 << 20

func (c cli) readPayload(in io.Reader, event events.HookEvent, dir string) (rehearsed, error) {
	if f, ok := in.(*os.File); ok && term.IsTerminal(f.Fd()) {
		return rehearsed{}, c.fault(words.RunWantsPayload)
	}
	text, err := io.ReadAll(io.LimitReader(in, maxPayload+1))
	if err != nil {
		return rehearsed{}, err
	}
	if len(text) > maxPayload {
		return rehearsed{}, c.fault(words.RunTooLarge)
	}
	return c.decodePayload(text, event, dir)
}

// dryRun runs the hooks as a core would, without a core and without its log.
// All = the hooks are those of the book's directory, trusted or not, whatever
// directory the payload names.
func (r rulebook) dryRun(ctx context.Context, p rehearsed, all bool) (forecast, error) {
	options := r.options
	options.TrustAll = all
	store := hooks.NewStore(options)
	f := forecast{Event: p.Event, Cwd: p.Cwd, Would: events.WouldAllow, Code: events.CodeChecked, Hooks: []hookRun{}}
	if p.Tool != (events.Tool{}) {
		f.Tool = &p.Tool
	}
	of := p.Cwd
	if all {
		of = r.dir
		f.Untrusted = slices.ContainsFunc(r.store().Inspect(of).Files, func(f hooks.FileReport) bool {
			return f.Trust == hooks.TrustNone || f.Trust == hooks.TrustChanged
		})
	}
	set, err := store.For(of)
	if code := hooks.CodeOf(err); code != "" {
		f.Would, f.Code, f.Reason, f.cause = events.WouldBlock, code, err.Error(), err
		return f, nil
	}
	if err != nil {
		return f, err
	}
	pass := rehearsal{
		forecast: f, set: set, payload: p.Payload, agent: p.agent,
		run: hooks.NewRunner(hooks.RunnerOptions{Environ: os.Environ()}),
	}
	return pass.all(ctx)
}

// rehearsal takes one operation past the hooks of its event.
type rehearsal struct {
	forecast
	set     *hooks.Set
	payload hooks.Payload
	agent   events.Agent
	run     hooks.Runner
	asked   bool
}

func (r *rehearsal) subject() hooks.Subject {
	return hooks.Subject{
		Event: r.payload.Event, Agent: r.agent, Profile: r.payload.Profile, Cwd: r.payload.Cwd,
		Tool: r.payload.Tool, Args: r.payload.Args,
	}
}

// all has the blocking hooks decide one after the other, then lets the others
// watch.
func (r *rehearsal) all(ctx context.Context) (forecast, error) {
	if err := r.canonical(); err != nil {
		if r.set.Concerns(r.subject()) {
			r.refuse("", events.CodeNoCanonicalForm, err.Error())
		}
		return r.forecast, nil
	}
	for _, blocking := range []bool{true, false} {
		for _, h := range r.set.Hooks {
			if h.Event != r.payload.Event || (h.Mode == hooks.Blocking) != blocking {
				continue
			}
			if err := r.hook(ctx, h); err != nil {
				return r.forecast, err
			}
		}
	}
	r.Args = r.payload.Args
	return r.forecast, nil
}

// canonical puts the arguments into the form that the check compares.
func (r *rehearsal) canonical() error {
	for _, part := range []*[]byte{&r.payload.Args, &r.payload.Text} {
		if len(*part) == 0 {
			continue
		}
		canonical, err := core.Canonical(*part)
		if err != nil {
			return err
		}
		*part = canonical
	}
	return nil
}

func (r *rehearsal) hook(ctx context.Context, h hooks.Hook) error {
	row := hookRun{Hook: h.Ref.ID, Scope: h.Ref.Scope, File: h.Ref.File, Line: h.Ref.Line, Mode: h.Mode}
	row.Why, row.Condition = mismatch(h, r.subject())
	row.Matched = row.Why == ""
	switch {
	case !row.Matched:
	case r.Would == events.WouldBlock || r.AfterYes == events.WouldBlock:
		row.Why = whyNotReached
	default:
		p := r.payload
		p.ConfirmationAvailable = p.ConfirmationAvailable && h.Mode == hooks.Blocking && p.Event.Gated()
		result := r.run(ctx, h, hooks.Input{Payload: p, Cwd: p.Cwd})
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		row.fill(result)
		if err := r.apply(h, &row, result); err != nil {
			return err
		}
	}
	r.Hooks = append(r.Hooks, row)
	return nil
}

// fill tells what a run came to.
func (h *hookRun) fill(r hooks.Result) {
	h.ran = true
	h.Verdict, h.Code, h.Reason = string(r.Effect), r.Code, r.Reason
	h.NotApplied, h.FailedOpen, h.MS = r.NotApplied, r.FailedOpen, r.Duration.Milliseconds()
	h.Reminder, h.Context = r.Reminder, r.Context
	h.note, h.Note = r.Note, r.Note.Error()
}

// mismatch says why a hook does not run for a call, and which condition keeps it
// from it; both are "" when it runs.
func mismatch(h hooks.Hook, sub hooks.Subject) (why, condition string) {
	condition = h.Mismatch(sub)
	switch {
	case condition == "":
		return "", ""
	case !h.Enabled:
		return whyOff, ""
	case strings.HasPrefix(condition, "match.args."):
		return whyOtherArgs, condition
	}
	return whyOtherCall, condition
}

// apply does what a core would do with a result.
func (r *rehearsal) apply(h hooks.Hook, row *hookRun, result hooks.Result) error {
	if result.Override != nil {
		merged, err := core.Merge(r.payload.Args, result.Override)
		if err != nil {
			return err
		}
		if r.asked && len(core.ChangedNames(r.payload.Args, merged)) > 0 {
			row.NotApplied = events.NotAppliedRecheck // the call goes back to the first hook
		}
		r.payload.Args = merged
	}
	switch {
	case result.Code != "":
		r.refuse(h.Ref.ID, result.Code, result.Reason)
	case result.Effect == events.EffectAsk && r.asked:
		r.AfterYes = events.WouldAsk
	case result.Effect == events.EffectAsk:
		r.asked = true
		r.Would, r.AfterYes, r.By, r.Code, r.Reason = events.WouldAsk, events.WouldAllow, h.Ref.ID, "", result.Reason
	}
	return nil
}

// refuse ends the pass; behind a question it is what would follow a yes.
func (r *rehearsal) refuse(by string, code events.Code, reason string) {
	if r.asked {
		r.AfterYes = events.WouldBlock
		return
	}
	r.Would, r.By, r.Code, r.Reason = events.WouldBlock, by, code, reason
}
