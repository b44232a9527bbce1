package main

import (
	"context"
	"strings"
	"unicode"

	"github.com/fermata-hitl/fermata/events"
)

// The values that hooks make of each other; see rules.
const (
	proposed = "zqproposed"
	amended  = "zqamended"
)

// changed: F15. A hook changes what the agent proposed, and another what the person
// said yes to.
func (c *scenes) changed(ctx context.Context) error {
	if err := pause(ctx, toPass); err != nil {
		return err
	}
	printed := c.program.out.len()
	q, err := c.shown(ctx, proposed)
	if err != nil {
		return err
	}
	defer q.asker.Close()
	c.saysChanged(q, printed, proposed, "amend-proposed")
	from, printed := len(c.relay.so()), c.program.out.len()
	if _, ok := c.responds(ctx, 0, q, 0); ok {
		return nil // by itself
	}
	if err := c.does(ctx, "c", q); err != nil {
		return err
	}
	if !c.accepted(ctx, from, q) {
		return nil // why not is another MUST's
	}
	c.asked++
	again := question{number: c.asked, operation: q.operation, after: q.id, asker: q.asker}
	if err := c.await(ctx, "question about what a hook changed", func() bool { return c.found(&again) }); err != nil {
		return err
	}
	if err := pause(ctx, toRead); err != nil {
		return err
	}
	c.saysChanged(again, printed, amended, "amend-continued")
	return nil
}

// saysChanged looks for the old value, or for the hook that changed it.
func (c *scenes) saysChanged(q question, printed int, old, hook string) {
	if c.program.driver != "" {
		c.skip(15, "what a driven program shows is not looked at")
		return
	}
	text := letters(c.program.out.since(printed))
	if !strings.Contains(text, old) && !strings.Contains(text, letters(hook)) {
		c.fail(15, "hook %s changed the arguments of question %d, and neither it nor the old value is shown", hook, q.number)
		return
	}
	c.pass(15)
}

// letters leaves out what a screen puts between the characters of a value.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

// Bounds of C8, and what is no loop.
const (
	claimsOfOne = 8
	claimsOfAll = 32
	tries       = 3
)

// crowded: F17. Others have claimed a question as often as one person may.
func (c *scenes) crowded(ctx context.Context) error {
	if err := pause(ctx, toPass); err != nil {
		return err
	}
	q, err := c.shown(ctx, "claimed by many")
	if err != nil {
		return err
	}
	defer q.asker.Close()
	if _, ok := c.responds(ctx, 0, q, 0); ok {
		c.skip(17, "it answers by itself")
		return nil
	}
	if err := c.crowd(ctx, q); err != nil {
		return err
	}
	from := len(c.relay.so())
	if err := c.does(ctx, "c", q); err != nil {
		return err
	}
	_, answered := c.responds(ctx, from, q, toAct)
	claims, refused := c.claims(from, q)
	switch {
	case claims > tries:
		c.fail(17, "it was refused with too_many, and claimed question %d %d times", q.number, claims)
	case refused && !answered:
		c.fail(17, "its claim was refused with too_many, and the person's answer was not sent within %v", toAct)
	case refused:
		c.pass(17)
	default:
		c.skip(17, "none of its claims was refused with too_many")
	}
	return nil
}

// crowd claims a question until no frontend of this person can any more.
func (c *scenes) crowd(ctx context.Context, q question) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range claimsOfAll / claimsOfOne {
		other, err := c.attach(ctx)
		if err != nil {
			return err
		}
		for range claimsOfOne {
			claim, err := other.Claim(ctx, q.id)
			if err != nil {
				return err
			}
			if err := other.Release(ctx, q.id, claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// claims counts the program's claims of a question, and tells whether one was refused
// with too_many.
func (c *scenes) claims(from int, q question) (count int, refused bool) {
	asked := map[string]bool{}
	for _, f := range c.relay.so()[from:] {
		var (
			claim events.ClaimCommand
			reply events.ClaimReply
		)
		switch {
		case isVerb(events.VerbClaim)(f) && decode(f, &claim) == nil && claim.Question == q.id:
			asked[f.reply()] = true
			count++
		case f.fromCore && f.payload != nil && asked[f.subject()] && decode(f, &reply) == nil:
			refused = refused || reply.Refused != nil && reply.Refused.Code == events.RejectTooMany
		}
	}
	return count, refused
}
