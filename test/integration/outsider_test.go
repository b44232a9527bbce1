package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

// outsider is a NATS client on nats.sock that keeps to no rule of ours.
type outsider struct {
	t      *testing.T
	nc     *nats.Conn
	id     events.ID
	errors chan error // what the server says after the fact
}

// connect connects under a role: fe or op.
func (h *home) connect(t *testing.T, role string) *outsider {
	t.Helper()
	o := &outsider{t: t, id: engine.NewID(time.Now()), errors: make(chan error, 1000)}
	nc, err := h.tryConnect(role+"."+string(o.id), nats.CustomInboxPrefix(events.InboxPrefix(o.id)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.errors <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	o.nc = nc
	return o
}

func (h *home) tryConnect(name string, more ...nats.Option) (*nats.Conn, error) {
	return nats.Connect("nats://127.0.0.1", append(more, nats.Name(name), nats.NoReconnect(),
		nats.SetCustomDialer(unixDialer(h.dirs.natsSocket())))...)
}

// unixDialer dials a Unix socket whatever it is asked for.
type unixDialer string

// Dial implements nats.CustomDialer.
func (d unixDialer) Dial(_, _ string) (net.Conn, error) { return net.Dial("unix", string(d)) }

// refused does something that the server must refuse, and waits for its no.
func (o *outsider) refused(what string, do func() error) {
	o.t.Helper()
	err := do()
	if err == nil {
		ctx, cancel := context.WithTimeout(o.t.Context(), patience)
		defer cancel()
		err = o.nc.FlushWithContext(ctx)
	}
	if err != nil {
		o.t.Fatalf("%s: %v", what, err)
	}
	select {
	case err := <-o.errors:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			o.t.Errorf("%s: %v, want a permissions violation", what, err)
		}
	case <-time.After(patience):
		o.t.Errorf("%s was not refused", what)
	}
}

// ask sends a request and returns the refusal in its reply, nil for none.
func (o *outsider) ask(subject string, data []byte) *events.Refused {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	defer cancel()
	m, err := o.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		o.t.Fatalf("%s with %d bytes: %v", subject, len(data), err)
	}
	var reply struct {
		Refused *events.Refused `json:"refused"`
	}
	if len(m.Data) > 0 && m.Data[0] == '{' {
		err = json.Unmarshal(m.Data, &reply)
	} else {
		err = events.Decode(m.Data, &reply)
	}
	if err != nil {
		o.t.Fatalf("%s: reply %.100q: %v", subject, m.Data, err)
	}
	return reply.Refused
}

func garbageOnSubjects(t *testing.T, b *bystander) {
	o := b.connect(t, "fe")
	session := func(verb string) string {
		return events.FrontendSubject(b.asked.Project, b.asked.Session, o.id, verb)
	}
	var subjects []string
	for _, verb := range []string{
		events.VerbSync, events.VerbShow, events.VerbReceived, events.VerbPresented, events.VerbClaim, events.VerbRelease, events.VerbRespond,
	} {
		subjects = append(subjects, session(verb))
	}
	for _, verb := range []string{events.VerbHello, events.VerbFind} {
		subjects = append(subjects, events.LobbySubject(events.DoorAll, o.id, verb))
	}
	for _, subject := range subjects {
		for name, data := range corpus() {
			if r := o.ask(subject, data); r == nil {
				t.Errorf("%s with %s was taken", subject, name)
			}
		}
		b.alive(t)
	}
	if r := o.ask(session("format"), []byte("{}")); r == nil || r.Code != events.RejectMalformed {
		t.Errorf("a verb that does not exist: %+v", r)
	}
}

// trespasser: whose connection it is decides what it may say, never what it
// says of itself.
func trespasser(t *testing.T, b *bystander) {
	yes := events.Respond{Question: b.asked.ID, Digest: b.asked.Version.Digest, Answer: events.AnswerContinue, Human: true}
	answer, err := events.Encode(yes)
	if err != nil {
		t.Fatal(err)
	}
	other := engine.NewID(time.Now())
	answerAs := func(id events.ID) string {
		return events.FrontendSubject(b.asked.Project, b.asked.Session, id, events.VerbRespond)
	}
	for _, role := range []string{"fe", "op"} {
		o := b.connect(t, role)
		publish := map[string]string{
			"the log":               events.OperationSubject(b.asked.Project, b.asked.Session, b.asked.Operation),
			"the log's beginning":   events.GenesisSubject,
			"the JetStream API":     "$JS.API.STREAM.PURGE.FERMATA_0001",
			"the server":            "$SYS.REQ.SERVER.PING",
			"a session's feed":      events.LiveSubject(b.asked.Project, b.asked.Session),
			"announcements":         events.AnnounceSubject,
			"another frontend":      answerAs(other),
			"another agent":         "fermata.v1." + string(b.asked.Project) + "." + string(b.asked.Session) + ".op." + string(other) + ".commit",
			"somebody's inbox":      events.InboxPrefix(other) + ".x",
			"a word of its own":     "hello",
			"the lobby as somebody": events.LobbySubject(events.DoorAll, other, events.VerbHello),
		}
		if role == "op" {
			publish["an answer as an agent"] = answerAs(o.id)
		}
		for name, subject := range publish {
			o.refused(role+" publishes to "+name, func() error { return o.nc.Publish(subject, answer) })
		}
		for _, subject := range []string{">", "fermata.ev.>", "$JS.>", "$SYS.>", "_IB.>", "fermata.v1.*.*.fe.>", "fermata.v1.*.*.op.>"} {
			o.refused(role+" subscribes to "+subject, func() error {
				_, err := o.nc.SubscribeSync(subject)
				return err
			})
		}
		if q, open := b.viewer.Inbox().Question(b.asked.ID); !open || q.ClaimedBy != nil {
			t.Fatalf("after %s: the bystander's question is claimed or closed", role)
		}
	}
	forgedNames(t, b, answer)
}

// forgedNames: a frontend that has not attached, or that says it is somebody
// else, answers nothing.
func forgedNames(t *testing.T, b *bystander, answer []byte) {
	o := b.connect(t, "fe")
	subject := events.FrontendSubject(b.asked.Project, b.asked.Session, o.id, events.VerbRespond)
	if r := o.ask(subject, answer); r == nil || r.Code != events.RejectNotAttached {
		t.Errorf("an answer before hello: %+v", r)
	}
	forged, err := json.Marshal(map[string]any{
		"question": b.asked.ID, "digest": b.asked.Version.Digest, "answer": "continue", "human": true, "principal": "uid:0", "frontend": b.viewer,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := o.ask(subject, forged); r == nil {
		t.Error("an answer with a principal in it was taken")
	}
	for _, name := range []string{"", "fe", "fe.", "admin", "fe.*", "fe.>", "core", "fe." + strings.Repeat("0", 27), "fe." + strings.ToUpper(string(o.id))} {
		if nc, err := b.tryConnect(name); err == nil {
			nc.Close()
			t.Errorf("a connection that names itself %q was admitted", name)
		}
	}
	if nc, err := b.tryConnect("fe." + string(o.id)); err == nil {
		nc.Close()
		t.Error("a second connection with the same name was admitted")
	}
}

func garbageOnNATSSocket(t *testing.T, b *bystander) {
	for name, text := range map[string]string{
		"binary": strings.Repeat("\x00\xff\x1b", 1000), "HTTP": "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PUB first": "PUB fermata.ev.x 1\r\nx\r\n",
		"long CONNECT": "CONNECT {\"name\":\"" + strings.Repeat("x", 1<<20) + "\"}\r\n", "no JSON": "CONNECT hello\r\n",
		"token of its own": `CONNECT {"name":"core","user":"core","pass":"x","auth_token":"x"}` + "\r\n",
		"no name":          "CONNECT {}\r\nPING\r\n",
	} {
		conn, err := net.Dial("unix", b.dirs.natsSocket())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(text)) // it may be refused before its end
		heard, _ := io.ReadAll(conn)
		if !strings.Contains(string(heard), "-ERR") {
			t.Errorf("%s: the server said %.200q, want -ERR and the end", name, heard)
		}
		_ = conn.Close()
		b.alive(t)
	}
}
