package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// outcomes are the answers that `core answer` takes.
var outcomes = []events.Answer{events.AnswerContinue, events.AnswerCancel}

func answerCommand() *cobra.Command {
	var text string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "answer QUESTION OUTCOME", Short: "Answer an open question: continue or cancel", Args: cobra.ExactArgs(2),
		Long: "Answers an open question as you. OUTCOME is continue or cancel. Exit 0: accepted; 3: refused,\n" +
			"with the typed reply on stdout; 1: no core, or wrong use.",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := events.ParseID(args[0])
			if err != nil {
				return err
			}
			answer := events.Answer(args[1])
			if !slices.Contains(outcomes, answer) {
				return fmt.Errorf("%q is not an outcome of a hook's question; it is continue or cancel", args[1])
			}
			dirs, err := place.Resolve()
			if err != nil {
				return err
			}
			return attach(cmd.Context(), dirs, false, func(ctx context.Context, c *frontends.Client) error {
				return give(ctx, c, cmd.OutOrStdout(), asJSON, events.Respond{Question: id, Answer: answer, Text: text, Human: true})
			})
		},
	}
	cmd.Flags().StringVar(&text, "text", "", "words to the model, passed on unchanged and marked as yours")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the reply as one JSON object")
	return cmd
}

// give sends the answer about exactly the version that the core lists now. An
// answer that comes too late is sent too: the core records it and says who was
// faster.
func give(ctx context.Context, c *frontends.Client, out io.Writer, asJSON bool, r events.Respond) error {
	if q, ok := c.Inbox().Question(r.Question); ok {
		r.Digest = q.Version.Digest
	}
	ack, err := c.Answer(ctx, r)
	var refused *events.Refused
	switch {
	case errors.As(err, &refused):
		ack.Refused = refused
	case err != nil:
		return err
	}
	if err := printAck(out, asJSON, ack); err != nil {
		return err
	}
	if refused != nil {
		return exitError{code: exitRefused}
	}
	return nil
}

func printAck(out io.Writer, asJSON bool, ack events.Ack) error {
	if asJSON {
		b, err := json.Marshal(ack)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, string(b))
		return err
	}
	text := "accepted"
	if r := ack.Refused; r != nil {
		var more []string
		for _, s := range []string{string(r.EndReason), r.Who, string(r.Answer), stamp(r.When), r.Hint} {
			if s != "" {
				more = append(more, s)
			}
		}
		text = strings.TrimSuffix(string(r.Code)+": "+strings.Join(more, ", "), ": ")
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
