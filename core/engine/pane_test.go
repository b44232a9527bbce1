package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

const inTmux = "tmux:%3:/tmp/tmux-1000/default"

// standing is a proposal of an agent that stands in a pane.
func (r *rig) standing(pane string) core.Proposal {
	p := r.proposal(`{"path":"a"}`)
	p.Pane = pane
	return p
}

// told lists the panes that the feed said a session is in.
func (r *rig) told() (list []string) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.live {
		if l.Session != nil {
			list = append(list, l.Session.Pane)
		}
	}
	return list
}

func TestF2PaneOfASession(t *testing.T) {
	bubble(t, "F2 it is where the agent was last heard of, and told when that changes", func(t *testing.T) {
		r := newRig(t)
		for _, step := range []struct {
			say, want string
			told      int
		}{
			{inTmux, inTmux, 0}, // said with the session's beginning
			{inTmux, inTmux, 0},
			{"zellij:5:calm", "zellij:5:calm", 1},
			{"screen:1:x", "zellij:5:calm", 1}, // what names no pane changes nothing
			{"tmux:%3:/tmp/x;rm -r y\n", "zellij:5:calm", 1},
			{"", "zellij:5:calm", 1},
			{inTmux, inTmux, 2},
		} {
			r.send(r.standing(step.say)).verdict()
			if h := r.eng.Sessions(events.DoorAll)[0]; h.Pane != step.want || len(r.told()) != step.told {
				t.Errorf("after %q: %q, told %q", step.say, h.Pane, r.told())
			}
		}
	})
	bubble(t, "F2 an observed event and an opening say it too", func(t *testing.T) {
		r := newRig(t)
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1", Pane: inTmux})
		if h := r.eng.Sessions(events.DoorAll)[0]; h.Pane != inTmux {
			t.Errorf("%+v", h)
		}
		head, _, err := r.eng.OpenSession(t.Context(), core.SessionOpening{Agent: "generic", Native: "s2", Cwd: r.dir, Pane: "zellij:1:s"})
		if err != nil || head.Pane != "zellij:1:s" {
			t.Errorf("%+v %v", head, err)
		}
	})
}

func TestB7B29PanesNarrowACapableFrontend(t *testing.T) {
	onlyPanes := func(r *rig) *screen {
		s := &screen{r, engine.Frontend{ID: engine.NewID(time.Now()), Principal: "uid:1"}}
		r.eng.Hello(s.f, events.DoorAll, events.Hello{Kind: events.FrontendTUI, Capable: true, Panes: true})
		return s
	}
	for name, c := range map[string]struct {
		p     func(r *rig) core.Proposal
		shown bool
	}{
		"B29 where the agent stands in one":    {func(r *rig) core.Proposal { return r.standing(inTmux) }, true},
		"B29 B30 where it does not":            {func(r *rig) core.Proposal { return r.standing("") }, false},
		"B29 B109 where the one above it does": {func(r *rig) core.Proposal { r.send(r.standing(inTmux)); return r.childOf("s1") }, true},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, "h1")
			r.hook["h1"] = asks
			s := onlyPanes(r)
			call := r.send(c.p(r))
			if !c.shown {
				if v := call.verdict(); v.EndReason != events.EndNoFrontend {
					t.Errorf("%s", toJSON(v))
				}
				return
			}
			if s.answer(s.questionOf(call), events.AnswerContinue); !call.verdict().Allow {
				t.Error("refused")
			}
		})
	}
	bubble(t, "B7 it receives nothing where it could not show it", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		blind := onlyPanes(r)
		r.attach("uid:1") // capable, and never receives anything
		call := r.send(r.standing(""))
		began := time.Now()
		blind.question() // which reports it as received
		if v := call.verdict(); v.EndReason != events.EndUnclaimed || time.Since(began) > 10*time.Second {
			t.Errorf("after %v: %s", time.Since(began), toJSON(v))
		}
	})
	bubble(t, "F3 after a restart the asker that comes back says where it stands", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		onlyPanes(r)
		call := r.send(r.standing(inTmux))
		synctest.Wait()
		r.restart()
		again := r.send(call.p)
		s := onlyPanes(r)
		if s.answer(s.questionOf(again), events.AnswerContinue); !again.verdict().Allow {
			t.Error("refused")
		}
		if h := r.eng.Sessions(events.DoorAll)[0]; h.Pane != inTmux {
			t.Errorf("%+v", h)
		}
	})
}

// childOf is a call of a session below another one, whose own agent says no pane.
func (r *rig) childOf(parent string) core.Proposal {
	r.t.Helper()
	above := events.SessionToken(events.CoreToken("rig"), "generic", parent)
	_, _, err := r.eng.OpenSession(r.t.Context(), core.SessionOpening{Agent: "generic", Native: "below", Cwd: r.dir, Parent: above})
	must(r.t, err)
	p := r.proposal(`{"path":"b"}`)
	p.Native = "below"
	return p
}

func TestF2OpenedTellsWhenASessionBegan(t *testing.T) {
	bubble(t, "F2 over restarts, and anew when it is open again", func(t *testing.T) {
		r := newRig(t)
		began := events.At(time.Now())
		r.propose(`{"path":"a"}`).verdict()
		pass(time.Hour)
		r.propose(`{"path":"a"}`).verdict()
		opened := func() events.Micros {
			for _, h := range r.eng.Sessions(events.DoorAll) {
				if h.Native == "s1" {
					return h.Opened
				}
			}
			return 0
		}
		if opened() != began {
			t.Errorf("%v, want %v", opened(), began)
		}
		above, _, err := r.eng.OpenSession(t.Context(), core.SessionOpening{Agent: "generic", Native: "above", Cwd: r.dir})
		must(t, err)
		_, _, err = r.eng.OpenSession(t.Context(), core.SessionOpening{Agent: "generic", Native: "s1", Cwd: r.dir, Parent: above.Session})
		must(t, err)
		if opened() != began {
			t.Errorf("with a parent %v, want %v", opened(), began)
		}
		r.restart()
		if opened() != began {
			t.Errorf("after a restart %v, want %v", opened(), began)
		}
		r.observe(core.Observation{Signal: signal(events.SessionEnd)})
		pass(time.Second)
		again := events.At(time.Now())
		r.propose(`{"path":"a"}`).verdict()
		if opened() != again {
			t.Errorf("opened again %v, want %v", opened(), again)
		}
	})
}
