package main

import (
	"io"
	"strconv"
	"strings"

	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// printForecast prints what each hook said, and last what would happen.
func (r rulebook) printForecast(out io.Writer, f forecast) {
	if f.cause != nil {
		f.Reason = r.told(f.cause)
	}
	about := string(f.Event)
	if f.Tool != nil {
		about += "  " + card.Line(f.Tool.Name) + " (" + card.Line(f.Tool.Kind) + ")"
	}
	paragraph(out, " ", about+"  "+card.Line(shortHome(f.Cwd)))
	if f.Untrusted {
		paragraph(out, " ", r.w.Say(words.RunUntrusted))
	}
	paragraph(out, "", "")
	var rows table
	for _, row := range f.Hooks {
		rows = append(rows, r.hookRow(f.Event, row))
	}
	for i, row := range f.Hooks {
		rows.printRow(out, i)
		for _, text := range []string{row.Reason, row.Reminder, row.Context} {
			if text != "" && (text != f.Reason || row.Hook != f.By || f.Would != events.WouldBlock) { // the last line has that
				paragraph(out, "     ", "“"+card.Escape(text)+"”")
			}
		}
		if row.Note != "" {
			paragraph(out, "     ", card.Escape(r.w.Tell(row.note)))
		}
	}
	if len(f.Hooks) == 0 && f.Would == events.WouldAllow {
		paragraph(out, "  ", r.w.Say(words.RunNoHooks))
	}
	paragraph(out, "", "")
	paragraph(out, " ", r.end(f))
}

// hookRow tells of one hook what it said, how long it took, and where it stands.
func (r rulebook) hookRow(event events.HookEvent, row hookRun) []string {
	sign, said, took := "·", r.w.Why(row.Why), ""
	if row.Condition != "" {
		said += "  " + card.Line(strings.TrimPrefix(row.Condition, "match."))
	}
	if row.ran {
		sign, said = r.verdict(event, row)
		took = r.w.Say(words.Millis, row.MS)
	}
	return []string{"  " + sign, card.Line(row.Hook), said, took, r.short(row.File) + ":" + strconv.Itoa(row.Line)}
}

// verdict is a sign and the words for what a hook said.
func (r rulebook) verdict(event events.HookEvent, row hookRun) (sign, said string) {
	sign, said = "✓", r.w.Effect(row.Verdict)
	switch {
	case row.Code != "":
		sign = "✕"
		if row.Code != events.CodeBlocked {
			said = r.w.Coded(r.w.Code(string(row.Code)), string(row.Code))
		}
	case row.Verdict == string(events.EffectAsk):
		sign = "?"
	case row.FailedOpen:
		said = r.w.Say(words.RunFailedOpen)
	case row.Verdict == string(events.EffectAllow) && (row.Mode != hooks.Blocking || !event.Gated()):
		said = r.w.Outcome(string(events.OutcomeOK)) // what only watches lets nothing go on
	case row.NotApplied != "":
		said += "  " + r.w.NotApplied(row.NotApplied)
	}
	return sign, said
}

// end is the last line: what would happen.
func (r rulebook) end(f forecast) string {
	switch {
	case f.Would == events.WouldAsk:
		return r.w.Coded(r.w.Say(afterYes(f.AfterYes), card.Line(f.By)), string(events.WouldAsk))
	case f.Would == events.WouldBlock && f.By != "":
		return r.w.Coded(r.w.Say(words.WouldBlock, card.Line(f.By), card.Line(f.Reason)), string(f.Code))
	case f.Would == events.WouldBlock:
		return r.w.Coded(r.w.Because(r.w.Say(words.WouldRefuse, r.w.Code(string(f.Code))), card.Line(f.Reason)), string(f.Code))
	case !f.Event.Gated():
		return r.w.Say(words.WouldWatch)
	}
	return r.w.Coded(r.w.Say(words.WouldAllow), string(events.WouldAllow))
}

// afterYes is the sentence about a question and what would follow a yes.
func afterYes(then events.Would) words.Key {
	switch then {
	case events.WouldBlock:
		return words.WouldAskThenBlock
	case events.WouldAsk:
		return words.WouldAskTwice
	}
	return words.WouldAsk
}
