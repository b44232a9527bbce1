package frontends

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// The calls below wait for a core while there is none, and repeat a request
// whose reply was lost, until ctx ends: every command may be given twice. A
// typed no is a *[events.Refused].

// Claim takes the right to answer a question, which the answer then names. A
// person must have engaged with the question.
func (c *Client) Claim(ctx context.Context, question events.ID) (uint64, error) {
	at, err := c.locate(ctx, question)
	if err != nil {
		return 0, err
	}
	r, err := call[events.ClaimReply](ctx, c, at, events.VerbClaim, events.ClaimCommand{Question: question})
	if err != nil {
		c.settle(at, question, err)
		return 0, err
	}
	c.emit(c.inbox.hold(at, question, &events.Claim{
		Frontend: c.o.ID, Kind: c.o.Kind, Name: c.o.Name, Principal: c.Principal(), Since: events.At(time.Now()), Claim: r.Claim,
	}, r.Claim))
	return r.Claim, nil
}

// Release gives the right to answer back.
func (c *Client) Release(ctx context.Context, question events.ID, claim uint64) error {
	at, err := c.locate(ctx, question)
	if err != nil {
		return err
	}
	r, err := call[events.Ack](ctx, c, at, events.VerbRelease, events.ReleaseCommand{Question: question, Claim: claim})
	if err != nil {
		c.settle(at, question, err)
		return err
	}
	if r.Seq != 0 {
		c.emit(c.inbox.hold(at, question, nil, r.Seq))
	}
	return nil
}

// Answer carries a person's answer. Once it returns without an error the answer
// is in the log.
func (c *Client) Answer(ctx context.Context, answer events.Respond) (events.Ack, error) {
	at, err := c.locate(ctx, answer.Question)
	if err != nil {
		return events.Ack{}, err
	}
	r, err := call[events.Ack](ctx, c, at, events.VerbRespond, answer)
	if err != nil {
		c.settle(at, answer.Question, err)
		return events.Ack{}, err
	}
	c.emit(c.inbox.finish(at, events.End{
		Question: answer.Question, Result: events.ResultAnswered, Reason: answer.Answer.EndReason(),
		Who: c.Principal(), Kind: c.o.Kind, Answer: answer.Answer, At: events.At(time.Now()),
	}))
	return r, nil
}

// Result is what became of one of several answers: Ack, or why not.
type Result struct {
	Question events.ID
	Ack      events.Ack
	Err      error
}

// AnswerAll carries a person's answers to several questions at once, each as
// [Client.Answer] does and whatever becomes of the others. The results are in the
// order of the answers.
func (c *Client) AnswerAll(ctx context.Context, answers []events.Respond) []Result {
	results := make([]Result, len(answers))
	var under sync.WaitGroup
	for i, a := range answers {
		under.Go(func() {
			ack, err := c.Answer(ctx, a)
			results[i] = Result{a.Question, ack, err}
		})
	}
	under.Wait()
	return results
}

// Ring asks whether this frontend may call the person to a question outside its own
// screen. Of all frontends one is told yes.
func (c *Client) Ring(ctx context.Context, question events.ID) (yours bool, _ error) {
	at, err := c.locate(ctx, question)
	if err != nil {
		return false, err
	}
	r, err := call[events.RingReply](ctx, c, at, events.VerbRing, events.Ring{Question: question})
	if err != nil {
		c.settle(at, question, err)
	}
	return r.Yours, err
}

// Drawn reports that a question is on the screen, with the digest of the
// version that was drawn.
func (c *Client) Drawn(ctx context.Context, question events.ID, digest events.Digest) error {
	at, err := c.locate(ctx, question)
	if err != nil {
		return err
	}
	_, err = call[events.Ack](ctx, c, at, events.VerbPresented, events.Drawn{Question: question, Digest: digest})
	return err
}

// Args returns the whole canonical arguments of a version of a question. Those
// of the version that is asked about are checked against its digest.
func (c *Client) Args(ctx context.Context, question events.ID, version int) ([]byte, error) {
	q, open := c.inbox.Question(question)
	current := open && version == q.Version.N
	if current && q.Args != nil {
		return q.Args, checkArgs(q, q.Args)
	}
	at, err := c.locate(ctx, question)
	if err != nil {
		return nil, err
	}
	args, err := c.chunks(ctx, at, question, version)
	if err != nil || !current {
		return args, err
	}
	if err := checkArgs(q, args); err != nil {
		return nil, err
	}
	c.inbox.keepArgs(question, q.Version, args)
	return args, nil
}

func (c *Client) chunks(ctx context.Context, at place, question events.ID, version int) ([]byte, error) {
	var args []byte
	for {
		show := events.Show{Question: question, Version: version, Offset: int64(len(args))}
		r, err := call[events.ShowReply](ctx, c, at, events.VerbShow, show)
		if err != nil {
			return nil, err
		}
		args = append(args, r.Data...)
		switch {
		case r.Total > maxArguments:
			return nil, fmt.Errorf("arguments of %d bytes are more than a core may keep (%d); not read", r.Total, maxArguments)
		case int64(len(args)) == r.Total:
			return args, nil
		case len(r.Data) == 0 || int64(len(args)) > r.Total:
			return nil, fmt.Errorf("the core sent %d of %d bytes of the arguments; read them again", len(args), r.Total)
		}
	}
}

// checkArgs makes sure that what is shown is what was digested.
func checkArgs(q events.Question, args []byte) error {
	if events.DigestOf(args) != q.Version.Digest {
		return fmt.Errorf("the arguments of question %s do not fit their digest; do not answer it", q.ID)
	}
	return nil
}

// Output asks what a run of a hook said: the last lines of its stderr, and its
// reason.
func (c *Client) Output(ctx context.Context, run events.RunLine) (events.RunReply, error) {
	return call[events.RunReply](ctx, c, place{run.Project, run.Session}, events.VerbRun,
		events.RunCommand{Operation: run.Operation, Run: run.Run})
}

// Find looks up where a question or an operation is, ended ones too.
func (c *Client) Find(ctx context.Context, what events.Find) (events.FindReply, error) {
	return persist(ctx, c, func(ctx context.Context, l *link) (events.FindReply, error) { return l.find(ctx, what) })
}

// Sessions asks every core for the sessions in scope now.
func (c *Client) Sessions(ctx context.Context) ([]events.SessionHead, error) {
	return persist(ctx, c, func(ctx context.Context, l *link) ([]events.SessionHead, error) { return l.sessions(ctx) })
}

// locate tells where a question is; one that the inbox does not know is looked
// up.
func (c *Client) locate(ctx context.Context, question events.ID) (place, error) {
	if at, ok := c.inbox.where(question); ok {
		return at, nil
	}
	r, err := c.Find(ctx, events.Find{Question: question})
	if err != nil {
		return place{}, err
	}
	return place{r.Project, r.Session}, nil
}

// settle learns from a refusal that a question is over.
func (c *Client) settle(at place, question events.ID, err error) {
	var no *events.Refused
	if !errors.As(err, &no) {
		return
	}
	end := events.End{Question: question, Who: no.Who, Answer: no.Answer, At: no.When, Reason: no.EndReason}
	switch no.Code {
	case events.RejectAlreadyAnswered:
		end.Result, end.Reason = events.ResultAnswered, no.Answer.EndReason()
	case events.RejectWithdrawn:
		end.Result = events.ResultOf(no.EndReason)
	default:
		return
	}
	c.emit(c.inbox.finish(at, end))
}

// call sends a verb of a session until there is a reply.
func call[R any](ctx context.Context, c *Client, at place, verb string, command any) (R, error) {
	return persist(ctx, c, func(ctx context.Context, l *link) (R, error) {
		return ask[R](ctx, l, at, verb, command)
	})
}

// persist tries on whatever link is attached until there is an answer: a reply,
// a typed no, or the end of ctx.
func persist[R any](ctx context.Context, c *Client, try func(context.Context, *link) (R, error)) (r R, err error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return r, fmt.Errorf("too many requests under way: %w", context.Cause(ctx))
	}
	for {
		l, err := c.attachedLink(ctx)
		if err != nil {
			return r, err
		}
		r, err = try(ctx, l)
		if isRefusal(err, events.RejectNotAttached) {
			signal(l.keep) // the core let the lease lapse: attach again, then go on
		} else if no := (*events.Refused)(nil); err == nil || errors.As(err, &no) {
			return r, err
		}
		if ctx.Err() != nil {
			return r, fmt.Errorf("no reply from the core: %w", context.Cause(ctx))
		}
		c.o.Log.Debug("asking again", "reason", err)
		if wait(ctx, retryWait) != nil {
			return r, fmt.Errorf("no reply from the core: %w", context.Cause(ctx))
		}
	}
}
