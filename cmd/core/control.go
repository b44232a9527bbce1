package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

// status is what `core status --json` prints: numbers for scripts.
type status struct {
	Core      events.Token `json:"core"`
	Version   string       `json:"version"`
	PID       int          `json:"pid"`
	Mode      string       `json:"mode"`
	Sessions  int          `json:"sessions"`
	Open      int          `json:"open"`
	Frontends int          `json:"frontends"`
	LogBytes  uint64       `json:"log_bytes"`
	LogLimit  uint64       `json:"log_limit"`
	Rules     int          `json:"rules"`
	RulesFile string       `json:"rules_file"`
	RulesBad  string       `json:"rules_error,omitempty"`
}

// errDown says that no core runs here.
var errDown = errors.New("no core is running here. The first agent or screen starts one; serve runs one in the foreground")

func statusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Short: "Tell whether a core is up (exit 0) or down (exit 1)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, raw, err := askStatus(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				fmt.Fprintln(cmd.OutOrStdout(), raw)
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "core %s · version %s · pid %d · mode %s\n%s · %s · %s · log %s of %s\n%s\n",
				s.Core, s.Version, s.PID, s.Mode, count(s.Sessions, "session"), count(s.Open, "open question"),
				count(s.Frontends, "frontend"), size(s.LogBytes), size(s.LogLimit), s.rules())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func askStatus(ctx context.Context) (status, string, error) {
	raw, err := control(ctx, agents.ControlStatus)
	if err != nil {
		return status{}, "", err
	}
	var s status
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return status{}, "", fmt.Errorf("the core's status is not understood: %w", err)
	}
	return s, strings.TrimSpace(raw), nil
}

func stopCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stop", Short: "Refuse every waiting call, then end the core", Args: cobra.NoArgs,
		Long: "Every waiting call is refused and its question withdrawn with `shutdown`; then the core ends.\n" +
			"(A core that gets SIGTERM ends nothing: the next one goes on with every question.)",
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A core may be gone before its reply has left: that it goes is the reply.
			_, err := control(cmd.Context(), agents.ControlStop)
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				return err
			}
			return gone(cmd.Context())
		},
	}
}

// gone waits until the core has let go of its sockets and its state, so that
// the next one can start.
func gone(ctx context.Context) error {
	dirs, err := place.Resolve()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("the core was told to stop and is still there after 30 s"))
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if _, err := control(ctx, agents.ControlStatus); errors.Is(err, errDown) && !natsd.Locked(dirs.State) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// control sends one control line to the core's agent.sock and returns what it
// answered.
func control(ctx context.Context, event string) (string, error) {
	dirs, err := place.Resolve()
	if err != nil {
		return "", err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", dirs.AgentSocket())
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return "", errDown
	}
	if err != nil {
		return "", fmt.Errorf("reach the core: %w", err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return "", err
	}
	if err := json.NewEncoder(c).Encode(events.HookCall{V: 1, Agent: agents.ControlAgent, Event: event, PID: os.Getpid()}); err != nil {
		return "", fmt.Errorf("reach the core: %w", err)
	}
	var line events.HookLine
	if err := json.NewDecoder(c).Decode(&line); err != nil {
		return "", fmt.Errorf("the core did not answer: %w", err)
	}
	if line.Exit != 0 {
		return "", errors.New(strings.TrimSpace(line.Stderr))
	}
	return line.Stdout, nil
}

// rules tells which rules hold: without any, every call goes on.
func (s status) rules() string {
	switch {
	case s.RulesBad != "":
		return "rules broken, gated calls are refused: " + s.RulesBad
	case s.Rules == 0:
		return "no rules, every call goes on: " + s.RulesFile
	}
	return count(s.Rules, "rule") + ": " + s.RulesFile
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
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
