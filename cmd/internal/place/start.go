package place

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/fermata-hitl/fermata/cmd/internal/place/run"
)

// startLimit is how long a core may take to answer.
const startLimit = 10 * time.Second

// Start makes sure that a core answers, starting one if none does. It returns
// when nats.sock takes a connection, or with the reason when none could be
// started within ten seconds or before ctx ended.
func Start(ctx context.Context, d Dirs) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	s := run.Starter{Dirs: d, UID: os.Getuid(), Environ: os.Environ()}
	defer s.Done()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "unix", d.NATSSocket())
		if err == nil {
			return c.Close()
		}
		if failed := s.Start(); failed != nil {
			return tell("no core runs, and none could be started: %s", failed)
		}
		select {
		case <-ctx.Done():
			return tell("no core answers on %s (%s); what it says is in %s", d.NATSSocket(), err, d.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
