package frontends

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/events"
)

// keepAttached says hello until a core answers, then renews, and says hello
// again when the cores that answer are not those that know this frontend.
func (l *link) keepAttached() {
	renewal := time.NewTicker(renewEvery)
	defer renewal.Stop()
	attached := false
	again := retryWait
	for {
		if !attached {
			switch err := l.attach(); {
			case err == nil:
				attached, again = true, retryWait
			case l.ctx.Err() != nil:
				return
			case errors.Is(err, context.DeadlineExceeded):
				l.cancel(errLost) // silence: perhaps the connection is dead
				return
			case isRefusal(err, events.RejectNotAllowed), isRefusal(err, events.RejectMalformed):
				l.cancel(&fatalError{err})
				return
			case !l.pauseOr(l.keep, again):
				return
			}
			again = min(2*again, nobodyWait)
			continue
		}
		select {
		case <-l.ctx.Done():
			return
		case <-renewal.C:
		case <-l.keep:
		}
		if err := l.renew(); err != nil && l.ctx.Err() == nil {
			l.c.o.Log.Info("attaching again", "reason", err)
			attached = false
			l.detach()
		}
	}
}

func isRefusal(err error, code events.Reject) bool {
	var r *events.Refused
	return errors.As(err, &r) && r.Code == code
}

// attach introduces this frontend to every core of its scope.
func (l *link) attach() error {
	since := l.c.inbox.now()
	epochs := map[events.ID]bool{}
	var heads []events.SessionHead
	o := l.c.o
	hello := events.Hello{Kind: o.Kind, Capable: o.Capable, Panes: o.Panes, Name: o.Name}
	err := gather(l.ctx, l, events.VerbHello, hello, func(r events.HelloReply) bool {
		epochs[r.Epoch] = true
		heads = append(heads, r.Sessions...)
		l.alone.Store(r.Alone)
		l.c.principal.Store(&r.Principal)
		return true
	})
	if err != nil {
		return err
	}
	if err := l.follow(heads); err != nil {
		return err
	}
	updates := l.c.inbox.attach(heads, since)
	l.missed = 0
	l.attached(epochs)
	l.emit(updates)
	l.unfollow()
	return nil
}

var errOtherCores = errors.New("the cores have changed")

// renew keeps the lease, and finds the sessions whose feed is ahead.
func (l *link) renew() error {
	since := l.c.inbox.now()
	replies := map[events.ID][]events.SessionHead{}
	err := gather(l.ctx, l, events.VerbRenew, events.Renew{Input: l.c.recentInput()}, func(r events.RenewReply) bool {
		replies[r.Epoch] = r.Sessions
		return true
	})
	if err != nil {
		return err
	}
	if l.otherCores(replies) {
		return errOtherCores
	}
	var all []events.SessionHead
	for _, heads := range replies {
		all = append(all, heads...)
	}
	if err := l.follow(all); err != nil {
		return err
	}
	l.emit(l.c.inbox.renewed(replies, l.missed == 0, since))
	l.unfollow()
	signal(l.sync)
	return nil
}

// otherCores reports whether a core answered that does not know this frontend,
// or one that does has been silent for as long as a lease. One late reply is no
// reason to start over.
func (l *link) otherCores(replies map[events.ID][]events.SessionHead) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for epoch := range replies {
		if !l.epochs[epoch] {
			return true
		}
	}
	if len(replies) == len(l.epochs) {
		l.missed = 0
		return false
	}
	l.missed++
	return l.missed >= maxMissed
}

// keepListed lists every session that is behind, whenever one may be.
func (l *link) keepListed() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.sync:
		}
		l.lookUp(l.takeUnsure())
		for _, at := range l.c.inbox.behind() {
			if err := l.list(at); err != nil && l.ctx.Err() == nil {
				l.c.o.Log.Info("listing again", "session", at.session, "reason", err)
			}
		}
		if l.c.inbox.hasMissed() {
			signal(l.past)
		}
		if len(l.c.inbox.behind()) > 0 {
			if !l.pause(retryWait) {
				return
			}
			signal(l.sync)
		}
	}
}

// list asks for the open questions of a session, page by page. The feed of the
// session is followed already.
func (l *link) list(at place) error {
	inbox := l.c.inbox
	inbox.beginSync(at)
	var (
		first  mark
		cursor events.ID
		listed = map[events.ID]bool{}
	)
	for page := 0; ; page++ {
		r, err := ask[events.SyncReply](l.ctx, l, at, events.VerbSync, events.Sync{Cursor: cursor})
		if isRefusal(err, events.RejectUnknownSession) {
			l.emit(inbox.closed(at))
			return nil
		}
		if err != nil {
			return err
		}
		if page == 0 {
			first = mark{r.Epoch, r.Feed}
		}
		if r.Epoch != first.epoch || !l.knows(r.Epoch) {
			signal(l.keep)
			return errOtherCores
		}
		for _, q := range r.Questions {
			listed[q.ID] = true
		}
		l.c.emit(inbox.list(at, first, r.Questions))
		signal(l.tell)
		if cursor = r.Next; cursor == "" {
			break
		}
	}
	l.emit(append(inbox.endSync(at, first, listed), Update{Kind: KindResynced}))
	return nil
}

// keepRemembered asks for what happened of late, whenever some of it may have been
// missed.
func (l *link) keepRemembered() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.past:
		}
		since := l.c.inbox.beginRecall()
		err := gather(l.ctx, l, events.VerbHistory, events.History{}, func(r events.HistoryReply) bool {
			l.c.emit(l.c.inbox.recalled(r, since))
			return true
		})
		if no := (*events.Refused)(nil); err == nil || errors.As(err, &no) {
			continue // a core without this verb has nothing to tell
		}
		l.c.inbox.miss()
		if !l.pause(retryWait) {
			return
		}
		signal(l.past)
	}
}

// lookUp asks how questions ended whose end this frontend has missed.
func (l *link) lookUp(questions []events.ID) {
	for _, id := range questions[:min(len(questions), maxReceived)] {
		r, err := l.find(l.ctx, events.Find{Question: id})
		if err != nil || r.End == nil || r.End.Question != id {
			continue
		}
		l.c.emit(l.c.inbox.finish(place{r.Project, r.Session}, *r.End))
	}
}

// keepReported tells the core which questions are in this frontend's list. A
// question that no capable frontend has received ends.
func (l *link) keepReported() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.tell:
		}
		if !l.c.o.Capable {
			continue
		}
		for {
			at, ids, attachment := l.c.inbox.received(maxReceived)
			if len(ids) == 0 {
				break
			}
			_, err := ask[events.Ack](l.ctx, l, at, events.VerbReceived, events.Received{Questions: ids})
			if err == nil || isRefusal(err, events.RejectUnknownSession) || isRefusal(err, events.RejectMalformed) {
				l.c.inbox.told(ids, attachment)
				continue
			}
			signal(l.keep) // perhaps the core has forgotten this frontend
			if !l.pause(retryWait) {
				return
			}
		}
	}
}

// gather sends a verb to the lobby of the scope and hands every core's reply to
// each, until it returns false: replies that come within gatherFor, or the first
// one if none comes so soon. The error is the last refusal when no core agreed.
func gather[R any](parent context.Context, l *link, verb string, command any, each func(R) bool) error {
	timed, cancel := context.WithTimeout(parent, tryFor)
	defer cancel()
	data, err := events.Encode(command)
	if err != nil {
		return err
	}
	inbox := l.nc.NewRespInbox()
	replies, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = replies.Unsubscribe() }() // fails only on a lost connection
	subject := l.lobby(verb)
	ctx, land := l.fly(timed, subject)
	defer land()
	if err := l.nc.PublishRequest(subject, inbox, data); err != nil {
		return err
	}
	enough := time.Now().Add(gatherFor)
	agreed, refused := false, error(nil)
	for {
		until := ctx
		if agreed || refused != nil {
			var stop context.CancelFunc
			until, stop = context.WithDeadline(ctx, enough)
			defer stop()
		}
		msg, err := replies.NextMsgWithContext(until)
		if err != nil {
			switch denied := (*events.Refused)(nil); {
			case errors.As(context.Cause(ctx), &denied):
				return denied
			case agreed:
				return nil
			case refused != nil:
				return refused
			}
			return err
		}
		r, err := readReply[R](msg.Data)
		if err != nil {
			if refused = err; l.alone.Load() {
				return refused
			}
			continue
		}
		agreed = true
		if more := each(r); !more || l.alone.Load() {
			return nil
		}
	}
}

// reply is what every reply may hold instead of its own fields.
type reply struct {
	Refused *events.Refused `json:"refused"`
}

// readReply reads a reply; a refusal is the error.
func readReply[R any](data []byte) (R, error) {
	var (
		no reply
		r  R
	)
	if err := events.Decode(data, &no); err != nil {
		return r, err
	}
	if no.Refused != nil {
		return r, no.Refused
	}
	return r, events.Decode(data, &r)
}

// ask sends one verb of a session on this link, once.
func ask[R any](ctx context.Context, l *link, at place, verb string, command any) (R, error) {
	var r R
	data, err := events.Encode(command)
	if err != nil {
		return r, err
	}
	answer, err := l.request(ctx, events.FrontendSubject(at.project, at.session, l.c.o.ID, verb), data)
	if errors.Is(err, nats.ErrNoResponders) && !l.c.inbox.holds(at.session) {
		return r, &events.Refused{Code: events.RejectUnknownSession, Hint: "no core has this session"}
	}
	if err != nil {
		return r, err
	}
	return readReply[R](answer)
}

// find asks all cores where a question or operation is.
func (l *link) find(ctx context.Context, what events.Find) (found events.FindReply, err error) {
	err = gather(ctx, l, events.VerbFind, what, func(r events.FindReply) bool {
		found = r
		return false
	})
	return found, err
}

// sessions asks all cores for the sessions in scope.
func (l *link) sessions(ctx context.Context) (heads []events.SessionHead, err error) {
	err = gather(ctx, l, events.VerbSessions, struct{}{}, func(r events.RenewReply) bool {
		heads = slices.Concat(heads, r.Sessions)
		return true
	})
	return heads, err
}
