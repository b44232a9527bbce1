package frontdesk_test

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/frontdesk"
	"github.com/fermata-hitl/fermata/events"
)

// The engine is a desk.
var _ frontdesk.Desk = (*engine.Engine)(nil)

// garbage is what no honest frontend sends.
func garbage() [][]byte {
	return [][]byte{
		nil,
		{0xc1},
		{0xdd, 0xff, 0xff, 0xff, 0xff},
		{0xdf, 0xff, 0xff, 0xff, 0xff},
		{0x80, 0x80},
		[]byte("{"), []byte("{}{}"),
		[]byte(`{"question":7}`), []byte(`{"unknown":1}`), []byte(strings.Repeat("\x91", 100)), []byte("\x81\xa1x\x01"), make([]byte, 100_000),
	}
}

func live(number string, data []byte) *nats.Msg {
	m := nats.NewMsg(events.LiveSubject(main.Project, main.Session))
	m.Data = data
	m.Header.Set(events.HeaderFeed, number)
	return m
}

// raw is a frontend that speaks for itself.
func (r *rig) raw(uid int) (nc *nats.Conn, id events.ID) {
	r.t.Helper()
	r.next++
	id = newID(r.next)
	nc, err := nats.Connect("nats://127.0.0.1", nats.Name("fe."+string(id)), nats.CustomInboxPrefix(events.InboxPrefix(id)),
		nats.SetCustomDialer(plain{&wire{r: r, uid: uid}}), nats.NoReconnect())
	must(r.t, err)
	return nc, id
}

type plain struct{ w *wire }

func (p plain) Dial(string, string) (net.Conn, error) { return p.w.dial(context.Background()) }

func (r *rig) request(nc *nats.Conn, subject string, data []byte) []byte {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, time.Second)
	defer cancel()
	m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		r.t.Errorf("%s: %v", subject, err)
		return nil
	}
	return m.Data
}

type refusal struct {
	Refused *events.Refused `json:"refused"`
}

func code(t *testing.T, data []byte) events.Reject {
	t.Helper()
	var r refusal
	if len(data) > 0 && data[0] == '{' {
		must(t, json.Unmarshal(data, &r))
	} else {
		must(t, events.Decode(data, &r))
	}
	if r.Refused == nil {
		return ""
	}
	return r.Refused.Code
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := events.Encode(v)
	must(t, err)
	return b
}

// TestGarbageCommands: every command gets a typed reply in its own encoding,
// and the door lives on.
func TestGarbageCommands(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		nc, id := r.raw(1)
		lobby := []string{events.VerbHello, events.VerbRenew, events.VerbBye, events.VerbSessions, events.VerbFind, events.VerbHistory, "nonsense", events.VerbClaim}
		session := []string{
			events.VerbSync, events.VerbShow, events.VerbReceived, events.VerbPresented, events.VerbClaim, events.VerbRelease,
			events.VerbRespond, events.VerbRing, events.VerbRun, "nonsense", events.VerbHello,
		}
		for _, data := range garbage() {
			for _, v := range lobby {
				reply := r.request(nc, events.LobbySubject(events.DoorAll, id, v), data)
				if got := code(t, reply); got != events.RejectMalformed {
					t.Errorf("%s %.20q: %q, want malformed", v, data, got)
				}
			}
			for _, v := range session {
				reply := r.request(nc, events.FrontendSubject(main.Project, main.Session, id, v), data)
				if got := code(t, reply); got != events.RejectMalformed {
					t.Errorf("%s %.20q: %q, want malformed", v, data, got)
				}
				if asJSON := len(data) > 0 && data[0] == '{'; asJSON != (reply[0] == '{') {
					t.Errorf("%s %.20q: the reply is in another encoding", v, data)
				}
			}
		}
		if got := code(t, r.request(nc, events.LobbySubject(events.DoorAll, id, events.VerbHello), []byte(`{"kind":"cli","capable":false}`))); got != "" {
			t.Fatalf("an honest hello: %q", got)
		}
		nc.Close()
	})
}

func TestForm(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	good := events.Respond{Question: newID(1), Digest: events.DigestOf(args), Answer: events.AnswerContinue, Human: true, Text: long}
	respond := func(change func(*events.Respond)) events.Respond { c := good; change(&c); return c }
	for _, c := range []struct {
		name, verb string
		command    any
		want       events.Reject
	}{
		{"answer", events.VerbRespond, good, events.RejectUnknownQuestion},
		{"B6 no answer of ours", events.VerbRespond, respond(func(c *events.Respond) { c.Answer = "maybe" }), events.RejectMalformed},
		{"long text", events.VerbRespond, respond(func(c *events.Respond) { c.Text += "x" }), events.RejectMalformed},
		{"text is no UTF-8", events.VerbRespond, respond(func(c *events.Respond) { c.Text = "\xff" }), events.RejectMalformed},
		{"digest is none", events.VerbRespond, respond(func(c *events.Respond) { c.Digest = "x" }), events.RejectMalformed},
		{"id is none", events.VerbClaim, events.ClaimCommand{Question: "x"}, events.RejectMalformed},
		{"claim", events.VerbClaim, events.ClaimCommand{Question: newID(1)}, events.RejectUnknownQuestion},
		{"offset", events.VerbShow, events.Show{Question: newID(1), Offset: -1}, events.RejectMalformed},
		{"cursor", events.VerbSync, events.Sync{Cursor: "x"}, events.RejectMalformed},
		{"first page", events.VerbSync, events.Sync{}, ""},
		{"257 received", events.VerbReceived, events.Received{Questions: make([]events.ID, 257)}, events.RejectMalformed},
		{"find nothing", events.VerbFind, events.Find{}, events.RejectMalformed},
		{"find both", events.VerbFind, events.Find{Question: newID(1), Operation: newID(1)}, events.RejectMalformed},
		{"F2 history of a wrong number", events.VerbHistory, events.History{Limit: -1}, events.RejectMalformed},
		{"F2 history", events.VerbHistory, events.History{}, ""},
		{"F1 ring of no question", events.VerbRing, events.Ring{}, events.RejectMalformed},
		{"F1 ring", events.VerbRing, events.Ring{Question: newID(1)}, events.RejectUnknownQuestion},
		{"B112 no run", events.VerbRun, events.RunCommand{Operation: newID(1)}, events.RejectMalformed},
		{"B112 a run of no operation", events.VerbRun, events.RunCommand{Operation: "x", Run: newID(1)}, events.RejectMalformed},
		{"B112 an unknown run", events.VerbRun, events.RunCommand{Run: newID(1)}, events.RejectUnknownOperation},
		{"kind", events.VerbHello, events.Hello{Kind: "toaster"}, events.RejectMalformed},
		{"name", events.VerbHello, events.Hello{Kind: events.FrontendTUI, Name: long}, events.RejectMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				nc, id := r.raw(1)
				subject := events.FrontendSubject(main.Project, main.Session, id, c.verb)
				if c.verb == events.VerbFind || c.verb == events.VerbHello || c.verb == events.VerbHistory {
					subject = events.LobbySubject(events.DoorAll, id, c.verb)
				}
				if got := code(t, r.request(nc, subject, encode(t, c.command))); got != c.want {
					t.Errorf("refused %q, want %q", got, c.want)
				}
				nc.Close()
			})
		})
	}
}

// TestReplyOnlyToOwnInbox: the core does not let itself be used to write on
// somebody else's subject.
func TestReplyOnlyToOwnInbox(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		nc, id := r.raw(1)
		feed := events.LiveSubject(main.Project, main.Session)
		heard, err := r.core.SubscribeSync(">")
		must(t, err)
		hello := encode(t, events.Hello{Kind: events.FrontendCLI})
		subject := events.LobbySubject(events.DoorAll, id, events.VerbHello)
		must(t, nc.Publish(subject, hello))
		for _, reply := range []string{feed, "_IB." + string(newID(3)) + ".x", events.InboxPrefix(id), events.InboxPrefix(id) + "x.y"} {
			must(t, nc.PublishRequest(subject, reply, hello))
		}
		settle(soon)
		for {
			n, _, err := heard.Pending()
			must(t, err)
			if n == 0 {
				break
			}
			m, err := heard.NextMsgWithContext(r.ctx)
			must(t, err)
			if m.Subject == feed || strings.HasPrefix(m.Subject, "_IB") {
				t.Errorf("the core wrote on %s", m.Subject)
			}
		}
		if len(r.desk.attached) != 0 {
			t.Error("a command without an honest reply subject was carried out")
		}
		nc.Close()
	})
}

// TestF4NoLiveConnection: an id without a live connection behind it has no
// principal and no rights, even if a message with it arrives.
func TestF4NoLiveConnection(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		inbox := events.InboxPrefix(newID(9)) + ".x"
		heard, err := r.core.SubscribeSync(inbox)
		must(t, err)
		must(t, r.core.PublishRequest(events.LobbySubject(events.DoorAll, newID(9), events.VerbHello), inbox,
			encode(t, events.Hello{Kind: events.FrontendCLI})))
		m, err := heard.NextMsgWithContext(r.ctx)
		must(t, err)
		if got := code(t, m.Data); got != events.RejectNotAllowed {
			t.Errorf("refused %q, want not_allowed", got)
		}
	})
}

// TestNoHeadOfLine: commands that wait hold up no other, up to a bound.
func TestNoHeadOfLine(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		stuck, free := r.desk.ask(main, 1, args), r.desk.ask(main, 2, args)
		gate := make(chan struct{})
		r.desk.hooks.claim = func(id events.ID) {
			if id == stuck {
				<-gate
			}
		}
		nc, id := r.raw(1)
		other, otherID := r.raw(2)
		claim := events.FrontendSubject(main.Project, main.Session, id, events.VerbClaim)
		var waiting sync.WaitGroup
		for range 512 {
			waiting.Go(func() { r.request2(nc, claim, encode(t, events.ClaimCommand{Question: stuck})) })
		}
		synctest.Wait()
		if got := code(t, r.request(nc, claim, encode(t, events.ClaimCommand{Question: free}))); got != events.RejectTooMany {
			t.Errorf("command 513: %q, want too_many", got)
		}
		if got := code(t, r.request(nc, events.FrontendSubject(main.Project, main.Session, id, events.VerbSync), encode(t, events.Sync{}))); got != "" {
			t.Errorf("sync beside the waiting claims: %q", got)
		}
		subject := events.FrontendSubject(main.Project, main.Session, otherID, events.VerbClaim)
		if got := code(t, r.request(other, subject, encode(t, events.ClaimCommand{Question: free}))); got != "" {
			t.Errorf("another frontend's claim: %q", got)
		}
		close(gate)
		waiting.Wait()
		synctest.Wait()
		if got := code(t, r.request(nc, claim, encode(t, events.ClaimCommand{Question: stuck}))); got != "" {
			t.Errorf("after the others were done: %q", got)
		}
		nc.Close()
		other.Close()
	})
}

// request2 does not mind that the reply is late.
func (r *rig) request2(nc *nats.Conn, subject string, data []byte) {
	_, err := nc.RequestMsgWithContext(r.ctx, &nats.Msg{Subject: subject, Data: data})
	must(r.t, err)
}

// TestPanicIsContained: a fault in one command ends that command.
func TestPanicIsContained(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		question := r.desk.ask(main, 1, args)
		r.desk.hooks.claim = func(events.ID) { panic("waits") }
		r.desk.hooks.renew = func() { panic("does not wait") }
		nc, id := r.raw(1)
		claim := events.FrontendSubject(main.Project, main.Session, id, events.VerbClaim)
		if got := code(t, r.request(nc, claim, encode(t, events.ClaimCommand{Question: question}))); got != events.RejectInternal {
			t.Errorf("claim: %q, want internal", got)
		}
		if got := code(t, r.request(nc, events.LobbySubject(events.DoorAll, id, events.VerbRenew), encode(t, events.Renew{}))); got != events.RejectInternal {
			t.Errorf("renew: %q, want internal", got)
		}
		r.desk.hooks.claim = nil
		if got := code(t, r.request(nc, claim, encode(t, events.ClaimCommand{Question: question}))); got != "" {
			t.Errorf("claim afterwards: %q", got)
		}
		nc.Close()
	})
}

// TestAnnounce: the core says every five seconds that it is there, and when a
// session opens.
func TestAnnounce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		nc, _ := r.raw(1)
		heard, err := nc.SubscribeSync(events.AnnounceSubject)
		must(t, err)
		must(t, nc.FlushWithContext(withTimeout(r.ctx, t)))
		r.session(child, main.Session)
		m, err := heard.NextMsgWithContext(r.ctx)
		must(t, err)
		var a events.Announce
		must(t, events.Decode(m.Data, &a))
		if a.Opened == nil || a.Opened.Session != child.Session || a.Epoch != r.desk.epoch {
			t.Errorf("announced %+v", a)
		}
		settle(30 * time.Second)
		if n, _, _ := heard.Pending(); n != 6 {
			t.Errorf("%d announcements in 30 s, want 6", n)
		}
		nc.Close()
	})
}

func withTimeout(parent context.Context, t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(parent, time.Second)
	t.Cleanup(cancel)
	return ctx
}
