// Command tui-frontend shows what waits for a person in a terminal, and carries
// the answers: on a screen, or with --plain in lines of text.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/charmbracelet/x/term"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	// A reader that is gone is an error of a write, so that the core hears a goodbye.
	// Caught rather than ignored, since a pager would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+": "+card.Escape(err.Error())) // fermata starts it by its own name
		os.Exit(1)
	}
}

// wish is what the command line asks for.
type wish struct {
	scope            string
	session, project string // names, which choose the scope
	question         events.ID
	plain            bool
	socket           string
}

func run(ctx context.Context, args []string) error {
	w := words.In(words.Choose(place.Language(place.LanguageFlag(args)), os.Getenv))
	dirs, err := place.Resolve()
	if err != nil {
		return errors.New(w.Say(words.NoDirectories, err))
	}
	config, err := place.Load(dirs.ConfigFile())
	if err != nil {
		return errors.New(w.Say(words.BadConfig, err))
	}
	wish, err := parse(args, dirs, &config, w)
	if err != nil {
		return err
	}
	if !wish.plain && (!term.IsTerminal(os.Stdin.Fd()) || !term.IsTerminal(os.Stdout.Fd())) {
		return errors.New(w.Say(words.NotATerminal))
	}
	if wish.socket == dirs.NATSSocket() {
		// Only now: a core that is stopped while the screen is open stays so.
		if err := place.Start(ctx, dirs); err != nil {
			return errors.New(w.Say(words.CannotConnect, err))
		}
	}
	if err := wish.choose(ctx, w); err != nil {
		return err
	}
	return wish.show(ctx, w)
}

// parse reads the command line.
func parse(args []string, dirs place.Dirs, config *place.Config, w words.Words) (wish wish, _ error) {
	flags := flag.NewFlagSet("tui-frontend", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // it has no language but English
	flags.StringVar(&wish.scope, "scope", "", w.Say(words.FlagScope))
	flags.StringVar(&wish.session, "session", "", w.Say(words.FlagSession))
	flags.StringVar(&wish.project, "project", "", w.Say(words.FlagProject))
	flags.BoolVar(&wish.plain, "plain", false, w.Say(words.FlagPlain))
	flags.Func("question", w.Say(words.FlagQuestion), func(given string) error {
		id, err := events.ParseID(given)
		wish.question = id
		return err
	})
	flags.Func("language", w.Setting("language"), func(l string) error { return config.Set("language", l) })
	flags.StringVar(&wish.socket, "socket", dirs.NATSSocket(), w.Say(words.FlagSocket))
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		usage(flags, w)
		return wish, err
	case err != nil:
		return wish, errors.New(w.Say(words.WrongUse, err))
	case flags.NArg() > 0:
		return wish, errors.New(w.Say(words.WrongUse, flags.Arg(0)))
	case wish.scope != "" && (wish.session != "" || wish.project != ""):
		return wish, errors.New(w.Say(words.WrongUse, "--scope"))
	}
	return wish, nil
}

func usage(flags *flag.FlagSet, w words.Words) {
	fmt.Fprintln(os.Stderr, w.Say(words.Usage))
	flags.VisitAll(func(f *flag.Flag) {
		value := " VALUE"
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			value = ""
		}
		fmt.Fprintf(os.Stderr, "\n  --%s%s\n      %s\n", f.Name, value, f.Usage)
	})
}
