package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/plain"
	"github.com/fermata-hitl/fermata/frontends/tui"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// client makes a connection to the core that the wish names.
func (wish *wish) client(self events.ID, o frontends.Options) (*frontends.Client, error) {
	o.ID, o.Kind = self, events.FrontendTUI
	o.Dial = func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", wish.socket)
	}
	return frontends.New(o)
}

func newID() events.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails
	return events.NewID(time.Now(), entropy)
}

// show runs the client and the screen until one of them ends. A screen for one
// question is not capable: no other question may be left to it.
func (wish *wish) show(ctx context.Context, w words.Words) error {
	self, name := newID(), "tui"
	if wish.plain {
		name = "plain"
	}
	client, err := wish.client(self, frontends.Options{Capable: wish.question == "", Name: name, Scope: wish.scope})
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
	screen := wish.tui
	if wish.plain {
		screen = wish.lines
	}
	err = screen(ctx, client, self, w)
	cancel()
	return errors.Join(err, <-ended)
}

func (wish *wish) tui(ctx context.Context, client *frontends.Client, self events.ID, w words.Words) error {
	home, _ := os.UserHomeDir() // without it paths are shown whole
	return tui.Run(ctx, tui.Options{
		Client: client, Inbox: client.Inbox(), Self: self, Principal: client.Principal, Words: w, Home: home,
		Changed: client.Changes, Question: wish.question,
	})
}

func (wish *wish) lines(ctx context.Context, client *frontends.Client, self events.ID, w words.Words) error {
	home, _ := os.UserHomeDir()
	width, _, err := term.GetSize(os.Stdout.Fd())
	if err != nil {
		width = 0 // no terminal: as wide as one is as a rule
	}
	return plain.Run(ctx, plain.Options{
		Client: client, Inbox: client.Inbox(), Self: self, Principal: client.Principal, Words: w, Home: home,
		Changed: client.Changes, Only: wish.question, In: os.Stdin, Out: os.Stdout, Width: width,
	})
}
