// Command acp-frontend runs an agent that speaks the Agent Client Protocol
// over stdio, and stands between it and the editor. It carries every message
// unchanged.
//
//	acp-frontend -- AGENT [ARGUMENT…]
//
// It exits with the agent's status: 128 and the signal's number when a signal
// ended it, 127 when the program is not there, 126 when it cannot be run, 2 for
// wrong usage.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/frontends/acp"
	"github.com/fermata-hitl/fermata/frontends/words"
)

const exitUsage = 2

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

func run(args []string, errors io.Writer) int {
	if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
		fmt.Fprintln(errors, language().Say(words.ACPUsage)) // stdout belongs to the protocol
		return 0
	}
	if len(args) < 2 || args[0] != "--" {
		w := language()
		fmt.Fprintf(errors, "acp-frontend: %s\n\n%s\n", w.Say(words.ACPNoAgent), w.Say(words.ACPUsage))
		return exitUsage
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	// An editor that is gone is an error of a write here, not our death: the
	// agent is to learn of it as if it had been connected directly. Caught
	// rather than ignored, since the agent would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	status, err := acp.Run(context.Background(), acp.Options{
		Argv: args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Signals: signals,
	})
	if err != nil {
		fmt.Fprintf(errors, "acp-frontend: %s\n", language().Say(words.Fault, err))
	}
	return status
}

// language is asked for only when there is something to say: the configuration
// is none of an editor's business until then.
func language() words.Words {
	return words.In(words.Choose(place.Language(""), os.Getenv))
}
