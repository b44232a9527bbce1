package journal_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

// appendForever is the child that gets killed. It writes chains of entries that
// hold what they expected, and says "<subject> <sequence>" of each one only after
// its acknowledgement. On a log that syncs, chains are so many that they share
// batches.
func appendForever(dir string, syncAlways bool) error {
	s, err := natsd.Start(natsd.Options{StateDir: dir + "/state", RuntimeDir: dir + "/run", SyncAlways: syncAlways})
	if err != nil {
		return err
	}
	nc, err := s.Core()
	if err != nil {
		return err
	}
	ctx := context.Background()
	o, chains := options(), 8
	if syncAlways {
		o.SyncAlways, chains = true, 100
	}
	j, err := journal.Open(ctx, nc, o)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	failed := make(chan error)
	for range chains {
		go func() {
			for s, last := subject(), uint64(0); ; {
				e := entry(s, last)
				e.Data = strconv.AppendUint(nil, last, 10)
				seq, err := j.Append(ctx, e)
				if err != nil {
					failed <- err
					return
				}
				last = seq
				mu.Lock()
				fmt.Println(s, seq)
				mu.Unlock()
			}
		}()
	}
	return <-failed
}

func TestF3KillLosesNoAcknowledgedEntry(t *testing.T) {
	t.Run("alone", func(t *testing.T) { testKill(t, false) })
	t.Run("in batches", func(t *testing.T) { testKill(t, true) })
}

func testKill(t *testing.T, syncAlways bool) {
	dir := t.TempDir()
	acked := map[uint64]string{}
	for range 5 { // each child goes on with what the one before left
		killOne(t, dir, syncAlways, acked)
	}
	l := open(t, dir+"/state", options())
	last := map[string]uint64{events.GenesisSubject: 0}
	for r, err := range l.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := acked[r.Seq]; ok && want != r.Subject {
			t.Fatalf("%d was acknowledged to %s and is %s", r.Seq, want, r.Subject)
		}
		delete(acked, r.Seq)
		if r.Subject != events.GenesisSubject && string(r.Data) != strconv.FormatUint(last[r.Subject], 10) {
			t.Fatalf("%d of %s stands behind %d and expected %s", r.Seq, r.Subject, last[r.Subject], r.Data)
		}
		last[r.Subject] = r.Seq
	}
	if len(acked) > 0 {
		t.Fatalf("%d acknowledged entries are lost: %v", len(acked), acked)
	}
	if n := inBatch(l, 500); syncAlways && n < 250 || !syncAlways && n > 0 {
		t.Errorf("%d of 500 messages were written in batches", n)
	}
}

// killOne starts a child and kills it at work. It notes what was acknowledged.
func killOne(t *testing.T, dir string, syncAlways bool, acked map[uint64]string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FERMATA_TEST_APPENDER="+dir)
	if syncAlways {
		cmd.Env = append(cmd.Env, "FERMATA_TEST_SYNC=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	n := 0
	for ; lines.Scan(); n++ {
		var subject string
		var seq uint64
		if _, err := fmt.Sscan(lines.Text(), &subject, &seq); err != nil {
			break // cut off in the middle by the kill
		}
		if before, ok := acked[seq]; ok {
			t.Fatalf("%d was acknowledged to %s and to %s", seq, before, subject)
		}
		acked[seq] = subject
		if n == 1000 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v", err)
	}
	if n < 1000 {
		t.Errorf("only %d acknowledgements", n)
	}
}

// inBatch counts, among the first n messages, those that were written in a batch.
func inBatch(l *log, n uint64) (count int) {
	l.Helper()
	s := stream(l)
	for seq := uint64(1); seq <= n; seq++ {
		m, err := s.GetMsg(l.ctx, seq)
		if err != nil {
			l.Fatal(err)
		}
		if m.Header.Get("Nats-Batch-Id") != "" {
			count++
		}
	}
	return count
}
