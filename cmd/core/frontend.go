package main

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// attach connects to the running core as a frontend of kind cli and calls do
// once it has the list of open questions. It never starts a core: without one
// the answer is errDown. Capable = what is asked while it is attached may be
// left to it.
func attach(ctx context.Context, dirs place.Dirs, capable bool, do func(context.Context, *frontends.Client) error) error {
	probe, err := dial(ctx, dirs)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return errDown
	}
	if err != nil {
		return err
	}
	probe.Close()
	client, err := frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, dirs) },
		ID:   engine.NewID(time.Now()), Kind: events.FrontendCLI, Capable: capable, Name: "core",
	})
	if err != nil {
		return err
	}
	end := background(ctx, func(ctx context.Context) { _ = client.Run(ctx) })
	defer end()
	if err := attached(ctx, client); err != nil {
		return err
	}
	return do(ctx, client)
}

func dial(ctx context.Context, dirs place.Dirs) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", dirs.NATSSocket())
}

// attached waits until the client has every open question in its list.
func attached(ctx context.Context, c *frontends.Client) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("the core did not answer within 10 s"))
	defer cancel()
	for _, err := range c.Updates(ctx) {
		if c.Inbox().Complete() {
			return nil
		}
		if err != nil {
			break
		}
	}
	return context.Cause(ctx)
}
