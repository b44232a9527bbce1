package main

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// questionLine is one open question in `core questions --json`.
type questionLine struct {
	Event      string          `json:"event,omitempty"` // with --watch: open, claimed, released, closed
	Question   events.ID       `json:"question"`
	Gate       events.Gate     `json:"gate,omitempty"`
	Session    events.Token    `json:"session,omitempty"`
	Project    events.Token    `json:"project,omitempty"`
	Path       string          `json:"path,omitempty"`
	Directory  string          `json:"directory,omitempty"`
	Agent      events.Agent    `json:"agent,omitempty"`
	Operation  events.ID       `json:"operation,omitempty"`
	Version    int             `json:"version"`
	Digest     events.Digest   `json:"digest,omitempty"`
	Hook       string          `json:"hook,omitempty"`
	Scope      events.Scope    `json:"scope,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Tool       *events.Tool    `json:"tool,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Attempt    int             `json:"attempt"`
	Changed    []events.Change `json:"changed,omitempty"`
	AskedAt    string          `json:"asked_at,omitempty"`
	Deadline   string          `json:"deadline,omitempty"`
	ClaimedBy  *events.Claim   `json:"claimed_by,omitempty"`
	ReceivedBy int             `json:"received_by"`
	End        *events.End     `json:"end,omitempty"`
}

func (c cli) questions() *cobra.Command {
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use: "questions", Short: c.w.Say(words.QuestionsShort), Long: c.w.Say(words.QuestionsLong), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dirs, err := c.dirs()
			if err != nil {
				return err
			}
			out := lister{cli: c, out: cmd.OutOrStdout()}
			return c.attach(cmd.Context(), dirs, watch, func(ctx context.Context, client *frontends.Client) error {
				out.client = client
				switch {
				case watch:
					return out.watch(ctx)
				case !asJSON:
					return out.table(ctx, time.Now())
				}
				for _, q := range client.Inbox().Questions() {
					if err := out.print(ctx, "", q); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	c.json(cmd, &asJSON)
	cmd.Flags().BoolVar(&watch, "watch", false, c.w.Say(words.FlagWatch))
	return cmd
}

// lister prints questions.
type lister struct {
	cli
	client *frontends.Client
	out    io.Writer
}

// table prints one line a question, the oldest first.
func (l lister) table(ctx context.Context, now time.Time) error {
	rows := table{{
		" " + l.w.Say(words.DetailQuestion), l.w.Say(words.DetailAgent), l.w.Say(words.DetailTool), l.w.Say(words.QuestionWaits),
		l.w.Say(words.QuestionAbout),
	}}
	for _, q := range l.client.Inbox().Questions() {
		args, err := l.client.Args(ctx, q.ID, q.Version.N)
		if err != nil {
			return err
		}
		rows.add(" "+string(q.ID), card.Line(string(q.Agent)), card.Line(q.Tool.Name), card.Clock(now.Sub(q.AskedAt.Time())), card.Line(events.About(args)))
	}
	if len(rows) == 1 {
		paragraph(l.out, " ", l.w.Say(words.NothingWaits))
		return nil
	}
	rows.print(l.out)
	return nil
}

func (l lister) watch(ctx context.Context) error {
	shown := map[events.ID]bool{}
	open := func(q events.Question) error {
		if shown[q.ID] {
			return nil
		}
		shown[q.ID] = true
		return l.print(ctx, "open", q)
	}
	for _, q := range l.client.Inbox().Questions() {
		if err := open(q); err != nil {
			return err
		}
	}
	for u, err := range l.client.Updates(ctx) {
		if err != nil {
			break // the person ended it
		}
		if err := l.change(ctx, u, shown, open); err != nil {
			return err
		}
	}
	return nil
}

// change prints what an update means now; the inbox has the truth.
func (l lister) change(ctx context.Context, u frontends.Update, shown map[events.ID]bool, open func(events.Question) error) error {
	for _, q := range l.client.Inbox().Questions() {
		if err := open(q); err != nil {
			return err
		}
	}
	for id := range shown {
		if end, ok := l.client.Inbox().Ended(id); ok {
			delete(shown, id)
			if err := l.line(questionLine{Event: "closed", Question: id, End: &end}); err != nil {
				return err
			}
		}
	}
	q, ok := l.client.Inbox().Question(u.Question)
	if !ok {
		return nil
	}
	switch u.Kind {
	case frontends.KindClaimed:
		return l.line(questionLine{Event: "claimed", Question: q.ID, ClaimedBy: q.ClaimedBy, ReceivedBy: q.ReceivedBy})
	case frontends.KindReleased:
		return l.line(questionLine{Event: "released", Question: q.ID, ReceivedBy: q.ReceivedBy})
	}
	return nil
}

func (l lister) print(ctx context.Context, event string, q events.Question) error {
	args, err := l.client.Args(ctx, q.ID, q.Version.N)
	if err != nil {
		return err
	}
	return l.line(questionLine{
		Event: event, Question: q.ID, Gate: q.Gate, Session: q.Session, Project: q.Project, Path: q.Path,
		Directory: q.ProjectPath, Agent: q.Agent, Operation: q.Operation, Version: q.Version.N, Digest: q.Version.Digest,
		Hook: q.Hook.ID, Scope: q.Hook.Scope, Reason: q.Reason, Tool: &q.Tool, Args: args, Attempt: q.Attempt,
		Changed: q.Changed, AskedAt: stamp(q.AskedAt), Deadline: stamp(q.Deadline), ClaimedBy: q.ClaimedBy, ReceivedBy: q.ReceivedBy,
	})
}

func (l lister) line(q questionLine) error {
	return printJSON(l.out, q)
}

// stamp writes a moment in UTC, "" for none.
func stamp(m events.Micros) string {
	if m == 0 {
		return ""
	}
	return m.Time().Format(time.RFC3339Nano)
}
