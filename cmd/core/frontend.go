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
	"github.com/fermata-hitl/fermata/frontends/words"
)

// attach connects to the running core as a frontend of kind cli and calls do
// once it has the list of open questions. It never starts a core: without one
// the answer is errDown. Capable = what is asked while it is attached may be
// left to it.
func (c cli) attach(ctx context.Context, dirs place.Dirs, capable bool, do func(context.Context, *frontends.Client) error) error {
	probe, err := dial(ctx, dirs)
	if err != nil {
		return c.unreachable(dirs, err)
	}
	probe.Close()
	client, err := frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, dirs) },
		ID:   engine.NewID(time.Now()), Kind: events.FrontendCLI, Capable: capable, Name: "core",
	})
	if err != nil {
		return c.fault(words.CannotConnect, err)
	}
	end := background(ctx, func(ctx context.Context) { _ = client.Run(ctx) })
	defer end()
	if err := c.attached(ctx, client); err != nil {
		return err
	}
	return do(ctx, client)
}

func dial(ctx context.Context, dirs place.Dirs) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", dirs.NATSSocket())
}

// errDown is behind the sentence that no core runs here.
var errDown = errors.New("down")

// unreachable tells why a socket of the core could not be reached.
func (c cli) unreachable(dirs place.Dirs, err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return spoken{text: c.whyDown(dirs), cause: errDown}
	}
	return c.fault(words.CannotConnect, err)
}

// whyDown says that no core runs here, or what keeps every core from it.
func (c cli) whyDown(dirs place.Dirs) string {
	if _, err := c.config(dirs); err != nil {
		return c.w.Say(words.NoneCanRun, err)
	}
	for _, dir := range []string{dirs.Runtime, dirs.State} {
		switch err := place.CheckPrivate(dir); {
		case err == nil || errors.Is(err, os.ErrNotExist):
		case errors.Is(err, place.ErrOpen):
			return c.w.Say(words.NoneCanRun, c.w.Say(words.DirectoryOpen, dir))
		default:
			return c.w.Say(words.NoneCanRun, c.w.Say(words.DirectoryForeign, dir))
		}
	}
	return c.w.Say(words.NoCore)
}

// attached waits until the client has every open question in its list.
func (c cli) attached(ctx context.Context, client *frontends.Client) error {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, patience, c.fault(words.NoAnswerWithin, int(patience/time.Second)))
	defer cancel()
	for _, err := range client.Updates(ctx) {
		if client.Inbox().Complete() {
			return nil
		}
		if err != nil {
			break
		}
	}
	return context.Cause(ctx)
}
