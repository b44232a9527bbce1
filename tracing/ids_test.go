package tracing

import (
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

func TestParseTraceparent(t *testing.T) {
	for s, ok := range map[string]bool{
		agentParent: true,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00":   true,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":   true,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x": true,
		"":                           false,
		"00":                         false,
		agentParent + "-x":           false,
		agentParent + "0":            false,
		"cc" + agentParent[2:] + "0": false,
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": false,
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01": false,
	} {
		if sc, got := ParseTraceparent(s); got != ok || sc.IsValid() != ok {
			t.Errorf("%q: %v, %v", s, sc, got)
		}
	}
}

// TestIDsArePinned: other programs may derive them too.
func TestIDsArePinned(t *testing.T) {
	if got := TraceID("store", "object").String(); got != "f8eff01a6ddc2eb458730c1f8913ec35" {
		t.Errorf("trace id %s", got)
	}
	if got := SpanID("store", KindWait, "q").String(); got != "f4e437a8448c8fc6" {
		t.Errorf("span id %s", got)
	}
	if got := Leaf(7, "fermata.ev.x", events.DigestOf([]byte("m"))); got != "fbac52d294f0ce7ab045e4397f1c700e9d0fab5da0ffab3f1c7c8cfeea9d915f" {
		t.Errorf("leaf %s", got)
	}
	k := options(nil).Key
	if got := k.Version("d"); got != "hmac-sha256:k1:e016f3cdc84ea84f6cf59a266f58e7b901978a5f488c6e7b85c05eb7bc7c12af" {
		t.Errorf("commitment %s", got)
	}
	if k.Version("d") == k.Actor("d") || k.Actor("d") == (Key{ID: "k1", Secret: []byte("x")}).Actor("d") {
		t.Error("commitments of different things are equal")
	}
}

func TestOrigin(t *testing.T) {
	o := Origin{StoreID: "s", Session: "a", Operation: "op"}
	own := o.Trace()
	o.Turn = "12"
	turn := o.Trace()
	other := o
	other.Session = "b"
	if own == turn || turn == other.Trace() || o.Parent().IsValid() {
		t.Errorf("own %s, turn %s, the other session's %s", own, turn, other.Trace())
	}
	o.Traceparent = "nonsense"
	if o.Trace() != turn {
		t.Error("an invalid traceparent changed the trace")
	}
	o.Traceparent = agentParent
	if o.Trace().String() != "4bf92f3577b34da6a3ce929d0e0e4736" || o.Parent().String() != "00f067aa0ba902b7" {
		t.Errorf("trace %s, parent %s", o.Trace(), o.Parent())
	}
	if sc, ok := ParseTraceparent(o.HookTraceparent("run")); !ok || sc.TraceID() != o.Trace() || sc.SpanID() != o.Span(KindHookRun, "run") {
		t.Errorf("a hook gets %s", o.HookTraceparent("run"))
	}
}
