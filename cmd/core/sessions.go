package main

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func (c cli) sessions() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "sessions", Short: c.w.Say(words.SessionsShort), Long: c.w.Say(words.SessionsLong), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dirs, err := c.dirs()
			if err != nil {
				return err
			}
			return c.attach(cmd.Context(), dirs, false, func(_ context.Context, client *frontends.Client) error {
				heads := client.Inbox().Sessions()
				if !asJSON {
					c.printSessions(cmd.OutOrStdout(), heads, time.Now())
					return nil
				}
				for _, head := range heads {
					if err := printJSON(cmd.OutOrStdout(), head); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	c.json(cmd, &asJSON)
	return cmd
}

// printSessions prints one line a session; of a child also whose it is.
func (c cli) printSessions(out io.Writer, heads []events.SessionHead, now time.Time) {
	if len(heads) == 0 {
		paragraph(out, " ", c.w.Say(words.NoSessions))
		return
	}
	native := map[events.Token]string{}
	for _, h := range heads {
		native[h.Session] = h.Native
	}
	rows := table{{
		" " + c.w.Say(words.DetailAgent), c.w.Say(words.DetailSession), c.w.Say(words.StatusOpen), c.w.Say(words.SessionAge), c.w.Say(words.DetailProject),
	}}
	for _, h := range heads {
		where := shortHome(h.ProjectPath)
		if parent, ok := native[h.Parent]; ok {
			where = c.w.Say(words.SessionOf, where, parent)
		}
		age := "–"
		if h.Opened != 0 {
			age = card.Clock(now.Sub(h.Opened.Time()))
		}
		rows.add(" "+card.Line(string(h.Agent)), card.Line(h.Native), strconv.Itoa(h.Open), age, card.Line(where))
	}
	rows.print(out)
}
