package hooks

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// pinned is a blocking hook whose script is trusted as it is written here.
func (r *room) pinned(text string, execution string) Hook {
	r.t.Helper()
	script := r.write("check.sh", text, 0o700)
	data, err := os.ReadFile(script)
	if err != nil {
		r.t.Fatal(err)
	}
	h := r.hook("run: {type: script, path: check.sh}", "execution: {mode: blocking"+execution+"}")
	h.Pinned = events.DigestOf(data)
	return h
}

func TestPinnedScript(t *testing.T) {
	r := newRoom(t)
	h := r.pinned(`cat "$0" >/dev/null; `+writeAsk, "")
	if got := r.run(h); got.Effect != events.EffectAsk || got.Script != h.Pinned {
		t.Errorf("the trusted script: %+v", got)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	r.write("check.sh", ": >"+ran, 0o700)
	for _, on := range []OnError{OnErrorBlock, OnErrorWarn, OnErrorIgnore} {
		h.OnError = on
		refused(t, r.run(h), events.CodeNotTrusted, "is not the one that was trusted")
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("another script than the trusted one ran")
	}
}

// A script that is another one after the run may have been another one when the
// interpreter read it.
func TestPinnedScriptChangedDuringItsRun(t *testing.T) {
	for name, change := range map[string]string{
		"written to":           `echo ' ' >>"$0"`,
		"written to and back":  `cp "$0" "$0.old"; echo ' ' >>"$0"; cat "$0.old" >"$0"`,
		"moved away and back":  `mv "$0" "$0.old"; mv "$0.old" "$0"`,
		"replaced by its copy": `cp -p "$0" "$0.new"; mv "$0.new" "$0"`,
		"removed":              `rm "$0"`,
		"made a directory":     `rm "$0"; mkdir "$0"`,
		"made a pipe":          `rm "$0"; mkfifo "$0"`,
		"changed and failing":  `echo ' ' >>"$0"; exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			// The pause takes the change beyond one tick of the file system's clock.
			h := r.pinned("sleep 0.05; "+writeAsk+change, ", on_error: warn")
			refused(t, r.run(h), events.CodeNotTrusted, "its script ")
		})
	}
}

// Not every file system keeps a change time.
func TestPinnedScriptChangedBehindTheNote(t *testing.T) {
	r := newRoom(t)
	path := r.write("check.sh", "true", 0o600)
	s, err := readScript(path, events.DigestOf([]byte("true")))
	if err != nil || s.unchanged() != nil {
		t.Fatal(err, s.unchanged())
	}
	r.write("check.sh", "fals", 0o600)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s.note = noteOf(info)
	if s.unchanged() == nil {
		t.Error("another content is taken for the same")
	}
}

func TestPinnedScriptThatRunsTooLong(t *testing.T) {
	r := newRoom(t)
	h := r.pinned(writeAsk+"sleep 9", ", timeout_seconds: 0.2")
	refused(t, r.run(h), events.CodeHookTimedOut, "did not end within")
}

func TestUntrustedScriptOfAWatcherIsRecorded(t *testing.T) {
	r := newRoom(t)
	h := r.pinned("true", "")
	h.Pinned = events.DigestOf([]byte("another"))
	async, observed := h, h
	async.Mode, observed.Event = Async, events.AfterToolCall
	for _, h := range []Hook{async, observed} {
		if got := r.run(h); got.Effect != events.EffectError || got.Outcome != events.RunFailed || got.Code != "" || got.FailedOpen {
			t.Errorf("%+v", got)
		}
	}
}

// Only a script can be pinned; a program beside it is not looked at.
func TestPinOfAnAbsoluteScript(t *testing.T) {
	r := newRoom(t)
	elsewhere := filepath.Join(t.TempDir(), "tool.sh")
	if err := os.WriteFile(elsewhere, []byte(writeAsk), 0o600); err != nil {
		t.Fatal(err)
	}
	h := r.hook("run: {type: script, path: "+elsewhere+"}", "execution: {mode: blocking}")
	if got := r.run(h); got.Effect != events.EffectAsk || got.Script == "" {
		t.Errorf("%+v", got)
	}
	if err := os.Chtimes(elsewhere, time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := r.run(h); got.Effect != events.EffectAsk {
		t.Errorf("a script without a pin may be edited: %+v", got)
	}
}
