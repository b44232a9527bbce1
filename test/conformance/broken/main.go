// Command broken is a frontend over raw NATS that keeps every MUST of the
// frontends' door but the one that its argument names, as in `broken F8`; with
// `broken none` it keeps them all. The conformance program must find exactly that
// one.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/events"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "broken: name one MUST, such as F8, or none")
		os.Exit(1)
	}
	s := &screen{fault: os.Args[1], id: newID(), open: map[events.ID]*asked{}, feeds: map[events.Token]feed{}}
	go s.listen()
	for {
		if err := s.connected(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "broken:", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// screen is the frontend.
type screen struct {
	fault string
	id    events.ID

	mu    sync.Mutex
	nc    *nats.Conn
	last  int
	open  map[events.ID]*asked
	feeds map[events.Token]feed
}

// asked is an open question.
type asked struct {
	number int
	events.Question
	over bool // only a broken screen keeps those
}

// feed is how far a session's feed is known.
type feed struct {
	project events.Token
	epoch   string
	n       uint64
}

func newID() events.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails
	return events.NewID(time.Now(), entropy)
}

func (s *screen) broken(must string) bool { return s.fault == must }

// Dial implements nats.CustomDialer.
func (s *screen) Dial(_, _ string) (net.Conn, error) {
	return net.Dial("unix", os.Getenv("FERMATA_RUNTIME_DIR")+"/nats.sock")
}

// connected serves one connection until it is lost.
func (s *screen) connected(ctx context.Context) error {
	if s.broken("F1") {
		s.id = newID()
	}
	lost := make(chan struct{})
	nc, err := nats.Connect("nats://127.0.0.1", nats.Name("fe."+string(s.id)), nats.CustomInboxPrefix(events.InboxPrefix(s.id)),
		nats.SetCustomDialer(s), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(lost) }))
	if err != nil {
		return err
	}
	defer nc.Close()
	s.mu.Lock()
	s.nc, s.feeds = nc, map[events.Token]feed{}
	s.mu.Unlock()
	if !s.broken("F4") {
		if err := s.follow(ctx); err != nil {
			return err
		}
	}
	var hello events.HelloReply
	if err := s.lobby(ctx, events.VerbHello, events.Hello{Kind: events.FrontendCLI, Capable: true, Name: "broken"}, &hello); err != nil {
		return err
	}
	for _, h := range hello.Sessions {
		s.sync(ctx, h.Project, h.Session)
	}
	if s.broken("F4") {
		if err := s.follow(ctx); err != nil {
			return err
		}
	}
	every := 4 * time.Second
	if s.broken("F2") {
		every = 9 * time.Second
	}
	for {
		select {
		case <-lost:
			return errors.New("the connection was lost")
		case <-time.After(every):
			s.renew(ctx)
		}
	}
}

func (s *screen) follow(ctx context.Context) error {
	if _, err := s.nc.Subscribe(events.LiveSubject("*", "*"), func(m *nats.Msg) { s.hear(ctx, m) }); err != nil {
		return err
	}
	return s.nc.FlushWithContext(within(ctx))
}

func within(ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	time.AfterFunc(5*time.Second, cancel)
	return ctx
}

// request asks and reads the reply, in JSON's place msgpack.
func (s *screen) request(ctx context.Context, subject string, command, reply any) error {
	data, err := events.Encode(command)
	if err != nil {
		return err
	}
	m, err := s.nc.RequestMsgWithContext(within(ctx), &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		return err
	}
	var no struct {
		Refused *events.Refused `json:"refused"`
	}
	if err := events.Decode(m.Data, &no); err != nil {
		return err
	}
	if no.Refused != nil {
		return no.Refused
	}
	return events.Decode(m.Data, reply)
}

func (s *screen) lobby(ctx context.Context, verb string, command, reply any) error {
	return s.request(ctx, events.LobbySubject(events.DoorAll, s.id, verb), command, reply)
}

func (s *screen) session(ctx context.Context, q events.Question, verb string, command, reply any) error {
	return s.request(ctx, events.FrontendSubject(q.Project, q.Session, s.id, verb), command, reply)
}

// renew keeps the lease, and finds what the feed did not bring.
func (s *screen) renew(ctx context.Context) {
	var r events.RenewReply
	if err := s.lobby(ctx, events.VerbRenew, events.Renew{Input: s.broken("F11")}, &r); err != nil {
		return
	}
	for _, h := range r.Sessions {
		s.place(ctx, h)
		s.mu.Lock()
		f := s.feeds[h.Session]
		s.mu.Unlock()
		if (f.epoch != string(r.Epoch) || f.n < h.Feed) && !s.broken("F6") {
			s.sync(ctx, h.Project, h.Session)
		}
	}
}

// sync reads the list of a session's open questions.
func (s *screen) sync(ctx context.Context, project, session events.Token) {
	var r events.SyncReply
	at := events.Question{Project: project, Session: session}
	if err := s.session(ctx, at, events.VerbSync, events.Sync{}, &r); err != nil {
		return
	}
	s.mu.Lock()
	s.feeds[session] = feed{project, string(r.Epoch), max(r.Feed, s.feeds[session].n)}
	s.mu.Unlock()
	for _, q := range r.Questions {
		s.ask(ctx, q)
	}
}

// hear takes one message of a feed.
func (s *screen) hear(ctx context.Context, m *nats.Msg) {
	var live events.Live
	part := strings.Split(m.Subject, ".")
	epoch, number, _ := strings.Cut(m.Header.Get(events.HeaderFeed), ".")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || events.Decode(m.Data, &live) != nil {
		return
	}
	project, session := events.Token(part[2]), events.Token(part[3])
	s.mu.Lock()
	f := s.feeds[session]
	gap := f.epoch != epoch || n > f.n+1
	s.feeds[session] = feed{project, epoch, max(n, f.n)}
	s.mu.Unlock()
	if gap && !s.broken("F6") {
		s.sync(ctx, project, session)
	}
	if live.Asked != nil {
		s.ask(ctx, *live.Asked)
	}
	if live.Ended != nil {
		s.end(*live.Ended)
	}
}

// ask puts a question on the screen.
func (s *screen) ask(ctx context.Context, q events.Question) {
	s.mu.Lock()
	a := s.open[q.ID]
	known := a != nil
	switch {
	case !known:
		s.last++
		a = &asked{number: s.last, Question: q}
		s.open[q.ID] = a
	case q.Seq > a.Seq || s.broken("F5"):
		a.Question = q
	}
	s.mu.Unlock()
	if !s.broken("F7") {
		_ = s.session(ctx, q, events.VerbReceived, events.Received{Questions: []events.ID{q.ID}}, &events.Ack{}) // again with the next list
	}
	if known {
		return
	}
	text := string(q.Args)
	if s.broken("F3") {
		text = text[:min(len(text), 80)]
	}
	fmt.Printf("%d: %s %q\n", a.number, q.Tool.Name, text)
	for i := range q.ChangedBy {
		if !s.broken("F15") {
			fmt.Printf("%d: changed by %s\n", a.number, q.ChangedBy[i].ID)
		}
	}
	_ = s.session(ctx, q, events.VerbPresented, events.Drawn{Question: q.ID, Digest: s.drawn(q)}, &events.Ack{}) // a report
	if s.broken("F9") {
		s.answer(ctx, a, events.AnswerContinue)
	}
	time.AfterFunc(time.Second, func() { s.call(ctx, q) })
}

// call calls the person to a question that nobody has answered.
func (s *screen) call(ctx context.Context, q events.Question) {
	s.mu.Lock()
	_, open := s.open[q.ID]
	s.mu.Unlock()
	if !open {
		return
	}
	var r events.RingReply
	if err := s.session(ctx, q, events.VerbRing, events.Ring{Question: q.ID}, &r); err == nil && r.Yours || s.broken("F14") {
		_ = exec.CommandContext(ctx, "notify-send", q.Tool.Name).Run() // it may not be installed
	}
}

// place looks at the pane that an agent stands in.
func (s *screen) place(ctx context.Context, h events.SessionHead) {
	if pane, ok := events.ParsePane(h.Pane); ok && s.broken("F16") {
		_ = exec.CommandContext(ctx, "sh", "-c", "test -S "+pane.Server).Run()
	}
}

func (s *screen) drawn(q events.Question) events.Digest {
	if s.broken("F8") {
		return events.DigestOf([]byte("{}"))
	}
	return q.Version.Digest
}

func (s *screen) end(end events.End) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.open[end.Question]
	if a == nil || a.over {
		return
	}
	if s.broken("F12") {
		a.over = true
		return
	}
	delete(s.open, end.Question)
	fmt.Printf("%d ended: %s\n", a.number, end.Reason)
}

// listen reads what the person types.
func (s *screen) listen() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		verb, number, _ := strings.Cut(in.Text(), " ")
		s.mu.Lock()
		var a *asked
		for _, o := range s.open {
			if strconv.Itoa(o.number) == number || verb == "" && s.broken("F13") {
				a = o
			}
		}
		s.mu.Unlock()
		switch {
		case a == nil:
			fmt.Println("no such question")
		case verb == "c" || verb == "" && s.broken("F13"):
			s.answer(context.Background(), a, events.AnswerContinue)
		case verb == "x":
			s.answer(context.Background(), a, events.AnswerCancel)
		}
	}
	os.Exit(0)
}

func (s *screen) answer(ctx context.Context, a *asked, answer events.Answer) {
	r := events.Respond{Question: a.ID, Digest: s.drawn(a.Question), Answer: answer, Human: true, Claim: s.claim(ctx, a.Question)}
	if s.broken("F10") {
		r.Claim = 7
	}
	if err := s.session(ctx, a.Question, events.VerbRespond, r, &events.Ack{}); err != nil {
		fmt.Printf("%d: %v\n", a.number, err)
		return
	}
	fmt.Printf("%d: %s\n", a.number, answer)
}

// claim takes the right to answer; without it the answer claims with itself.
func (s *screen) claim(ctx context.Context, q events.Question) uint64 {
	for {
		var r events.ClaimReply
		err := s.session(ctx, q, events.VerbClaim, events.ClaimCommand{Question: q.ID}, &r)
		if no, ok := errors.AsType[*events.Refused](err); !ok || no.Code != events.RejectTooMany || !s.broken("F17") {
			return r.Claim
		}
		time.Sleep(100 * time.Millisecond)
	}
}
