package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Times that a program has.
const (
	toAttach  = 10 * time.Second
	toReceive = 5 * time.Second
	toRead    = 1500 * time.Millisecond // a question is on the screen, and its grace has passed
	toAct     = 5 * time.Second         // from a key to the core
	toSettle  = 1500 * time.Millisecond // for what must not come
	toPass    = 300 * time.Millisecond  // for what is over to be gone
	toSync    = 8 * time.Second         // a renewal is at most 5 s away
)

// scenes is one run over a stage.
type scenes struct {
	*stage
	*report

	driven map[events.ID]bool // questions that the person has answered
	act    int                // where the tape stood when the person first did anything
}

// play goes through all scenes, then reads the tape.
func (s *stage) play(ctx context.Context) (*report, error) {
	c := &scenes{stage: s, report: &report{}, driven: map[events.ID]bool{}, act: -1}
	attaching, over := context.WithCancel(ctx)
	defer over()
	go func() { <-s.program.ended; over() }() // who has ended says no hello any more
	hello, ok := s.relay.until(attaching, 0, toAttach, isVerb(events.VerbHello))
	if !ok {
		return nil, fmt.Errorf("the program said no hello within %v; it printed: %s", toAttach, s.program.out.since(0))
	}
	var what events.Hello
	if err := decode(hello, &what); err != nil || !what.Capable {
		return nil, fmt.Errorf("the program does not say that it is capable: %+v (%w)", what, err)
	}
	for _, scene := range []func(context.Context) error{c.answered, c.gap, c.withdrawn, c.late, c.turnedAway, c.changed, c.crowded, c.stale} {
		if err := scene(ctx); err != nil {
			return nil, err
		}
		select {
		case <-s.program.ended:
			return nil, fmt.Errorf("the program has ended; it printed: %s", s.program.out.since(0))
		default:
		}
	}
	c.readTape()
	c.noShell()
	return c.report, c.neverRang()
}

// does is what the person does; from then on it counts as input.
func (c *scenes) does(ctx context.Context, verb string, q question) error {
	if c.act < 0 {
		c.act = len(c.relay.so())
	}
	if verb == "c" || verb == "x" {
		c.driven[q.id] = true
	}
	return c.program.does(ctx, verb, q)
}

// shown asks a question and waits until it was seen.
func (c *scenes) shown(ctx context.Context, content string) (question, error) {
	from := len(c.relay.so())
	q, err := c.ask(ctx, content)
	if err != nil {
		return q, err
	}
	return q, c.seen(ctx, from, q)
}

// seen waits until the program has a question in its list and a person could have read
// it.
func (c *scenes) seen(ctx context.Context, from int, q question) error {
	if c.broken[7] != "" {
		return pause(ctx, toRead) // once is enough to know, and to wait for
	}
	if _, ok := c.received(ctx, from, q, toReceive-time.Since(q.at)); !ok {
		c.fail(7, "question %d was asked, and not reported as received within %v", q.number, toReceive)
	} else {
		c.pass(7)
	}
	return pause(ctx, toRead)
}

func (c *scenes) received(ctx context.Context, from int, q question, limit time.Duration) (seen, bool) {
	return c.relay.until(ctx, from, limit, func(f seen) bool {
		var list events.Received
		return isVerb(events.VerbReceived)(f) && decode(f, &list) == nil && slices.Contains(list.Questions, q.id)
	})
}

// responds waits for an answer of the program to a question.
func (c *scenes) responds(ctx context.Context, from int, q question, limit time.Duration) (events.Respond, bool) {
	var r events.Respond
	_, ok := c.relay.until(ctx, from, limit, func(f seen) bool {
		return isVerb(events.VerbRespond)(f) && decode(f, &r) == nil && r.Question == q.id
	})
	return r, ok
}

// answered: nothing is answered without a person; then the person continues.
func (c *scenes) answered(ctx context.Context) error {
	value, tokens := longValue()
	from := len(c.relay.so())
	q, err := c.ask(ctx, value)
	if err != nil {
		return err
	}
	if _, err := c.rival.Ring(ctx, q.id); err != nil && !errors.As(err, new(*events.Refused)) { // it may have ended
		return err
	}
	if err := c.seen(ctx, from, q); err != nil {
		return err
	}
	self, ok := c.responds(ctx, 0, q, toSettle)
	if ok { // readTape tells it
		for _, must := range []int{3, 13, 14} {
			c.skip(must, "it answers by itself")
		}
		return nil
	}
	c.readWhole(tokens)
	c.relay.until(ctx, 0, renewWithin, isVerb(events.VerbRenew)) // one without a person's input
	if err := c.notCalled(ctx, q); err != nil {
		return err
	}
	from = len(c.relay.so())
	if err := c.does(ctx, "enter", q); err != nil {
		return err
	}
	if self, ok = c.responds(ctx, from, q, toSettle); ok {
		c.driven[q.id] = true // somebody typed, if not this
		c.fail(13, "a key that answers nothing was taken for %q", self.Answer)
		return nil
	}
	c.pass(13)
	if err := c.does(ctx, "c", q); err != nil {
		return err
	}
	if _, ok := c.responds(ctx, from, q, toAct); !ok {
		c.fail(3, "it says that it is capable, and the person's answer was not sent within %v", toAct)
		return q.asker.Close()
	}
	if !c.accepted(ctx, from, q) {
		return q.asker.Close() // why not is another MUST's
	}
	if v, err := q.verdict(); err != nil || v.Exit != 0 {
		c.fail(3, "the person continued, and the agent heard: exit %d, %v", v.Exit, err)
	}
	return nil
}

// accepted tells whether the core took the program's answer.
func (c *scenes) accepted(ctx context.Context, from int, q question) bool {
	f, ok := c.relay.until(ctx, from, toAct, func(f seen) bool {
		var r events.Respond
		return isVerb(events.VerbRespond)(f) && decode(f, &r) == nil && r.Question == q.id
	})
	if !ok {
		return false
	}
	var ack events.Ack
	_, ok = c.relay.until(ctx, from, toAct, func(g seen) bool {
		return g.fromCore && g.payload != nil && g.subject() == f.reply() && decode(g, &ack) == nil
	})
	return ok && ack.Refused == nil
}

// longValue is a value whose end is easily lost, and what must be read of it.
func longValue() (value string, tokens []string) {
	var b strings.Builder
	for i := range 40 {
		token := fmt.Sprintf("zq%dqz%d", i, time.Now().Nanosecond())
		tokens = append(tokens, token)
		b.WriteString(token + strings.Repeat(" and more of it", 20) + "\n")
	}
	return b.String(), tokens
}

// readWhole looks for all of a value in what was printed.
func (c *scenes) readWhole(tokens []string) {
	if c.program.driver != "" {
		c.skip(3, "what a driven program shows is not looked at")
		return
	}
	text := letters(c.program.out.since(0))
	for _, token := range tokens {
		if !strings.Contains(text, token) {
			c.fail(3, "it says that it is capable, and does not show a value whole: %q is missing", token)
			return
		}
	}
	c.pass(3)
}

// gap: the feed's message of a question is lost.
func (c *scenes) gap(ctx context.Context) error {
	from := len(c.relay.so())
	c.relay.holdBack(func(l events.Live) bool { return l.Asked != nil || l.Seq == 0 && l.Session != nil })
	q, err := c.ask(ctx, "lost in the feed")
	if err != nil {
		return err
	}
	c.relay.holdBack(nil)
	if _, _, ok := c.listed(ctx, from, q, toSync); ok {
		c.pass(6)
	} else {
		c.fail(6, "a message of the feed was lost, and %v later no sync had brought the question", toSync)
		c.asked-- // the program has not heard of it
	}
	if err := pause(ctx, toRead); err != nil {
		return err
	}
	return q.asker.Close()
}

// withdrawn: the agent goes away while the question is on the screen, another waits.
func (c *scenes) withdrawn(ctx context.Context) error {
	if err := pause(ctx, toPass); err != nil {
		return err
	}
	q, err := c.shown(ctx, "will be withdrawn")
	if err != nil {
		return err
	}
	next, err := c.shown(ctx, "waits behind it")
	if err != nil {
		return err
	}
	defer next.asker.Close()
	if self, ok := c.responds(ctx, 0, q, 0); ok {
		c.skip(12, fmt.Sprintf("it had answered %q by itself", self.Answer))
		return q.asker.Close()
	}
	from := len(c.relay.so())
	if err := q.asker.Close(); err != nil {
		return err
	}
	if _, ok := c.relay.until(ctx, from, toAct, ended(q)); !ok {
		return errors.New("the core did not withdraw a question whose agent is gone")
	}
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	if err := c.does(ctx, "c", q); err != nil {
		return err
	}
	if _, ok := c.responds(ctx, from, q, toSettle); ok {
		c.fail(12, "question %d had ended for a second, and was still answered", q.number)
		return nil
	}
	c.pass(12)
	return nil
}

// late: somebody else answers, and the program hears of it only by the refusal.
func (c *scenes) late(ctx context.Context) error {
	if err := pause(ctx, toPass); err != nil {
		return err
	}
	q, err := c.shown(ctx, "answered by somebody else")
	if err != nil {
		return err
	}
	defer q.asker.Close()
	c.relay.holdBack(func(l events.Live) bool { return l.Ended != nil && l.Ended.Question == q.id })
	defer c.relay.holdBack(nil)
	_, err = c.rival.Answer(ctx, events.Respond{Question: q.id, Digest: q.digest, Answer: events.AnswerCancel, Human: true})
	if refused := (*events.Refused)(nil); errors.As(err, &refused) {
		return nil // the program was first, by itself
	} else if err != nil {
		return err
	}
	from, printed := len(c.relay.so()), c.program.out.len()
	if err := c.does(ctx, "c", q); err != nil {
		return err
	}
	if _, ok := c.responds(ctx, from, q, toSettle); !ok || c.program.driver != "" {
		return nil // it knew; nothing was late
	}
	if err := pause(ctx, toSettle); err != nil {
		return err
	}
	if strings.TrimSpace(c.program.out.since(printed)) == "" {
		c.fail(12, "an answer to question %d came late, and nothing was said", q.number)
	}
	return nil
}

// turnedAway: a claim is given back when the person leaves the question.
func (c *scenes) turnedAway(ctx context.Context) error {
	if err := pause(ctx, toPass); err != nil {
		return err
	}
	from := len(c.relay.so())
	q, err := c.shown(ctx, "put aside")
	if err != nil {
		return err
	}
	defer q.asker.Close()
	if _, ok := c.responds(ctx, 0, q, 0); ok {
		return nil // by itself: its claim is used up
	}
	if err := c.does(ctx, "l", q); err != nil {
		return err
	}
	var claim events.ClaimCommand
	if _, ok := c.relay.until(ctx, from, toSettle, func(f seen) bool {
		return isVerb(events.VerbClaim)(f) && decode(f, &claim) == nil && claim.Question == q.id
	}); !ok {
		return nil
	}
	var release events.ReleaseCommand
	if _, ok := c.relay.until(ctx, from, toAct, func(f seen) bool {
		return isVerb(events.VerbRelease)(f) && decode(f, &release) == nil && release.Question == q.id
	}); !ok {
		c.fail(11, "the person turned away from question %d, and its claim was not released within %v", q.number, toAct)
	}
	return nil
}

// stale: after a list, an old message about a listed question comes.
func (c *scenes) stale(ctx context.Context) error {
	if err := pause(ctx, toPass); err != nil {
		return err
	}
	q, err := c.shown(ctx, "listed after a new connection")
	if err != nil {
		return err
	}
	defer q.asker.Close()
	if _, ok := c.responds(ctx, 0, q, 0); ok {
		c.skip(5, "it answers by itself")
		return nil
	}
	from := len(c.relay.so())
	c.relay.cut()
	listed, reply, ok := c.listed(ctx, from, q, toAttach)
	if !ok {
		c.fail(6, "a connection was lost, and %v after it no list had brought the open question", toAttach)
		return nil
	}
	if err := pause(ctx, toRead); err != nil {
		return err
	}
	forged := listed
	forged.Args = []byte(`{"content":"older","path":"b.txt"}`)
	forged.Version = events.Version{Digest: events.DigestOf(forged.Args), Bytes: len(forged.Args)}
	feed := fmt.Sprintf("%s.%d", reply.Epoch, reply.Feed)
	if err := c.relay.inject(events.LiveSubject(q.project, q.session), feed, events.Live{Seq: listed.Seq, Asked: &forged}); err != nil {
		c.skip(5, err.Error())
		return nil
	}
	if err := pause(ctx, toRead); err != nil {
		return err
	}
	if err := c.does(ctx, "x", q); err != nil {
		return err
	}
	r, ok := c.responds(ctx, from, q, toAct)
	switch {
	case !ok:
		c.fail(3, "after a new connection the person's answer was not sent within %v", toAct)
	case r.Digest == forged.Version.Digest:
		c.fail(5, "a feed message that was older than the list took effect")
	default:
		c.pass(5)
	}
	return nil
}

// listed waits until the core has listed a question to the program.
func (c *scenes) listed(ctx context.Context, from int, q question, limit time.Duration) (listed events.Question, reply events.SyncReply, ok bool) {
	_, ok = c.relay.until(ctx, from, limit, func(f seen) bool {
		reply = events.SyncReply{}
		if !f.fromCore || f.payload == nil || f.onFeed() || read(f.payload, &reply) != nil {
			return false
		}
		for _, listed = range reply.Questions {
			if listed.ID == q.id {
				return true
			}
		}
		return false
	})
	return listed, reply, ok
}

func ended(q question) func(seen) bool {
	return func(f seen) bool {
		var live events.Live
		return f.onFeed() && decode(f, &live) == nil && live.Ended != nil && live.Ended.Question == q.id
	}
}

// isVerb finds what the program says to the core.
func isVerb(verb string) func(seen) bool {
	return func(f seen) bool {
		return !f.fromCore && strings.HasSuffix(f.verb, "PUB") && f.reply() != "" && strings.HasSuffix(f.subject(), "."+verb)
	}
}

func decode(f seen, v any) error { return read(f.payload, v) }

// read reads a body, which is JSON when it begins so.
func read(body []byte, v any) error {
	if len(body) > 0 && body[0] == '{' {
		return json.Unmarshal(body, v)
	}
	return events.Decode(body, v)
}
