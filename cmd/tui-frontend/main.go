// Command tui-frontend shows what waits for a person in a terminal, and carries
// the answers.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/tui"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "tui-frontend: "+err.Error())
		os.Exit(1)
	}
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
	flags := flag.NewFlagSet("tui-frontend", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // it has no language but English
	scope := flags.String("scope", events.DoorAll, w.Say(words.FlagScope))
	flags.Func("language", w.Setting("language"), func(l string) error { return config.Set("language", l) })
	socket := flags.String("socket", dirs.NATSSocket(), w.Say(words.FlagSocket))
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		usage(flags, w)
		return err
	case err != nil:
		return errors.New(w.Say(words.WrongUse, err))
	case flags.NArg() > 0:
		return errors.New(w.Say(words.WrongUse, flags.Arg(0)))
	}
	if !term.IsTerminal(os.Stdin.Fd()) || !term.IsTerminal(os.Stdout.Fd()) {
		return errors.New(w.Say(words.NotATerminal))
	}
	if *socket == dirs.NATSSocket() {
		// Only now: a core that is stopped while the screen is open stays so.
		if err := place.Start(ctx, dirs); err != nil {
			return errors.New(w.Say(words.CannotConnect, err))
		}
	}
	return show(ctx, *socket, *scope, w)
}

func usage(flags *flag.FlagSet, w words.Words) {
	fmt.Fprintln(os.Stderr, w.Say(words.Usage))
	flags.VisitAll(func(f *flag.Flag) { fmt.Fprintf(os.Stderr, "\n  --%s VALUE\n      %s\n", f.Name, f.Usage) })
}

// show runs the client and the screen until one of them ends.
func show(ctx context.Context, socket, scope string, w words.Words) error {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails
	self := events.NewID(time.Now(), entropy)
	client, err := frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", socket) },
		ID:   self, Kind: events.FrontendTUI, Capable: true, Name: "tui", Scope: scope,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- client.Run(ctx)
		cancel()
	}()
	home, _ := os.UserHomeDir() // without it paths are shown whole
	err = tui.Run(ctx, tui.Options{
		Client: client, Inbox: client.Inbox(), Self: self, Principal: client.Principal, Words: w, Home: home,
		Changed: func(ctx context.Context, changed func()) {
			for _, err := range client.Updates(ctx) {
				if err != nil {
					return
				}
				changed()
			}
		},
	})
	cancel()
	return errors.Join(err, <-ended)
}
