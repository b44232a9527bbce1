package engine

import (
	"context"
	"errors"

	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// encode makes of a message what stands in the log, behind the sequence that it was
// decided on. Its hash is then in m.
func (e *Engine) encode(m *events.Message, expected uint64) (journal.Entry, error) {
	for i := range m.Bodies {
		m.Bodies[i].Salt = e.salt()
	}
	data, hash, err := events.EncodeMessage(*m)
	if err != nil {
		return journal.Entry{}, refuse(events.RejectInternal, err.Error())
	}
	m.Hash = hash
	subject := events.SessionSubject(m.Project, m.Session)
	if m.Operation != "" {
		subject = events.OperationSubject(m.Project, m.Session, m.Operation)
	}
	return journal.Entry{Subject: subject, Expected: expected, ID: m.ID, Types: m.TypeHeader(), Data: data}, nil
}

// append writes an entry and returns its sequence. The barrier is held. An error
// leaves in doubt what the log has: whoever appended reads it again before the next
// decision.
func (e *Engine) append(ctx context.Context, entry journal.Entry) (uint64, error) {
	ctx, end := context.WithTimeout(ctx, appendLimit)
	defer end()
	seq, err := e.o.Log.Append(ctx, entry)
	if err == nil {
		return seq, nil
	}
	if _, ok := errors.AsType[*journal.Lost](err); !ok {
		e.doubtful.Store(true)
	}
	return 0, e.appendFailed(err)
}

func (e *Engine) appendFailed(err error) error {
	var lost *journal.Lost
	switch {
	case errors.As(err, &lost):
		return err
	case e.stopped():
		return ErrStopped
	}
	e.o.Logger.Error("the log did not take a decision", "error", err)
	return refuse(events.RejectLogUnavailable, "the log did not take it; nothing was decided. If the disk is full, make room and start the core again. "+err.Error())
}

// advance notes how far the log is known to be applied.
func (e *Engine) advance(seq uint64) {
	for {
		last := e.lastSeq.Load()
		if seq <= last || e.lastSeq.CompareAndSwap(last, seq) {
			break
		}
	}
	if e.written.Add(1)%snapshotEvery == 0 {
		e.tasks.Go(e.snapshot)
	}
}
