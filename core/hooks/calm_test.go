package hooks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// Whoever writes a file in parts must not be caught with half of the rules: any
// prefix that ends between two hooks is a good file.
func TestB37HalfWrittenRulesNeverHold(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hooks.yaml")
	var b strings.Builder
	b.WriteString("version: 1\nhooks:\n")
	for i := range 40 {
		fmt.Fprintf(&b, "  - {id: h%d, event: before_tool_call, execution: {mode: blocking}, run: {type: verdict, action: block, reason: no}}\n", i)
	}
	text := b.String()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store := hooks.NewStore(hooks.StoreOptions{GlobalDir: dir})
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- rewrite(file, text, stop) }()
	sub := hooks.Subject{Event: events.BeforeToolCall, Agent: "generic", Cwd: dir, Tool: events.Tool{Name: "x", Kind: "other"}, Args: []byte("{}")}
	for until := time.Now().Add(1500 * time.Millisecond); time.Now().Before(until); {
		set, err := store.For(dir)
		if err == nil && len(set.Plan(sub)) != 40 {
			t.Fatalf("%d of 40 rules hold", len(set.Plan(sub)))
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if set, err := store.For(dir); err != nil || len(set.Hooks) != 40 {
		t.Fatalf("after the writer: %v", err)
	}
}

// rewrite writes the same text again and again in two parts.
func rewrite(file, text string, stop chan struct{}) error {
	half := strings.LastIndex(text[:len(text)/2], "\n") + 1
	pause := time.NewTicker(3 * time.Millisecond)
	defer pause.Stop()
	for {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		_, _ = f.WriteString(text[:half])
		<-pause.C
		_, _ = f.WriteString(text[half:])
		if err := f.Close(); err != nil {
			return err
		}
		for range 50 {
			select {
			case <-stop:
				return nil
			case <-pause.C:
			}
		}
	}
}

func TestB37LinkToNothingIsNoAbsence(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dir, "hooks.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.NewStore(hooks.StoreOptions{GlobalDir: dir}).For(dir); err == nil || !strings.Contains(err.Error(), "link to nothing") {
		t.Fatal(err)
	}
}

func TestB37RulesThatEverybodyCanWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hooks.yaml")
	if err := os.WriteFile(file, []byte("version: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.NewStore(hooks.StoreOptions{GlobalDir: dir}).For(dir); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Fatal(err)
	}
}
