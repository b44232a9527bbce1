package tracing

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fill projects a log into a file, from where the file needs it.
func fill(path string, records []Record) error {
	sink, err := OpenFile(path, options(nil).StoreID)
	if err != nil {
		return err
	}
	p, err := New(options(sink))
	if err != nil {
		return err
	}
	return errors.Join(p.Run(context.Background(), from(records, sink.Start())), sink.Close())
}

// TestFileAfterAnyCut: whatever part of its end a file has lost, with its
// cursor or without, projecting on makes it whole.
func TestFileAfterAnyCut(t *testing.T) {
	records := syntheticLog(11, 60)
	want := lines(t, records)
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	if err := fill(path, records[:len(records)/2]); err != nil {
		t.Fatal(err)
	}
	file, cursor := contents(t, path), contents(t, path+".cursor")
	rapid.Check(t, func(t *rapid.T) {
		if err := errors.Join(os.WriteFile(path, file, 0o600), os.WriteFile(path+".cursor", cursor, 0o600)); err != nil {
			t.Fatal(err)
		}
		size := rapid.Int64Range(0, int64(len(file))).Draw(t, "size")
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		damage(t, path, rapid.SampledFrom([]string{"nothing", "no cursor", "torn cursor", "garbage behind"}).Draw(t, "damage"))
		if err := fill(path, records); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d", len(got), len(want))
		}
	})
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func damage(t *rapid.T, path, what string) {
	var err error
	switch what {
	case "no cursor":
		err = os.Remove(path + ".cursor")
	case "torn cursor":
		err = os.Truncate(path+".cursor", 20)
	case "garbage behind":
		var b []byte
		if b, err = os.ReadFile(path); err == nil {
			if i := bytes.LastIndexByte(b, '\n'); i > 0 { // else it would be a foreign file
				err = os.WriteFile(path, append(b[:i+1], "\x00\x00\x00\n\x00\x00"...), 0o600)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFileGoesOnWhereItWas: with a cursor, the log is not read from its
// beginning, and the file is not touched again when there is nothing new.
func TestFileGoesOnWhereItWas(t *testing.T) {
	records := syntheticLog(12, 300)
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	if err := fill(path, records); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	sink, err := OpenFile(path, options(nil).StoreID)
	if err != nil {
		t.Fatal(err)
	}
	last := project(t, records)[len(project(t, records))-1].Seq()
	if sink.Done() != last || sink.Start() != last+1 {
		t.Errorf("done %d, start %d, the last span ended at %d", sink.Done(), sink.Start(), last)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fill(path, records); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file changed without news")
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestCursorInDoubtIsNotUsed(t *testing.T) {
	records := syntheticLog(13, 100)
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	if err := fill(path, records); err != nil {
		t.Fatal(err)
	}
	store := options(nil).StoreID
	for name, cursor := range map[string]string{
		"ahead of the file": `{"fold":"1","store":"` + store + `","low":5,"done":999999}`,
		"low behind done":   `{"fold":"1","store":"` + store + `","low":999999,"done":5}`,
		"another store":     `{"fold":"1","store":"other","low":5,"done":5}`,
		"another fold":      `{"fold":"2","store":"` + store + `","low":5,"done":5}`,
		"empty":             ``,
		"zeros":             "\x00\x00\x00",
	} {
		if err := os.WriteFile(path+".cursor", []byte(cursor), 0o600); err != nil {
			t.Fatal(err)
		}
		sink, err := OpenFile(path, store)
		if err != nil {
			t.Fatal(err)
		}
		if sink.Start() != 1 {
			t.Errorf("%s: starts at %d", name, sink.Start())
		}
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFileRefusesWhatIsNotItsOwn(t *testing.T) {
	own := lines(t, syntheticLog(14, 3))
	for name, content := range map[string]string{
		"a text":               "my notes\n",
		"a text without lines": "my notes",
		"another store":        strings.ReplaceAll(string(own), options(nil).StoreID, "another"),
		"spans of others":      `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000001","spanId":"0000000000000001"}]}]}]}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "traces.jsonl")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenFile(path, options(nil).StoreID); err == nil || !strings.Contains(err.Error(), "move it away") {
				t.Errorf("error %v", err)
			}
			if after, _ := os.ReadFile(path); string(after) != content {
				t.Error("the file was changed")
			}
		})
	}
}

func TestFileHasOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	first, err := OpenFile(path, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path, "s"); err == nil {
		t.Error("a second writer got the file")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := OpenFile(path, "s")
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

func TestFileSinkStaysFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	sink, err := OpenFile(path, options(nil).StoreID)
	if err != nil {
		t.Fatal(err)
	}
	sink.file.Close() // as if the disk had gone
	p, err := New(options(sink))
	if err != nil {
		t.Fatal(err)
	}
	records := syntheticLog(15, 20)
	for range 2 {
		if err := p.Run(t.Context(), from(records, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("error %v", err)
		}
	}
	if sink.Done() != 0 {
		t.Errorf("done %d", sink.Done())
	}
}

// TestFileSyncsLongBatches: a batch larger than what is written at once, in a
// file longer than what is read when it is opened.
func TestFileSyncsLongBatches(t *testing.T) {
	records := syntheticLog(16, 600)
	p, err := New(options(nil))
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for e, err := range p.Project(from(records, 1)) {
		if err != nil {
			t.Fatal(err)
		}
		b.Ended, b.Low = append(b.Ended, e), e.Low
	}
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	sink, err := OpenFile(path, options(nil).StoreID)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing new
		if err := sink.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	want := lines(t, records)
	if got, _ := os.ReadFile(path); len(want) < tailSize || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, want %d, more than %d", len(got), len(want), tailSize)
	}
	again, err := OpenFile(path, options(nil).StoreID)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if last := b.Ended[len(b.Ended)-1].Seq; again.Done() != last {
		t.Errorf("opened again: done %d, want %d", again.Done(), last)
	}
}
