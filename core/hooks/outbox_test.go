package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

func runID(n byte) events.ID {
	return events.NewID(time.Date(2026, 5, 14, 15, 0, 0, 0, time.UTC), [10]byte{9: n})
}

func delivery(n byte) Entry {
	return Entry{
		Run: runID(n), Hook: events.Hook{ID: "notify", Scope: events.ScopeProject, File: "/p/hooks.yaml", Line: 7, Index: 2},
		Event: events.AfterToolCall, Session: "s", Project: "p", Operation: runID(200), Cwd: "/w <&> 工作",
		Payload: []byte("{\"a\": 1.0,\n\"b\":\"<&>\u2028\"}"), Starts: 1, Last: time.Date(2026, 5, 14, 15, 0, 0, 123456789, time.UTC),
	}
}

func openOutbox(t *testing.T, dir string) *Outbox {
	t.Helper()
	o, err := OpenOutbox(dir)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOutboxOutlivesTheCore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "out [1]")
	o := openOutbox(t, dir)
	for n := range byte(3) {
		if err := o.Put(delivery(2 - n)); err != nil {
			t.Fatal(err)
		}
	}
	again := delivery(1)
	again.Starts, again.Last = 2, again.Last.Add(time.Minute)
	if err := o.Put(again); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(o.Done(runID(0)), o.Done(runID(0)), o.Done(runID(77))); err != nil {
		t.Error("an ended or unknown delivery:", err)
	}
	if err := os.WriteFile(filepath.Join(dir, draftPrefix+"1"), []byte("cut off"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := openOutbox(t, dir).Entries()
	if err != nil || !reflect.DeepEqual(got, []Entry{again, delivery(2)}) {
		t.Errorf("%v\n%+v", err, got)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Error("a draft is left:", files, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error("others can look into it:", info.Mode(), err)
	}
}

func withDigest(body string) []byte {
	return fmt.Appendf(nil, "%s\n%s\n", events.DigestOf([]byte(body)), body)
}

func TestOutboxSetsDamagedEntriesAside(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut off":         func(b []byte) []byte { return b[:len(b)/2] },
		"empty":           func([]byte) []byte { return nil },
		"zeros":           func(b []byte) []byte { return make([]byte, len(b)) },
		"one bit":         func(b []byte) []byte { b[len(b)-9] ^= 1; return b },
		"of another run":  func([]byte) []byte { b, _ := encodeEntry(delivery(9)); return b },
		"without a field": func([]byte) []byte { return withDigest("{}") },
		"with a field of a later version": func(b []byte) []byte {
			_, body, _ := strings.Cut(string(b), "\n")
			return withDigest(`{"new":1,` + strings.TrimSpace(body)[1:])
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := openOutbox(t, t.TempDir())
			if err := errors.Join(o.Put(delivery(1)), o.Put(delivery(2))); err != nil {
				t.Fatal(err)
			}
			file := o.file(runID(1))
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			data = damage(data)
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := o.Entries()
			if len(got) != 1 || got[0].Run != runID(2) {
				t.Errorf("the other is affected: %+v", got)
			}
			damaged, ok := errors.AsType[*DamagedEntry](err)
			if !ok || damaged.File != file || damaged.SetAside == "" || !strings.Contains(err.Error(), file) {
				t.Fatalf("%v", err)
			}
			if kept, err := os.ReadFile(damaged.SetAside); err != nil || !bytes.Equal(kept, data) {
				t.Error("it is not kept:", err)
			}
			if got, err := o.Entries(); err != nil || len(got) != 1 {
				t.Error("it is reported twice:", err)
			}
		})
	}
}

// What the system cannot read now may be good: it stays where it is.
func TestOutboxLeavesWhatItCannotRead(t *testing.T) {
	o := openOutbox(t, t.TempDir())
	if err := os.Mkdir(o.file(runID(1)), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := o.Entries()
	if _, damaged := errors.AsType[*DamagedEntry](err); err == nil || damaged {
		t.Error(err)
	}
	if _, err := os.Stat(o.file(runID(1))); err != nil {
		t.Error(err)
	}
}

func TestOutboxRefusesWhatItCouldNotRead(t *testing.T) {
	o := openOutbox(t, t.TempDir())
	for name, spoil := range map[string]func(*Entry){
		"a run that leads elsewhere": func(e *Entry) { e.Run = "../../etc/x" },
		"no run":                     func(e *Entry) { e.Run = "" },
		"no payload":                 func(e *Entry) { e.Payload = nil },
		"no hook":                    func(e *Entry) { e.Hook.ID = "" },
		"a time without a form":      func(e *Entry) { e.Last = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		e := delivery(1)
		spoil(&e)
		if err := o.Put(e); err == nil {
			t.Errorf("%s is stored", name)
		}
	}
	if err := o.Done("../outside"); err == nil {
		t.Error("a name that leads elsewhere is removed")
	}
	if got, err := o.Entries(); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
	if _, err := OpenOutbox(filepath.Join("/proc/self/status", "out")); err == nil {
		t.Error("opened where no directory can be")
	}
}

func TestOutboxAtOnce(t *testing.T) {
	o := openOutbox(t, t.TempDir())
	var group sync.WaitGroup
	for n := range byte(16) {
		group.Go(func() {
			for starts := range 8 {
				e := delivery(n)
				e.Starts = starts
				if err := o.Put(e); err != nil {
					t.Error(err)
				}
				if _, err := o.Entries(); err != nil {
					t.Error(err)
				}
			}
			if n%2 == 0 {
				if err := o.Done(runID(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got, err := o.Entries(); err != nil || len(got) != 8 || got[0].Starts != 7 {
		t.Errorf("%d entries: %v", len(got), err)
	}
}

func TestOutboxEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := delivery(rapid.Byte().Draw(t, "run"))
		payload, err := json.Marshal(rapid.String().Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		e.Payload = append(payload, rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "space")...)
		e.Starts = rapid.IntRange(0, 9).Draw(t, "starts")
		data, err := encodeEntry(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeEntry(data)
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("%v\n%+v\n%+v", err, got, e)
		}
	})
}

func FuzzOutboxEntry(f *testing.F) {
	for n := range byte(2) {
		data, err := encodeEntry(delivery(n))
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := bytes.Cut(data, []byte("\n"))
		f.Add(bytes.TrimSuffix(body, []byte("\n")))
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"run":"` + string(runID(1)) + `","payload":"e30="}{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := decodeEntry(body); err == nil {
			t.Fatalf("%q has no digest", body)
		}
		e, err := decodeBody(body)
		if err != nil {
			return
		}
		if e.check() != nil {
			t.Fatalf("%q gives an entry that no core has written", body)
		}
		data, err := encodeEntry(e)
		if err != nil {
			return // a time that has no form in JSON
		}
		if again, err := decodeEntry(data); err != nil || again.Run != e.Run || !bytes.Equal(again.Payload, e.Payload) || !again.Last.Equal(e.Last) {
			t.Fatalf("%q comes back as %+v, %v", body, again, err)
		}
	})
}
