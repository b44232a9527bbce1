package frontdesk_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// counted counts the hellos that a client writes.
type counted struct {
	net.Conn
	hellos *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.hellos.Add(int64(bytes.Count(b, []byte("."+events.VerbHello+" "))))
	return c.Conn.Write(b)
}

// TestB109AScopeThatNobodyAnswers: a frontend of a project without a session waits
// calmly, and is there at once when one opens.
func TestB109AScopeThatNobodyAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		other := engine.Place{Project: events.ProjectToken("/q"), Session: events.SessionToken("core", "gemini", "x")}
		var hellos atomic.Int64
		s := r.screen(1, func(o *frontends.Options) {
			o.Scope = string(other.Project)
			dial := o.Dial
			o.Dial = func(ctx context.Context) (net.Conn, error) {
				c, err := dial(ctx)
				return counted{c, &hellos}, err
			}
		})
		defer s.stop()
		settle(time.Minute)
		if n := hellos.Load(); n < 20 || n > 90 || s.Inbox().Attached() {
			t.Errorf("%d hellos in a minute; attached: %v", n, s.Inbox().Attached())
		}
		r.session(other, "")
		synctest.Wait()
		settle(gathered)
		if !s.Inbox().Attached() {
			t.Error("it is not there when the session opens")
		}
	})
}

// gathered is what a hello waits for the answers of other cores.
const gathered = 110 * time.Millisecond
