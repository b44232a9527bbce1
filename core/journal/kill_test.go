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
)

// appendForever is the child that gets killed. It writes eight chains of entries
// and says "<subject> <sequence>" of each one only after its acknowledgement.
func appendForever(dir string) error {
	s, err := natsd.Start(natsd.Options{StateDir: dir + "/state", RuntimeDir: dir + "/run"})
	if err != nil {
		return err
	}
	nc, err := s.Core()
	if err != nil {
		return err
	}
	ctx := context.Background()
	j, err := journal.Open(ctx, nc, options())
	if err != nil {
		return err
	}
	var mu sync.Mutex
	failed := make(chan error)
	for range 8 {
		go func() {
			for s, last := subject(), uint64(0); ; {
				seq, err := j.Append(ctx, entry(s, last))
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
	dir := t.TempDir()
	acked := map[uint64]string{}
	for range 3 { // each child goes on with what the one before left
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "FERMATA_TEST_APPENDER="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
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
	}
	s, err := natsd.Start(natsd.Options{StateDir: dir + "/state", RuntimeDir: dir + "/run"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	nc, err := s.Core()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	j, err := journal.Open(t.Context(), nc, options())
	if err != nil {
		t.Fatal(err)
	}
	stored, err := collect(j.Scan(t.Context(), 0))
	if err != nil {
		t.Fatal(err)
	}
	for seq, subject := range acked {
		if uint64(len(stored)) < seq || stored[seq-1].Subject != subject {
			t.Fatalf("entry %s of %s was acknowledged and is lost", strconv.FormatUint(seq, 10), subject)
		}
	}
	if len(acked) < 3000 {
		t.Errorf("only %d acknowledgements", len(acked))
	}
}
