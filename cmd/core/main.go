// Command core owns sessions, runs hooks, and alone writes the log.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// version is the build's; set by the linker.
var version = "0.1.0-dev"

// Exit codes of the CLI contract.
const (
	exitOK      = 0
	exitFault   = 1 // usage, or no core
	exitRefused = 3 // a typed no
)

// exitError ends the program with a code; its text, if any, goes to stderr.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, calledAs(os.Args[0]), os.Args[1:])
	stop()
	os.Exit(code)
}

// calledAs is the name that the person typed: `fermata X` is `core X`.
func calledAs(arg0 string) string {
	if filepath.Base(arg0) == "fermata" {
		return "fermata"
	}
	return "core"
}

func run(ctx context.Context, name string, args []string) int {
	root := &cobra.Command{
		Use:   name,
		Short: "Fermata holds an agent's operation until a person, or a rule of theirs, lets it go on",
		Long: "Fermata holds an agent's operation until a person, or a rule that a person wrote, lets it go on.\n" +
			"Try it: " + name + " demo. The screen: fermata, without a word. A core starts by itself when the first\n" +
			"agent or screen needs one.",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.AddCommand(serveCommand(), statusCommand(), stopCommand(), questionsCommand(), answerCommand(), demoCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit exitError
	if !errors.As(err, &exit) {
		exit = exitError{exitFault, err}
	}
	if text := exit.Error(); text != "" {
		fmt.Fprintln(os.Stderr, name+": "+text)
	}
	return exit.code
}
