package tracing

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// childDir is the environment variable that turns the test binary into a
// projector over <dir>/log which writes <dir>/traces.jsonl. It reads one
// message for each byte that it gets, and answers each with a byte.
const childDir = "FERMATA_TRACING_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(dir string) error {
	f, err := os.Open(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	var records []Record
	if err := gob.NewDecoder(bufio.NewReader(f)).Decode(&records); err != nil {
		return err
	}
	sink, err := OpenFile(filepath.Join(dir, "traces.jsonl"), options(nil).StoreID)
	if err != nil {
		return err
	}
	p, err := New(options(sink))
	if err != nil {
		return err
	}
	p.pause = time.Millisecond // many writes to be killed in, and pauses too
	paced := func(yield func(Record, error) bool) {
		var token [1]byte
		for r, err := range from(records, sink.Start()) {
			if err != nil {
				yield(Record{}, err)
				return
			}
			if _, err := io.ReadFull(os.Stdin, token[:]); err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(r, nil) {
				return
			}
			if _, err := os.Stdout.Write(token[:]); err != nil {
				yield(Record{}, err)
				return
			}
		}
	}
	if err := p.Run(context.Background(), paced); err != nil {
		return err
	}
	return sink.Close()
}

// runChild lets the projector read n messages and kills it there, in the midst
// of whatever it does; n 0 lets it end.
func runChild(t *testing.T, dir string, n int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	in, out := pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		go func() {
			defer in.Close()
			for {
				if _, err := in.Write(make([]byte, 1024)); err != nil {
					return // it has ended
				}
			}
		}()
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, err := in.Write(make([]byte, n+3)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, n)); err != nil {
		t.Fatalf("the projector read fewer than %d messages: %v", n, err)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the projector ended before it was killed")
	}
}

func pipes(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, out
}

// TestF3OneSpanAcrossKills kills the projector 50 times with SIGKILL. The file
// must become what an undisturbed projection writes, and no span may stand in
// it twice.
func TestF3OneSpanAcrossKills(t *testing.T) {
	records := syntheticLog(3, 2000)
	want := lines(t, records)
	dir := t.TempDir()
	var log bytes.Buffer
	if err := gob.NewEncoder(&log).Encode(records); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "log"), log.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "traces.jsonl")
	rng := rand.New(rand.NewPCG(50, 1))
	advanced, before := 0, int64(0)
	for range 50 {
		runChild(t, dir, 1+rng.IntN(800))
		if info, err := os.Stat(path); err == nil && info.Size() > before {
			advanced, before = advanced+1, info.Size()
		}
	}
	if advanced < 10 || before >= int64(len(want)) {
		t.Errorf("%d of 50 killed runs wrote something, %d of %d bytes; the kills test too little", advanced, before, len(want))
	}
	runChild(t, dir, 0)

	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("after 50 kills the file has %d bytes and differs from the %d of an undisturbed run", len(got), len(want))
	}
	report := verify(t, records, ReadFile(path))
	if report.Copies != report.Spans || len(report.Findings) > 0 {
		t.Errorf("%d copies of %d spans, findings %v", report.Copies, report.Spans, report.Findings)
	}
	t.Logf("%d messages, %d questions, %d spans, %d of 50 killed runs wrote something", len(records), report.Questions, report.Spans, advanced)
}
