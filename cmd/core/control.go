package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// status is what `core status --json` prints: numbers for scripts.
type status struct {
	Core      events.Token `json:"core"`
	Version   string       `json:"version"`
	PID       int          `json:"pid"`
	Mode      string       `json:"mode"`
	Sessions  int          `json:"sessions"`
	Open      int          `json:"open"`
	WaitingMS int64        `json:"waiting_ms"` // how long the oldest open question has waited
	Frontends int          `json:"frontends"`
	LogBytes  uint64       `json:"log_bytes"`
	LogLimit  uint64       `json:"log_limit"`
	Rules     int          `json:"rules"`
	RulesFile string       `json:"rules_file"`
	RulesBad  string       `json:"rules_error,omitempty"`
}

func (c cli) status() *cobra.Command {
	var asJSON, short bool
	cmd := &cobra.Command{
		Use: "status", Short: c.w.Say(words.StatusShort), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if short { // a bar asks every few seconds, and waits for nobody
				var end context.CancelFunc
				ctx, end = context.WithTimeout(ctx, time.Second)
				defer end()
			}
			s, raw, err := c.askStatus(ctx)
			switch {
			case short && errors.Is(err, errDown): // a bar shows what waits, and nothing does
				return exitError{code: exitFault}
			case err != nil:
				return err
			case asJSON:
				fmt.Fprintln(cmd.OutOrStdout(), raw)
			case short:
				fmt.Fprint(cmd.OutOrStdout(), c.statusLine(s))
			default:
				c.statusTable(s).print(cmd.OutOrStdout())
			}
			return nil
		},
	}
	c.json(cmd, &asJSON)
	cmd.Flags().BoolVar(&short, "short", false, c.w.Say(words.FlagShort))
	return cmd
}

// statusLine is what a status bar shows: "" when nothing waits.
func (c cli) statusLine(s status) string {
	if s.Open == 0 {
		return ""
	}
	return c.w.Say(words.StatusWaiting, s.Open, card.Clock(time.Duration(s.WaitingMS)*time.Millisecond)) + "\n"
}

func (c cli) statusTable(s status) table {
	var files []string
	for f := range strings.SplitSeq(s.RulesFile, ", ") {
		files = append(files, shortHome(f))
	}
	log := c.w.Say(words.LogOf, size(s.LogBytes), size(s.LogLimit))
	rules := c.w.Say(words.RulesCount, s.Rules, c.w.List(files))
	switch { // without a rule every call goes on
	case s.RulesBad != "":
		rules = c.w.Say(words.RulesBroken, c.resaid(s.RulesBad))
	case s.Rules == 0:
		rules = c.w.Say(words.RulesNone, c.w.List(files))
	}
	return table{
		{" " + c.w.Say(words.StatusCore), string(s.Core)},
		{" " + c.w.Say(words.StatusVersion), s.Version},
		{" " + c.w.Say(words.StatusProcess), strconv.Itoa(s.PID)},
		{" " + c.w.Say(words.StatusMode), s.Mode},
		{" " + c.w.Say(words.StatusSessions), strconv.Itoa(s.Sessions)},
		{" " + c.w.Say(words.StatusOpen), strconv.Itoa(s.Open)},
		{" " + c.w.Say(words.StatusFrontends), strconv.Itoa(s.Frontends)},
		{" " + c.w.Say(words.StatusLog), log},
		{" " + c.w.Say(words.StatusRules), rules},
	}
}

// resaid is what a core said is wrong with the rules, in the person's language
// when the same is found here.
func (c cli) resaid(bad string) string {
	book, err := c.rulebook("")
	if err != nil {
		return bad
	}
	if _, err := book.store().For(book.options.GlobalDir); err != nil && err.Error() == bad {
		return c.told(err)
	}
	return bad
}

func (c cli) askStatus(ctx context.Context) (status, string, error) {
	raw, err := c.control(ctx, agents.ControlStatus)
	if err != nil {
		return status{}, "", err
	}
	var s status
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return status{}, "", c.fault(words.BadReply, err)
	}
	return s, strings.TrimSpace(raw), nil
}

func (c cli) stop() *cobra.Command {
	return &cobra.Command{
		Use: "stop", Short: c.w.Say(words.StopShort), Long: c.w.Say(words.StopLong), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A core may be gone before its reply has left: that it goes is the reply.
			_, err := c.control(cmd.Context(), agents.ControlStop)
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				return err
			}
			return c.gone(cmd.Context())
		},
	}
}

// gone waits until the core has let go of its sockets and its state, so that
// the next one can start.
func (c cli) gone(ctx context.Context) error {
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, c.fault(words.StillThere, int(patience/time.Second)))
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if _, err := c.control(ctx, agents.ControlStatus); errors.Is(err, errDown) && !natsd.Locked(dirs.State) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// patience is how long a core may take to answer, or to go.
const patience = 30 * time.Second

// control sends one control line to the core's agent.sock and returns what it
// answered.
func (c cli) control(ctx context.Context, event string) (string, error) {
	dirs, err := c.dirs()
	if err != nil {
		return "", err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", dirs.AgentSocket())
	if err != nil {
		return "", c.unreachable(dirs, err)
	}
	defer conn.Close()
	limit := time.Now().Add(patience)
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(limit) {
		limit = sooner
	}
	if err := conn.SetDeadline(limit); err != nil {
		return "", c.fault(words.CannotConnect, err)
	}
	if err := json.NewEncoder(conn).Encode(events.HookCall{V: 1, Agent: agents.ControlAgent, Event: event, PID: os.Getpid()}); err != nil {
		return "", c.fault(words.CannotConnect, err)
	}
	var line events.HookLine
	if err := json.NewDecoder(conn).Decode(&line); err != nil {
		return "", c.fault(words.NoReply, err)
	}
	if line.Exit != 0 {
		return "", c.fault(words.CoreSaid, strings.TrimSpace(line.Stderr))
	}
	return line.Stdout, nil
}

func size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
