package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Entry is a delivery that has not ended: one run of a durable hook. Payload is
// what its first start was told, byte for byte; every later one is told the
// same, as [Input].Raw. Operation is "" for an event of a session. Starts counts
// the starts until now, Last is the time of the latest.
type Entry struct {
	Run       events.ID        `json:"run"`
	Hook      events.Hook      `json:"hook"`
	Event     events.HookEvent `json:"event"`
	Session   events.Token     `json:"session"`
	Project   events.Token     `json:"project"`
	Operation events.ID        `json:"operation,omitempty"`
	Cwd       string           `json:"cwd"`
	Payload   []byte           `json:"payload"`
	Starts    int              `json:"starts"`
	Last      time.Time        `json:"last"`
}

// Outbox keeps the deliveries of durable hooks in a directory, a file each,
// until they have ended. It can be used by several goroutines, of one core.
type Outbox struct{ dir string }

// DamagedEntry says that a delivery's file could not be read. It was set aside
// under the name SetAside, and the others are not affected.
type DamagedEntry struct {
	File     string
	SetAside string // "" when it could not be
	Cause    error
}

// Error implements error.
func (e *DamagedEntry) Error() string {
	if e.SetAside == "" {
		return fmt.Sprintf("the delivery %s cannot be read and could not be set aside: %v", e.File, e.Cause)
	}
	return fmt.Sprintf("the delivery %s cannot be read and is kept as %s: %v", e.File, e.SetAside, e.Cause)
}

// Unwrap gives the cause.
func (e *DamagedEntry) Unwrap() error { return e.Cause }

const (
	entrySuffix   = ".json"
	damagedSuffix = ".damaged"
	// maxEntry bounds what is read of one file: the largest payload in base64
	// with room to spare.
	maxEntry = 64 << 20
)

// OpenOutbox opens the outbox in dir and makes it if it is not there. Drafts
// that an earlier core could not finish are removed: their runs never started.
func OpenOutbox(dir string) (*Outbox, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the outbox of durable hooks: %w", err)
	}
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if strings.HasPrefix(f.Name(), draftPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the outbox of durable hooks: %w", err)
	}
	return &Outbox{dir: dir}, nil
}

// Put stores an entry in place of one for the same run. When it returns without
// error the entry outlives a loss of power. Call it before the run starts: a run
// that starts without it is lost if the core ends then.
func (o *Outbox) Put(e Entry) error {
	err := e.check()
	var data []byte
	if err == nil {
		data, err = encodeEntry(e)
	}
	if err == nil {
		err = replaceFile(o.file(e.Run), data)
	}
	if err != nil {
		return fmt.Errorf("the delivery %s is not stored: %w", e.Run, err)
	}
	return nil
}

func (o *Outbox) file(run events.ID) string { return filepath.Join(o.dir, string(run)+entrySuffix) }

// Done forgets a delivery that has ended, whether or not it is known. Should
// the power go right afterwards, it may be there again: a durable hook runs at
// least once, not at most.
func (o *Outbox) Done(run events.ID) error {
	if _, err := events.ParseID(string(run)); err != nil {
		return fmt.Errorf("a delivery for the run %q: %w", run, err)
	}
	if err := os.Remove(o.file(run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the delivery %s is not forgotten: %w", run, err)
	}
	return nil
}

// Entries gives all deliveries that have not ended, the oldest run first. The
// error joins one for each that could not be given: a [*DamagedEntry], or that
// of a file which the system could not read now. The entries beside it are good.
func (o *Outbox) Entries() ([]Entry, error) {
	files, err := os.ReadDir(o.dir)
	if err != nil {
		return nil, fmt.Errorf("the outbox of durable hooks: %w", err)
	}
	var entries []Entry
	var failed []error
	for _, f := range files {
		run, ours := strings.CutSuffix(f.Name(), entrySuffix)
		if !ours {
			continue
		}
		data, err := readRegular(o.file(events.ID(run)), maxEntry+1)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another goroutine has just ended it
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("the delivery %s: %w", run, err))
			continue
		}
		e, err := decodeEntry(data)
		if err == nil && string(e.Run) != run {
			err = fmt.Errorf("it is about the run %s", e.Run)
		}
		if err != nil {
			failed = append(failed, o.setAside(f.Name(), err))
			continue
		}
		entries = append(entries, e)
	}
	return entries, errors.Join(failed...)
}

// setAside keeps a damaged file under another name, so that it is reported once
// and nothing of it is lost.
func (o *Outbox) setAside(name string, cause error) error {
	d := &DamagedEntry{File: filepath.Join(o.dir, name), Cause: cause}
	aside := d.File + damagedSuffix
	if err := os.Rename(d.File, aside); err != nil {
		d.Cause = errors.Join(cause, err)
	} else {
		d.SetAside = aside
	}
	return d
}

// encodeEntry writes the digest of the entry's JSON, and the JSON on a line of
// its own.
func encodeEntry(e Entry) ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s\n%s\n", events.DigestOf(body), body), nil
}

// decodeEntry reads what encodeEntry wrote, and nothing else.
func decodeEntry(data []byte) (Entry, error) {
	if len(data) > maxEntry {
		return Entry{}, errors.New("it is larger than 64 MiB")
	}
	digest, body, _ := bytes.Cut(data, []byte("\n"))
	body, whole := bytes.CutSuffix(body, []byte("\n"))
	if !whole || events.Digest(digest) != events.DigestOf(body) {
		return Entry{}, errors.New("its content does not have the digest in its first line")
	}
	return decodeBody(body)
}

func decodeBody(body []byte) (Entry, error) {
	var e Entry
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return Entry{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Entry{}, errors.New("there is more behind the entry")
	}
	return e, e.check()
}

// check refuses an entry that no core has written.
func (e Entry) check() error {
	if _, err := events.ParseID(string(e.Run)); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if e.Operation != "" {
		if _, err := events.ParseID(string(e.Operation)); err != nil {
			return fmt.Errorf("operation: %w", err)
		}
	}
	switch {
	case e.Hook.ID == "" || e.Event == "":
		return errors.New("it names no hook or no event")
	case e.Starts < 0:
		return errors.New("its number of starts is negative")
	case !json.Valid(e.Payload):
		return errors.New("its payload is no JSON")
	}
	return nil
}
