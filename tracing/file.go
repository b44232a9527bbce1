package tracing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// FileSink appends spans to a file: one line of OTLP JSON for each message of
// the log that ended some, as the collector's file exporter frames them.
//
// The file itself says how far it reaches: the fermata.audit.seq of its last
// line. A line that a crash tore is cut and made again. Beside the file lies a
// cursor, which only spares reading the log from its beginning: it holds Low of
// a [Batch] that is in the file. A cursor that is absent, unreadable or ahead
// of the file is not used. Deleting both files makes the projection again.
type FileSink struct {
	path  string
	store string
	file  *os.File
	done  uint64
	low   uint64
	saved uint64 // low in the cursor file
	lines []byte // where what is written next is put together
	err   error
}

// What a file sink does in one go, in bytes and messages.
const (
	// syncEvery bounds what is written without a sync between.
	syncEvery = 512 << 10
	// tailSize is how much of the file's end is checked when it is opened: all
	// that a crash can have left unfinished, and the last good line before it.
	tailSize = 2 << 20
	// cursorEvery is by how much Low must move before the cursor is written.
	cursorEvery = 256
)

// OpenFile opens or makes the span file of a store, readable by its owner
// only, and locks it: a second writer is an error. A file whose end is not
// spans of this store is refused.
func OpenFile(path, store string) (*FileSink, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open span file: %w", err)
	}
	s := &FileSink{path: path, store: store, file: f}
	if err := s.recover(); err != nil {
		f.Close()
		return nil, fmt.Errorf("open span file %s: %w", path, err)
	}
	return s, nil
}

// Start is the sequence from which the log must be read so that the file loses
// no span.
func (s *FileSink) Start() uint64 { return s.low }

// Done is the sequence of the last message whose spans are in the file, 0 for
// none. A log that ends before it has lost its end.
func (s *FileSink) Done() uint64 { return s.done }

// Write appends what the file does not hold yet and syncs it. It does not stop
// half-way for ctx. After an error the sink must be opened again.
func (s *FileSink) Write(_ context.Context, b Batch) error {
	if s.err != nil {
		return fmt.Errorf("span file %s failed before (%w); open it again", s.path, s.err)
	}
	if s.err = s.write(b); s.err != nil {
		return fmt.Errorf("span file %s: %w", s.path, s.err)
	}
	return nil
}

// Close writes the cursor and closes the file.
func (s *FileSink) Close() error {
	var err error
	if s.err == nil {
		err = s.saveCursor()
	}
	return errors.Join(err, s.file.Close())
}

func (s *FileSink) write(b Batch) error {
	lines, last := s.lines[:0], s.done
	for _, e := range b.Ended {
		if e.Seq <= last {
			continue
		}
		lines = append(append(lines, e.Line...), '\n')
		last = e.Seq
		if len(lines) >= syncEvery {
			if err := s.append(lines, last); err != nil {
				return err
			}
			lines = lines[:0]
		}
	}
	if len(lines) > 0 {
		if err := s.append(lines, last); err != nil {
			return err
		}
	}
	s.lines = lines
	s.low = max(s.low, b.Low)
	if s.low < s.saved+cursorEvery {
		return nil
	}
	return s.saveCursor()
}

// append makes lines durable; last is the sequence of the last one.
func (s *FileSink) append(lines []byte, last uint64) error {
	if _, err := s.file.Write(lines); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.done = last
	return nil
}

// recover locks the file, cuts a torn end, and finds where to go on.
func (s *FileSink) recover() error {
	if err := unix.Flock(int(s.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another process writes to it: %w", err)
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	good, done, err := s.checkTail(info.Size())
	if err != nil {
		return err
	}
	if good < info.Size() {
		if err := s.file.Truncate(good); err != nil {
			return err
		}
	}
	s.done, s.low = done, s.readCursor(done)
	s.saved = s.low
	if err := s.file.Sync(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(s.path))
}

// checkTail reads the file's last lines. It returns the offset behind the last
// good one and its sequence. What is behind it, a crash has left: it was never
// reported as written.
func (s *FileSink) checkTail(size int64) (good int64, done uint64, err error) {
	from := max(0, size-tailSize)
	tail := make([]byte, size-from)
	if _, err := io.ReadFull(io.NewSectionReader(s.file, from, size-from), tail); err != nil {
		return 0, 0, err
	}
	good = from
	if from > 0 { // begin behind the line that the tail cuts
		cut := bytes.IndexByte(tail, '\n') + 1
		tail, good = tail[cut:], good+int64(cut)
	}
	found := false
	for len(tail) > 0 {
		n := bytes.IndexByte(tail, '\n')
		if n < 0 {
			break
		}
		seq, ok := s.lineSeq(tail[:n])
		if !ok || seq <= done {
			break
		}
		found, done = true, seq
		good += int64(n) + 1
		tail = tail[n+1:]
	}
	if !found && len(tail) > 0 && !tornFirst(tail, from) {
		return 0, 0, fmt.Errorf("it does not end with spans of store %s; move it away and it is made again", s.store)
	}
	return good, done, nil
}

// tornFirst: the file holds nothing but the beginning of a first line.
func tornFirst(tail []byte, from int64) bool {
	const head = `{"resourceSpans":[`
	return from == 0 && bytes.IndexByte(tail, '\n') < 0 &&
		(bytes.HasPrefix(tail, []byte(head)) || bytes.HasPrefix([]byte(head), tail))
}

// lineSeq is the sequence of the message that a line belongs to, false when the
// line is not of this store.
func (s *FileSink) lineSeq(line []byte) (uint64, bool) {
	d, err := decodeLine(line)
	if err != nil {
		return 0, false
	}
	spans := spansIn(d)
	if len(spans) == 0 || spans[0].Text("fermata.store.id") != s.store {
		return 0, false
	}
	return spans[0].Seq(), spans[0].Seq() > 0
}

// cursor is what the cursor file holds. Fold is the schema under which
// operations before Low were projected.
type cursor struct {
	Fold  string `json:"fold"`
	Store string `json:"store"`
	Low   uint64 `json:"low"`
	Done  uint64 `json:"done"`
	Sum   string `json:"sum"` // of the rest: a flipped bit must not skip a span
}

func (c cursor) sum() string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d", c.Fold, c.Store, c.Low, c.Done))
	return hex.EncodeToString(h[:8])
}

func (s *FileSink) cursorPath() string { return s.path + ".cursor" }

// readCursor returns where to read the log from: 1, its beginning, when the
// cursor is in doubt.
func (s *FileSink) readCursor(done uint64) uint64 {
	var c cursor
	b, err := os.ReadFile(s.cursorPath())
	if err != nil || json.Unmarshal(b, &c) != nil {
		return 1
	}
	if c.Sum != c.sum() || c.Fold != Schema || c.Store != s.store || c.Done > done || c.Low == 0 || c.Low > done+1 {
		return 1
	}
	return c.Low
}

// saveCursor replaces the cursor. It needs no sync: every cursor that ever
// stood there is a good one, only older.
func (s *FileSink) saveCursor() error {
	c := cursor{Fold: Schema, Store: s.store, Low: s.low, Done: s.done}
	c.Sum = c.sum()
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	fresh := s.cursorPath() + ".new"
	if err := os.WriteFile(fresh, append(b, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Rename(fresh, s.cursorPath()); err != nil {
		return err
	}
	s.saved = s.low
	return nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
