package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// outcomes are the answers that `core answer` takes.
var outcomes = []events.Answer{events.AnswerContinue, events.AnswerCancel}

func (c cli) answer() *cobra.Command {
	var text string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "answer QUESTION OUTCOME", Short: c.w.Say(words.AnswerShort), Long: c.w.Say(words.AnswerLong), Args: c.exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := events.ParseID(args[0])
			if err != nil {
				return c.fault(words.NotAnID, args[0], err)
			}
			answer := events.Answer(args[1])
			if !slices.Contains(outcomes, answer) {
				return c.fault(words.NotAnOutcome, args[1])
			}
			dirs, err := c.dirs()
			if err != nil {
				return err
			}
			return c.attach(cmd.Context(), dirs, false, func(ctx context.Context, client *frontends.Client) error {
				return c.give(ctx, client, cmd.OutOrStdout(), asJSON, events.Respond{Question: id, Answer: answer, Text: text, Human: true})
			})
		},
	}
	c.text(cmd, &text, "text", "TEXT", words.FlagText)
	c.json(cmd, &asJSON)
	return cmd
}

// give sends the answer about exactly the version that the core lists now. An
// answer that comes too late is sent too: the core records it and says who was
// faster.
func (c cli) give(ctx context.Context, client *frontends.Client, out io.Writer, asJSON bool, r events.Respond) error {
	if q, ok := client.Inbox().Question(r.Question); ok {
		r.Digest = q.Version.Digest
	}
	ack, err := client.Answer(ctx, r)
	var refused *events.Refused
	switch {
	case errors.As(err, &refused):
		ack.Refused = refused
	case err != nil:
		return c.fault(words.NotAnswered, err)
	}
	if asJSON {
		err = printJSON(out, ack)
	} else {
		_, err = fmt.Fprintln(out, c.reply(ack, client.Principal(), time.Now()))
	}
	if err == nil && refused != nil {
		return exitError{code: exitRefused}
	}
	return err
}

// reply tells in words what the core said to an answer of you.
func (c cli) reply(ack events.Ack, you string, now time.Time) string {
	r := ack.Refused
	if r == nil {
		return c.w.Say(words.Accepted)
	}
	at := ""
	if r.When != 0 {
		at = clockTime(r.When.Time().Local(), now)
	}
	text := card.Teller{Words: c.w, Principal: you, Now: now}.Refused(r, at)
	if r.Hint != "" && r.Who == "" && r.EndReason == "" {
		text = c.w.Because(text, card.Line(r.Hint))
	}
	return c.w.Coded(text, string(r.Code))
}

// clockTime is a local time as a person reads it, with the day unless it is today.
func clockTime(at, now time.Time) string {
	if at.Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}
