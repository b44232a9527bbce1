package frontdesk

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

// Limits of commands. An answer may carry edited arguments one day, hence its
// own.
const (
	maxCommand  = 64 << 10
	maxRespond  = 4 << 20
	maxText     = 16 << 10
	maxName     = 128
	maxReceived = 256
)

// verb is one thing that a frontend can ask for.
type verb struct {
	lobby bool // of a scope, not of a session
	waits bool // may wait for the log
	limit int  // bytes of the command
	// read decodes a command and checks its form; run then asks the desk.
	read func(data []byte) (run, error)
}

// run carries out a command that was read.
type run func(ctx context.Context, d *Door, f engine.Frontend, at events.DoorSubject) (reply any)

// nothing is the command of verbs that say all by their name.
type nothing struct{}

func newVerbs() map[string]verb {
	return map[string]verb{
		events.VerbHello: {lobby: true, limit: maxCommand, read: read(checkHello,
			func(_ context.Context, d *Door, f engine.Frontend, at events.DoorSubject, c events.Hello) any {
				return d.o.Desk.Hello(f, at.Scope, c)
			})},
		events.VerbRenew: {lobby: true, limit: maxCommand, read: read(free[events.Renew],
			func(_ context.Context, d *Door, f engine.Frontend, at events.DoorSubject, c events.Renew) any {
				return d.o.Desk.Renew(f, at.Scope, c)
			})},
		events.VerbBye: {lobby: true, limit: maxCommand, read: read(free[events.Bye],
			func(_ context.Context, d *Door, f engine.Frontend, _ events.DoorSubject, _ events.Bye) any {
				d.o.Desk.Bye(f)
				return events.ByeReply{}
			})},
		events.VerbSessions: {lobby: true, limit: maxCommand, read: read(free[nothing],
			func(_ context.Context, d *Door, _ engine.Frontend, at events.DoorSubject, _ nothing) any {
				return events.RenewReply{Epoch: d.o.Epoch, Sessions: d.o.Desk.Sessions(at.Scope)}
			})},
		events.VerbFind: {lobby: true, waits: true, limit: maxCommand, read: read(checkFind,
			func(ctx context.Context, d *Door, _ engine.Frontend, _ events.DoorSubject, c events.Find) any {
				return d.o.Desk.Find(ctx, c)
			})},
		events.VerbHistory: {lobby: true, waits: true, limit: maxCommand, read: read(checkHistory,
			func(_ context.Context, d *Door, _ engine.Frontend, at events.DoorSubject, c events.History) any {
				return d.o.Desk.History(at.Scope, c)
			})},
		events.VerbSync: {limit: maxCommand, read: read(checkSync,
			func(_ context.Context, d *Door, _ engine.Frontend, at events.DoorSubject, c events.Sync) any {
				return d.o.Desk.Sync(place(at), c)
			})},
		events.VerbShow: {waits: true, limit: maxCommand, read: read(checkShow,
			func(ctx context.Context, d *Door, _ engine.Frontend, at events.DoorSubject, c events.Show) any {
				return d.o.Desk.Show(ctx, place(at), c)
			})},
		events.VerbReceived: {limit: maxCommand, read: read(checkReceived,
			func(_ context.Context, d *Door, f engine.Frontend, at events.DoorSubject, c events.Received) any {
				return d.o.Desk.Received(f, place(at), c)
			})},
		events.VerbPresented: {waits: true, limit: maxCommand, read: read(checkDrawn,
			func(ctx context.Context, d *Door, f engine.Frontend, at events.DoorSubject, c events.Drawn) any {
				return d.o.Desk.Presented(ctx, f, place(at), c)
			})},
		events.VerbRing: {waits: true, limit: maxCommand, read: read(checkRing,
			func(ctx context.Context, d *Door, f engine.Frontend, at events.DoorSubject, c events.Ring) any {
				return d.o.Desk.Ring(ctx, f, place(at), c)
			})},
		events.VerbRun: {waits: true, limit: maxCommand, read: read(checkRun,
			func(ctx context.Context, d *Door, _ engine.Frontend, at events.DoorSubject, c events.RunCommand) any {
				return d.o.Desk.Output(ctx, place(at), c)
			})},
		events.VerbClaim: {waits: true, limit: maxCommand, read: read(checkClaim,
			func(ctx context.Context, d *Door, f engine.Frontend, at events.DoorSubject, c events.ClaimCommand) any {
				return d.o.Desk.Claim(ctx, f, place(at), c)
			})},
		events.VerbRelease: {waits: true, limit: maxCommand, read: read(checkRelease,
			func(ctx context.Context, d *Door, f engine.Frontend, at events.DoorSubject, c events.ReleaseCommand) any {
				return d.o.Desk.Release(ctx, f, place(at), c)
			})},
		events.VerbRespond: {waits: true, limit: maxRespond, read: read(checkRespond,
			func(ctx context.Context, d *Door, f engine.Frontend, at events.DoorSubject, c events.Respond) any {
				return d.o.Desk.Respond(ctx, f, place(at), c)
			})},
	}
}

// read makes the decoder of a verb from its command's type, the check of its
// form, and what it does.
func read[C any](
	check func(C) error, do func(context.Context, *Door, engine.Frontend, events.DoorSubject, C) any,
) func([]byte) (run, error) {
	return func(data []byte) (run, error) {
		var c C
		if _, err := events.DecodeCommand(data, &c); err != nil {
			return nil, err
		}
		if err := check(c); err != nil {
			return nil, err
		}
		return func(ctx context.Context, d *Door, f engine.Frontend, at events.DoorSubject) any {
			return do(ctx, d, f, at, c)
		}, nil
	}
}

func place(at events.DoorSubject) engine.Place {
	return engine.Place{Project: at.Project, Session: at.Session}
}

func free[C any](C) error { return nil }

func checkHello(c events.Hello) error {
	switch c.Kind {
	case events.FrontendTUI, events.FrontendACP, events.FrontendWeb, events.FrontendCLI:
	default:
		return fmt.Errorf("%.32q is no kind of frontend: tui, acp, web or cli", c.Kind)
	}
	if len(c.Name) > maxName || !utf8.ValidString(c.Name) {
		return fmt.Errorf("a name is UTF-8 of at most %d bytes", maxName)
	}
	return nil
}

func checkFind(c events.Find) error {
	if (c.Question == "") == (c.Operation == "") {
		return errors.New("find takes a question or an operation, one of the two")
	}
	return checkID(c.Question + c.Operation)
}

func checkSync(c events.Sync) error {
	if c.Cursor == "" {
		return nil
	}
	return checkID(c.Cursor)
}

func checkShow(c events.Show) error {
	if c.Version < 0 || c.Offset < 0 {
		return errors.New("version and offset count from 0")
	}
	return checkID(c.Question)
}

func checkReceived(c events.Received) error {
	if len(c.Questions) > maxReceived {
		return fmt.Errorf("received names %d questions; %d is the most", len(c.Questions), maxReceived)
	}
	for _, id := range c.Questions {
		if err := checkID(id); err != nil {
			return err
		}
	}
	return nil
}

func checkDrawn(c events.Drawn) error {
	return errors.Join(checkID(c.Question), checkDigest(c.Digest))
}

func checkHistory(c events.History) error {
	if c.Limit < 0 {
		return errors.New("a limit counts from 0, which is none")
	}
	return nil
}

func checkRing(c events.Ring) error { return checkID(c.Question) }

func checkRun(c events.RunCommand) error {
	if c.Operation == "" {
		return checkID(c.Run)
	}
	return errors.Join(checkID(c.Operation), checkID(c.Run))
}

func checkClaim(c events.ClaimCommand) error { return checkID(c.Question) }

func checkRelease(c events.ReleaseCommand) error { return checkID(c.Question) }

func checkRespond(c events.Respond) error {
	if len(c.Text) > maxText || !utf8.ValidString(c.Text) {
		return fmt.Errorf("the text to the model is UTF-8 of at most %d bytes", maxText)
	}
	switch c.Answer {
	case events.AnswerContinue, events.AnswerCancel, events.AnswerOnce, events.AnswerAlways, events.AnswerAlwaysTool,
		events.AnswerAlwaysServer, events.AnswerModifyEditor, events.AnswerClientCancels:
	default:
		return fmt.Errorf("%.32q is no answer", c.Answer)
	}
	if c.Digest == "" {
		// Nothing was drawn: the core refuses it for an open question, and
		// records it as late for one that has ended.
		return checkID(c.Question)
	}
	return errors.Join(checkID(c.Question), checkDigest(c.Digest))
}

func checkID(id events.ID) error {
	_, err := events.ParseID(string(id))
	return err
}

func checkDigest(d events.Digest) error {
	_, err := events.ParseDigest(string(d))
	return err
}
