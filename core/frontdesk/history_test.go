package frontdesk_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// TestF2F11HistoryOverTheDoor: what happened of late is there for whoever attaches
// later, in either encoding and for its scope alone.
func TestF2F11HistoryOverTheDoor(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		mine := events.Line{Operation: newID(7), Project: main.Project, Session: main.Session, Tool: events.Tool{Name: "Bash"}, State: events.LineRefused, At: 7}
		theirs := mine
		theirs.Operation, theirs.Session = newID(8), child.Session
		run := events.RunLine{Run: newID(9), Operation: newID(7), Project: main.Project, Session: main.Session, State: events.RunEnded, At: 7}
		r.desk.mu.Lock()
		r.desk.history = events.HistoryReply{Lines: []events.Line{mine, theirs}, Runs: []events.RunLine{run}}
		r.desk.mu.Unlock()
		nc, id := r.raw(1)
		for scope, want := range map[string]events.HistoryReply{
			events.DoorAll:       {Epoch: r.desk.epoch, Lines: []events.Line{mine, theirs}, Runs: []events.RunLine{run}},
			string(main.Session): {Epoch: r.desk.epoch, Lines: []events.Line{mine}, Runs: []events.RunLine{run}},
		} {
			subject := events.LobbySubject(scope, id, events.VerbHistory)
			var packed, plain events.HistoryReply
			must(t, events.Decode(r.request(nc, subject, encode(t, events.History{})), &packed))
			must(t, json.Unmarshal(r.request(nc, subject, []byte("{}")), &plain))
			for form, got := range map[string]events.HistoryReply{"msgpack": packed, "json": plain} {
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s, %s (-want +got):\n%s", scope, form, d)
				}
			}
		}
		said := r.request(nc, events.FrontendSubject(main.Project, main.Session, id, events.VerbRun), encode(t, events.RunCommand{Operation: run.Operation, Run: run.Run}))
		var reply events.RunReply
		must(t, events.Decode(said, &reply))
		if reply.Refused != nil || reply.Stderr == "" || reply.Reason == "" {
			t.Errorf("B112: %+v", reply)
		}
		nc.Close()
	})
}

// TestF1OneScreenRings: of all screens one calls the person.
func TestF1OneScreenRings(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		q := r.desk.ask(main, 1, args)
		yes := 0
		for range 3 {
			nc, id := r.raw(1)
			var reply events.RingReply
			must(t, events.Decode(r.request(nc, events.FrontendSubject(main.Project, main.Session, id, events.VerbRing), encode(t, events.Ring{Question: q})), &reply))
			if reply.Refused != nil {
				t.Error(reply.Refused)
			}
			if reply.Yours {
				yes++
			}
			nc.Close()
		}
		if yes != 1 {
			t.Errorf("%d screens ring", yes)
		}
	})
}
