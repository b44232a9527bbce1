package engine

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// foldVersion changes whenever core.State or the fold does: an older snapshot
// is then dropped and the log read from its beginning.
const foldVersion = 6

type cachedSession struct {
	Place      Place
	Opened     events.SessionOpened
	Log        chronicle
	Sign       int64
	Marked     map[events.ID]events.EndReason
	Unreported []delivered
	Forgotten  int
	Sweeps     []sweep
}

// cached is the content of a snapshot: a cache of the fold, never evidence.
type cached struct {
	sessions []cachedSession
	repeats  []cachedRepeats
	past     cachedHistory
	open     []core.State
}

// encode writes the sessions and then each state on its own, so that the
// encoder's memory is that of one state and not of 100,000.
func (c cached) encode() ([]byte, error) {
	var data bytes.Buffer
	enc := gob.NewEncoder(&data) // gob keeps every exported field, whatever its wire tag says
	if err := errors.Join(enc.Encode(c.sessions), enc.Encode(c.repeats), enc.Encode(c.past)); err != nil {
		return nil, err
	}
	for i := range c.open {
		if err := enc.Encode(&c.open[i]); err != nil {
			return nil, err
		}
	}
	return data.Bytes(), nil
}

// snapshot writes the open states to the snapshot file. Only one runs at a
// time; the barrier is held only while values are copied.
func (e *Engine) snapshot() {
	if e.o.Snapshot == "" || e.doubtful.Load() || !e.snapping.CompareAndSwap(false, true) {
		return
	}
	defer e.snapping.Store(false)
	seq, c := e.copyStates()
	data, err := c.encode()
	if err == nil {
		err = journal.WriteSnapshot(e.o.Snapshot, journal.Snapshot{Seq: seq, Fold: foldVersion, Core: e.o.Core, Data: data})
	}
	if err != nil {
		e.o.Logger.Warn("no snapshot was written; the next start reads more of the log", "error", err)
	}
}

func (e *Engine) copyStates() (uint64, cached) {
	e.barrier.Lock()
	defer e.barrier.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	c := cached{open: make([]core.State, 0, len(e.ops)), repeats: e.repeats.copy(), past: e.past.copy()}
	for _, ses := range e.sessions {
		if kept := ses.cached(); kept.Log.Seq > 0 {
			c.sessions = append(c.sessions, kept)
		}
	}
	for _, op := range e.ops {
		if s := op.snapshot(); s.Phase != core.PhaseNone && !s.Over() {
			c.open = append(c.open, s)
		}
	}
	return e.lastSeq.Load(), c
}

// cached is what a snapshot keeps of a session. The engine's lock is held.
func (s *session) cached() cachedSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cachedSession{
		Place: s.place, Opened: s.opened, Log: s.log, Sign: s.sign.Load(),
		Marked: maps.Clone(s.marked), Unreported: slices.Clone(s.unreported), Forgotten: s.forgotten, Sweeps: s.sweeps,
	}
}

// fromSnapshot takes up what the snapshot has, and returns the sequence behind which
// the log is to be read: 0 when there is none.
func (e *Engine) fromSnapshot(r *recovery) (uint64, error) {
	if e.o.Snapshot == "" {
		return 0, nil
	}
	snap, err := journal.ReadSnapshot(e.o.Snapshot)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if snap.Fold != foldVersion || snap.Core != e.o.Core {
		return 0, errors.New("it was made by another fold or another core")
	}
	return snap.Seq, e.takeCached(snap.Data, r)
}

// takeCached takes a snapshot's content into what is being recovered.
func (e *Engine) takeCached(data []byte, r *recovery) error {
	dec := gob.NewDecoder(bytes.NewReader(data))
	var sessions []cachedSession
	var repeats []cachedRepeats
	var past cachedHistory
	if err := errors.Join(dec.Decode(&sessions), dec.Decode(&repeats), dec.Decode(&past)); err != nil {
		return err
	}
	e.repeats.restore(repeats)
	e.past.restore(past)
	for _, c := range sessions {
		ses := e.remember(c.Place)
		ses.opened, ses.log, ses.marked, ses.unreported = c.Opened, c.Log, c.Marked, c.Unreported
		ses.forgotten, ses.sweeps = c.Forgotten, c.Sweeps
		ses.sign.Store(c.Sign)
	}
	for _, ses := range e.sessions {
		e.introduce(ses, ses.opened) // now that each parent is there
	}
	for {
		var s core.State
		switch err := dec.Decode(&s); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		r.put(s)
	}
}
