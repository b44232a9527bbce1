package agents

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// Call says which tool is called. Tool and Kind are required.
type Call struct {
	// Tool is the agent's own name of the tool.
	Tool string
	// Kind is what rules match, one of [events.ToolKinds]: the arguments of
	// shell hold command, those of filesystem.read and filesystem.write path.
	Kind string
	// CallID is the agent's own id of the call, "" for none.
	CallID string
	// Path names the run that calls, such as "main > reviewer#1"; "" is main.
	Path string
	// Turn is the agent's id of the turn; "" is the session's current one.
	Turn string
	// Timeout bounds the wait for the verdict, 0 = none. It is not the tool's.
	Timeout time.Duration
	// Traceparent is the W3C trace parent of the call, "" for none.
	Traceparent string
}

func (c Call) tool() *events.Tool {
	return &events.Tool{Name: c.Tool, Kind: c.Kind, CallID: c.CallID}
}

// Result is what a tool gives back. Failed says that the tool itself calls it a
// failure. ExtraContext is set by [Do]: what hooks want the model to read beside
// the result.
type Result struct {
	Text         string
	Failed       bool
	ExtraContext string
}

// Refused says that an operation did not run. Message is for the model, as it
// is. Of a refused input Input says what it was (prompt, injection, retry_note)
// and Text holds it, byte for byte.
type Refused struct {
	Code      events.Code
	EndReason events.EndReason
	Message   string
	Input     string
	Text      string
}

// Error is the message.
func (r *Refused) Error() string { return r.Message }

// ErrMessageWithdrawn, as the cause with which a context ends, says that the
// input of a [Session.Prompt] was taken back.
var ErrMessageWithdrawn = errors.New("the message was withdrawn")

// errTooLong is why a wait ends at its Timeout.
var errTooLong = errors.New("the core gave no verdict in time")

// Do runs a tool if it may. It encodes args once, waits for the verdict as long
// as a person needs, takes the right to run, and hands run what it decodes from
// the very bytes that were checked: hooks may have changed them. Then it reports
// what became of it.
//
// The error is a *[Refused] when the tool did not run, run's own error when it
// did, and ctx's cause when ctx ended first, which withdraws the call. A restart
// of the core in between is waited out. Arguments that hooks changed into
// something that A does not hold do not run.
func Do[A any](ctx context.Context, s *Session, call Call, args A, run func(context.Context, A) (Result, error)) (Result, error) {
	raw, err := encode(args)
	if err != nil {
		return Result{}, err
	}
	var checked A
	o := newOperation(s, events.Propose{
		Kind: events.KindToolCall, Path: call.Path, Turn: call.Turn, Traceparent: call.Traceparent,
		Tool: call.tool(), Args: raw, TimeoutMS: call.Timeout.Milliseconds(),
	})
	err = o.take(ctx, func(v *events.OperationVerdict) (events.Digest, error) {
		checked = *new(A)
		if err := decode(v.Args, &checked); err != nil {
			return "", fmt.Errorf("the checked arguments are not those of %s: %w", call.Tool, err)
		}
		return events.DigestOf(v.Args), nil
	})
	if err != nil {
		return Result{}, err
	}
	began := time.Now()
	result, err := run(ctx, checked)
	report := &events.ToolResult{Text: result.Text, Failed: result.Failed, DurationMS: time.Since(began).Milliseconds()}
	if err != nil {
		report.Error = err.Error()
	}
	result.ExtraContext = o.finish(ctx, report)
	return result, err
}

// decode reads what was checked. What the type does not hold must not be lost on
// the way: it was checked with it.
func decode(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// Input is a text on its way to the model. Kind is [events.KindUserPrompt] when
// it is "", else [events.KindInjection] or [events.KindRetryNote]. The other
// fields are those of [Call].
type Input struct {
	Kind        events.Kind
	Text        string
	Path        string
	Turn        string
	Timeout     time.Duration
	Traceparent string
}

// Prompt submits an input if it may: submit gets the text that was checked, and
// what hooks want the model to read beside it, "" for nothing. Errors are those
// of [Do]. End ctx with the cause [ErrMessageWithdrawn] to take a queued input
// back.
func (s *Session) Prompt(ctx context.Context, in Input, submit func(ctx context.Context, text, reminder string) error) error {
	o := newOperation(s, events.Propose{
		Kind: cmp.Or(in.Kind, events.KindUserPrompt), Path: in.Path, Turn: in.Turn,
		Traceparent: in.Traceparent, Text: &in.Text, TimeoutMS: in.Timeout.Milliseconds(),
	})
	var text, reminder string
	err := o.take(ctx, func(v *events.OperationVerdict) (events.Digest, error) {
		if v.Text == nil {
			return "", errors.New("the verdict has no text")
		}
		text, reminder = *v.Text, v.SystemReminder
		canonical, err := core.Canonical([]byte(quote(text)))
		return events.DigestOf(canonical), err
	})
	if err != nil {
		return err
	}
	began := time.Now()
	err = submit(ctx, text, reminder)
	report := &events.ToolResult{DurationMS: time.Since(began).Milliseconds()}
	if err != nil {
		report.Error = err.Error()
	}
	o.finish(ctx, report)
	return err
}

// operation is one thing that the agent wants to do, from the first word to the
// last. Its id and secret stay the same whatever happens to core and connection.
type operation struct {
	s      *Session
	c      events.Propose
	digest events.Digest // what was committed
}

func newOperation(s *Session, c events.Propose) *operation {
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	c.Operation, c.Secret = newID(), hex.EncodeToString(secret[:])
	return &operation{s: s, c: c}
}

// take waits for the verdict and takes the right to run. Prepare reads what was
// checked and gives the digest of what is about to run.
func (o *operation) take(ctx context.Context, prepare func(*events.OperationVerdict) (events.Digest, error)) error {
	waits, cancel := ctx, context.CancelFunc(func() {})
	if o.c.TimeoutMS > 0 {
		waits, cancel = context.WithTimeoutCause(ctx, time.Duration(o.c.TimeoutMS)*time.Millisecond, errTooLong)
	}
	defer cancel()
	for patience := firstContact; ; patience = withoutCore {
		v, err := o.verdict(waits, patience)
		if err != nil {
			return o.giveUp(waits, err)
		}
		if !v.Allow {
			return o.refused(v.Code, v.EndReason, v.Message)
		}
		o.digest, err = prepare(v)
		if err != nil {
			o.withdraw(waits)
			return o.failed(events.CodeChangedAfterCheck, err.Error())
		}
		right := events.Commit{Operation: o.c.Operation, Secret: o.c.Secret, Digest: o.digest}
		err = o.s.once(waits, events.VerbCommit, right, &events.Ack{}, replyFor, withoutCore)
		switch {
		case err == nil:
			return nil
		case !retry(err):
			return o.giveUp(waits, err)
		}
	}
}

// verdict proposes and awaits until there is one.
func (o *operation) verdict(ctx context.Context, patience time.Duration) (*events.OperationVerdict, error) {
	for {
		var r events.OperationReply
		if err := o.s.ask(ctx, events.VerbPropose, o.c, &r, replyFor, patience); err != nil {
			return nil, err
		}
		patience = withoutCore
		wait := events.Await{Operation: o.c.Operation, Secret: o.c.Secret}
		for r.Verdict == nil {
			err := o.s.once(ctx, events.VerbAwait, wait, &r, awaitReply, withoutCore)
			if err != nil && !retry(err) && !unknown(err) {
				return nil, err
			}
			if err == nil {
				continue
			}
			if err := sleep(ctx, waitFor(err)); err != nil {
				return nil, err
			}
			break // the core, or this core, does not know it: propose again
		}
		if r.Verdict != nil {
			return r.Verdict, nil
		}
	}
}

func unknown(err error) bool {
	r, ok := errors.AsType[*events.Refused](err)
	return ok && r.Code == events.RejectUnknownOperation
}

// giveUp ends an operation that did not get its right to run.
func (o *operation) giveUp(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		o.withdraw(ctx)
		if cause := context.Cause(ctx); !errors.Is(cause, errTooLong) {
			return cause
		}
		return o.failed(events.CodeCoreUnreachable, errTooLong.Error())
	}
	if r, ok := errors.AsType[*events.Refused](err); ok {
		return o.failedFor(refusalCode(r.Code), r.EndReason, r.Error())
	}
	if _, ok := errors.AsType[*Unreachable](err); !ok {
		o.withdraw(ctx)
	}
	return o.failed(events.CodeCoreUnreachable, err.Error())
}

func (o *operation) failed(code events.Code, detail string) error {
	return o.failedFor(code, "", detail)
}

func (o *operation) failedFor(code events.Code, end events.EndReason, detail string) error {
	return o.refused(code, end, NotChecked(code, detail))
}

func (o *operation) refused(code events.Code, end events.EndReason, message string) error {
	r := &Refused{Code: code, EndReason: end, Message: message, Input: events.InputWord(o.c.Kind)}
	if o.c.Text != nil {
		r.Text = *o.c.Text
	}
	return r
}

// withdraw tells the core, briefly, that nobody wants the operation any more. If
// it cannot be told the operation ends with its lease.
func (o *operation) withdraw(ctx context.Context) {
	taken := errors.Is(context.Cause(ctx), ErrMessageWithdrawn)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingFor)
	defer cancel()
	var err error
	if taken {
		err = o.s.tell(ctx, events.VerbMessageWithdrawn, events.MessageWithdrawn{Operation: o.c.Operation})
	} else {
		err = o.s.tell(ctx, events.VerbWithdraw, events.Withdraw{Operation: o.c.Operation, Secret: o.c.Secret})
	}
	if err != nil {
		o.s.c.o.Log.Info("a withdrawal did not arrive", "operation", o.c.Operation, "error", err)
	}
}

// finish reports what became of the run, also when ctx has ended, then briefly. A
// report that fails changes nothing about the run: the core then calls its
// outcome unknown.
func (o *operation) finish(ctx context.Context, result *events.ToolResult) (extra string) {
	f := events.Finish{
		Operation: o.c.Operation, Secret: o.c.Secret, Outcome: events.OutcomeOK, Ran: o.digest, Result: result,
	}
	if result.Failed || result.Error != "" {
		f.Outcome = events.OutcomeFailed
	}
	parting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(partingFor, cancel) })()
	var r events.FinishReply
	err := o.s.ask(parting, events.VerbFinish, f, &r, hooksMayRun, firstContact)
	if err != nil {
		o.s.c.o.Log.Warn("the end of an operation was not recorded", "operation", o.c.Operation, "error", err)
	}
	return r.ExtraContext
}
