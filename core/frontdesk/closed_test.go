package frontdesk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// closes ends a session as an engine does: quiet says that the feed's last
// message gets lost.
func (r *rig) closes(p engine.Place, quiet bool) {
	r.t.Helper()
	r.desk.mu.Lock()
	h := *r.desk.sessions[p]
	h.Closed = true
	r.desk.mute = quiet
	for id, q := range r.desk.open {
		if q.Session == p.Session {
			r.desk.end(events.End{Question: id, Result: events.ResultWithdrawn, Reason: events.EndSessionClosed})
		}
	}
	r.desk.publish(p, events.Live{Session: &h})
	r.desk.mute = false
	delete(r.desk.sessions, p)
	r.desk.mu.Unlock()
	r.door.Close(h)
}

// TestB107ClosedSession: a session that ended leaves every screen, in whatever
// scope, and comes back when it opens again.
func TestB107ClosedSession(t *testing.T) {
	for name, scope := range map[string]string{"all": events.DoorAll, "project": string(project), "the parent": string(main.Session)} {
		for _, quiet := range []bool{false, true} {
			title := name + ", told by the feed"
			if quiet {
				title = name + ", found at the next renewal"
			}
			t.Run(title, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.session(child, main.Session)
					s := r.screen(1, func(o *frontends.Options) { o.Scope = scope })
					settle(soon)
					stays, goes := r.desk.ask(main, 1, args), r.desk.ask(child, 2, args)
					synctest.Wait()
					r.closes(child, quiet)
					settle(6 * time.Second)
					if got := s.Inbox().Questions(); len(got) != 1 || got[0].ID != stays || len(s.Inbox().Sessions()) != 1 {
						t.Fatalf("%v in %v", got, s.Inbox().Sessions())
					}
					if end, ok := s.Inbox().Ended(goes); !ok || end.Reason != events.EndSessionClosed {
						t.Errorf("how the question ended: %v %+v", ok, end)
					}
					ctx, end := context.WithTimeout(r.ctx, 5*time.Second)
					defer end()
					_, err := s.Claim(ctx, goes)
					if no := (*events.Refused)(nil); !errors.As(err, &no) {
						t.Errorf("a claim in a closed session: %v", err)
					}
					if !s.Inbox().Attached() {
						t.Error("the screen was detached")
					}
					r.session(child, main.Session)
					settle(soon)
					again := r.desk.ask(child, 3, args)
					settle(soon)
					if _, ok := s.Inbox().Question(again); !ok {
						t.Error("a session that opened again is not shown")
					}
					s.stop()
				})
			})
		}
	}
}

// TestDoorForgetsClosedSessions: a door that opens and closes sessions all day
// listens to no more than at its beginning.
func TestDoorForgetsClosedSessions(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		before := r.core.NumSubscriptions()
		for n := range 100 {
			p := engine.Place{Project: project, Session: events.SessionToken("core", "claude", string(rune('a'+n)))}
			r.session(p, "")
			r.closes(p, false)
			r.door.Close(events.SessionHead{Project: p.Project, Session: p.Session}) // again is nothing
		}
		if after := r.core.NumSubscriptions(); after != before {
			t.Errorf("%d subscriptions, %d before", after, before)
		}
	})
}
