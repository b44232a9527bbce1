package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestF5ALogThatIsGoneIsMissed(t *testing.T) {
	state := t.TempDir()
	if err := (cli{}).logIsThere(state); err != nil {
		t.Fatalf("a first start: %v", err)
	}
	if err := os.Mkdir(filepath.Join(state, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := begun(state); err != nil {
			t.Fatal(err)
		}
	}
	if err := (cli{}).logIsThere(state); err != nil {
		t.Fatalf("the log is there: %v", err)
	}
	if err := os.Remove(filepath.Join(state, "log")); err != nil {
		t.Fatal(err)
	}
	if err := (cli{}).logIsThere(state); err == nil || !strings.Contains(err.Error(), "the log is gone") {
		t.Fatalf("the log is gone: %v", err)
	}
}

func TestKeyIsWholeOrRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "core")
	first, err := cli{}.secret(path)
	if err != nil || len(first) != 32 {
		t.Fatal(len(first), err)
	}
	if again, err := (cli{}).secret(path); err != nil || !bytes.Equal(first, again) {
		t.Fatal("another key", err)
	}
	if _, err := os.Stat(path + ".new"); err == nil {
		t.Error("the temporary file is left")
	}
	if err := os.Truncate(path, 7); err != nil {
		t.Fatal(err)
	}
	if _, err := (cli{}).secret(path); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Fatal(err)
	}
}
