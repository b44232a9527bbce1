// Command core owns sessions, runs hooks, and alone writes the log.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/plain"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// version is the build's; set by the linker.
var version = "0.1.0-dev"

// Exit codes of the CLI contract.
const (
	exitOK      = 0
	exitFault   = 1 // usage, no core, or something was found
	exitRefused = 3 // a typed no
)

// exitError ends the program with a code; its text, if any, goes to stderr.
type exitError struct {
	code int
	err  error
}

// Error implements error.
func (e exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap is the cause.
func (e exitError) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, calledAs(os.Args[0]), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
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

func run(ctx context.Context, name string, args []string, in io.Reader, out, problems io.Writer) int {
	c := cli{name: name, w: words.In(words.Choose(place.Language(place.LanguageFlag(args)), os.Getenv))}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(problems)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit exitError
	if !errors.As(err, &exit) {
		exit = exitError{exitFault, err}
	}
	if exit.err != nil {
		fmt.Fprintln(problems, name+": "+card.Escape(c.explain(exit.err)))
	}
	return exit.code
}

// cli is the program as a person called it: under which name, in which
// language.
type cli struct {
	name string
	w    words.Words
}

func (c cli) root() *cobra.Command {
	root := &cobra.Command{
		Use: c.name, Short: c.w.Say(words.RootShort), Long: c.w.Say(words.RootLong, c.name),
		Version: version, SilenceUsage: true, SilenceErrors: true,
		Args: cobra.ArbitraryArgs, RunE: c.group,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return c.checkLanguage(cmd) },
	}
	root.AddCommand(
		c.serve(), c.status(), c.stop(), c.questions(), c.answer(), c.sessions(), c.hooks(), c.demo(), c.completion(),
	)
	c.speak(root)
	return root
}

// fault is an error in the person's language. What caused it, the last of the
// arguments that is an error, can be asked for with errors.Is.
func (c cli) fault(k words.Key, args ...any) error {
	f := spoken{text: c.w.Say(k, args...)}
	for _, a := range args {
		if err, ok := a.(error); ok {
			f.cause = err
		}
	}
	return f
}

// explain is an error as a person reads it: a sentence in their language before
// all, whoever found the cause.
func (c cli) explain(err error) string {
	var s spoken
	switch {
	case errors.As(err, &s):
		return err.Error()
	case errors.Is(err, plain.ErrNoAnswer):
		return c.w.Say(words.PromptEnded)
	}
	return c.w.Say(words.Fault, err)
}

// told is what an error says, in the person's language where it can.
func (c cli) told(err error) string {
	var s words.Saying
	if errors.As(err, &s) {
		return c.w.Tell(s)
	}
	return err.Error()
}

// spoken is a sentence of the catalogue and what is behind it.
type spoken struct {
	text  string
	cause error
}

// Error implements error.
func (s spoken) Error() string { return s.text }

// Unwrap is the cause.
func (s spoken) Unwrap() error { return s.cause }

// dirs tells where everything of this user is.
func (c cli) dirs() (place.Dirs, error) {
	dirs, err := place.Resolve()
	if err != nil {
		return place.Dirs{}, c.fault(words.NoDirectories, err)
	}
	return dirs, nil
}

// config reads config.yaml.
func (c cli) config(dirs place.Dirs) (place.Config, error) {
	config, err := place.Load(dirs.ConfigFile())
	if err != nil {
		return place.Config{}, c.fault(words.BadConfig, err)
	}
	return config, nil
}
