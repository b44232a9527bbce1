package main

import (
	"regexp"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// renewWithin is F2's 5 s, and some more for a busy machine.
const renewWithin = 6500 * time.Millisecond

var name = regexp.MustCompile(`^fe\.[0-9a-hjkmnp-tv-z]{26}$`)

// readTape judges what can be told from the whole run.
func (c *scenes) readTape() {
	c.skip(10, "every answer claimed with itself (0): none named a claim")
	tape := c.relay.so()
	c.names()
	c.first(tape)
	c.renewals(tape)
	c.followed(tape)
	c.answers(tape)
	c.input(tape)
}

// names: F1, one id for all connections.
func (c *scenes) names() {
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	if len(c.relay.lines) < 2 {
		c.skip(1, "it made no second connection when the first was lost")
	}
	first := ""
	for _, l := range c.relay.lines {
		if l.name == "" {
			continue // it went before it said anything
		}
		c.pass(1)
		if !name.MatchString(l.name) {
			c.fail(1, "CONNECT's name is %q, want fe. and a ULID", l.name)
		}
		if first == "" {
			first = l.name
		}
		if l.name != first {
			c.fail(1, "it connected as %s, then as %s", first, l.name)
		}
	}
}

// first: F2, hello before any other verb.
func (c *scenes) first(tape []seen) {
	greeted := map[*line]bool{}
	for _, f := range tape {
		if f.fromCore || !strings.HasSuffix(f.verb, "PUB") || f.reply() == "" || greeted[f.line] {
			continue
		}
		greeted[f.line] = true
		if !isVerb(events.VerbHello)(f) {
			c.fail(2, "its first request went to %s, want hello", f.subject())
		}
	}
}

// renewals: F2, at least every 5 s.
func (c *scenes) renewals(tape []seen) {
	last := map[*line]time.Time{}
	longest := time.Duration(0)
	for _, f := range tape {
		if !isVerb(events.VerbHello)(f) && !isVerb(events.VerbRenew)(f) {
			continue
		}
		if before, ok := last[f.line]; ok {
			longest = max(longest, f.at.Sub(before))
		}
		last[f.line] = f.at
	}
	now := time.Now()
	for l, before := range last {
		until := l.ended
		if until.IsZero() {
			until = now
		}
		longest = max(longest, until.Sub(before))
	}
	c.pass(2)
	if longest > renewWithin {
		c.fail(2, "it did not renew for %v", longest.Round(100*time.Millisecond))
	}
}

// followed: F4, a confirmed subscription before each sync.
func (c *scenes) followed(tape []seen) {
	confirmed := map[*line][]string{} // subjects that the server has seen
	fresh := map[*line][]string{}
	flushing := map[*line][]string{} // in front of a PING
	for _, f := range tape {
		switch {
		case !f.fromCore && f.verb == "SUB":
			fresh[f.line] = append(fresh[f.line], f.args[0])
		case !f.fromCore && (f.verb == "PING" || f.verb != "" && strings.HasSuffix(f.verb, "PUB")):
			flushing[f.line] = append(flushing[f.line], fresh[f.line]...)
			fresh[f.line] = nil
		case f.fromCore && (f.verb == "PONG" || f.verb == "MSG" || f.verb == "HMSG"):
			confirmed[f.line] = append(confirmed[f.line], flushing[f.line]...)
			flushing[f.line] = nil
		}
		if isVerb(events.VerbSync)(f) {
			c.follows(f, confirmed[f.line])
		}
	}
}

func (c *scenes) follows(sync seen, confirmed []string) {
	part := strings.Split(sync.subject(), ".")
	if len(part) < 4 {
		c.fail(4, "a sync went to %s", sync.subject())
		return
	}
	feed := "fermata.v1." + part[2] + "." + part[3] + ".live"
	for _, pattern := range confirmed {
		if covers(pattern, feed) {
			c.pass(4)
			return
		}
	}
	c.fail(4, "it called sync of session %s before the subscription to its feed was confirmed", part[3])
}

// answers: F8, F9 and F10, each answer by a person, to what was drawn, with the claim
// that it has.
func (c *scenes) answers(tape []seen) {
	digests := map[events.ID]events.Digest{}
	claims, asked := map[events.ID]uint64{}, map[string]events.ID{}
	for _, f := range tape {
		var (
			live  events.Live
			reply events.ClaimReply
			list  events.SyncReply
			claim events.ClaimCommand
			drawn events.Drawn
			r     events.Respond
		)
		switch {
		case f.onFeed():
			if decode(f, &live) == nil && live.Asked != nil {
				digests[live.Asked.ID] = live.Asked.Version.Digest
			}
		case f.fromCore && f.payload != nil:
			if id, ok := asked[f.subject()]; ok && decode(f, &reply) == nil && reply.Claim != 0 {
				claims[id] = reply.Claim
			} else if decode(f, &list) == nil {
				for _, q := range list.Questions {
					digests[q.ID] = q.Version.Digest
				}
			}
		case isVerb(events.VerbClaim)(f) && decode(f, &claim) == nil:
			asked[f.reply()] = claim.Question
		case isVerb(events.VerbPresented)(f) && decode(f, &drawn) == nil:
			c.digest(drawn.Question, drawn.Digest, digests)
		case isVerb(events.VerbRespond)(f) && decode(f, &r) == nil:
			c.digest(r.Question, r.Digest, digests)
			c.answer(r, claims)
		}
	}
}

func (c *scenes) digest(id events.ID, digest events.Digest, known map[events.ID]events.Digest) {
	c.pass(8)
	if want := known[id]; digest != want && c.broken[5] == "" {
		c.fail(8, "it named digest %.12s… of a question about %.12s…", digest, want)
	}
}

func (c *scenes) answer(r events.Respond, claims map[events.ID]uint64) {
	if c.driven[r.Question] && r.Human {
		c.pass(9)
	} else if r.Human {
		c.fail(9, "it answered %q, and no person had answered", r.Answer)
	} else {
		c.fail(3, "it says that it is capable, and its answer says that no person gave it")
	}
	switch r.Claim {
	case 0: // claims together with itself, which is allowed
	case claims[r.Question]:
		c.pass(10)
	default:
		c.fail(10, "it named claim %d; it was given %d", r.Claim, claims[r.Question])
	}
}

// input: F11, no input before a person did anything.
func (c *scenes) input(tape []seen) {
	for i, f := range tape {
		var renew events.Renew
		if !isVerb(events.VerbRenew)(f) || decode(f, &renew) != nil {
			continue
		}
		c.pass(11)
		if renew.Input && (c.act < 0 || i < c.act) {
			c.fail(11, "it said that a person had typed before anybody did")
		}
	}
}
