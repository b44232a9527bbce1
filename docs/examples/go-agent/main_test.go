package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

// serve is a core with one rule, at the socket that agents find by themselves.
func serve(t *testing.T, rules string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "go-agent")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("FERMATA_RUNTIME_DIR", filepath.Join(dir, "run"))
	must(t, os.WriteFile(filepath.Join(dir, "hooks.yaml"), []byte(rules), 0o600))
	server, err := natsd.Start(natsd.Options{StateDir: filepath.Join(dir, "state"), RuntimeDir: filepath.Join(dir, "run"), MaxStore: 1 << 30})
	must(t, err)
	t.Cleanup(server.Close)
	log, err := server.Core()
	must(t, err)
	doors, err := server.Doors()
	must(t, err)
	newID := func() events.ID { return engine.NewID(time.Now()) }
	core := events.CoreToken("example")
	j, err := journal.Open(t.Context(), log, journal.Options{Core: core, Replicas: 1, MaxBytes: 1 << 30, Now: time.Now, NewID: newID})
	must(t, err)
	eng := engine.New(engine.Options{
		Log: j, Core: core, Epoch: newID(), Owner: "uid:1", Rules: hooks.NewStore(hooks.StoreOptions{GlobalDir: dir}),
		Run: hooks.NewRunner(hooks.RunnerOptions{TempDir: dir}), Feed: func(engine.Place, string, uint64, events.Live) {},
	})
	must(t, eng.Recover(t.Context()))
	door := agents.NewDoor(agents.DoorOptions{Desk: eng, Conn: doors, Core: core, Epoch: newID(), Stopping: engine.ErrStopped})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	for _, run := range []func(context.Context) error{eng.Run, door.Run, server.Run} {
		go func() { ended <- run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range cap(ended) {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

const rule = `version: 1
hooks:
  - id: keep
    event: before_tool_call
    match: {tool_name: delete_file, args: {path: {contains: keep}}}
    execution: {mode: blocking}
    run: {type: verdict, action: block, reason: this file stays}
`

// An agent deletes what it may delete, and nothing else.
func TestB54B64B82ExampleAgent(t *testing.T) {
	serve(t, rule)
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "keep.txt"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	var out bytes.Buffer
	failed, err := run(t.Context(), dir, calls([]string{
		`list_files`, `delete_file {"path": "keep.txt"}`, `delete_file {"path": "a.txt"}`, `delete_file {"path": "../a.txt"}`,
		`delete_file 7`, `sing`, `list_files {}`,
	}, nil), &out)
	must(t, err)
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	text := out.String()
	if !failed || got[0] != "a.txt" || got[1] != "keep.txt" || got[len(got)-1] != "keep.txt" {
		t.Errorf("failed %v, it printed\n%s", failed, text)
	}
	for _, word := range []string{
		"refused (blocked): The tool call did not run.", "this file stays", "deleted a.txt", "failed: ../a.txt is not below", "there is no tool",
	} {
		if !strings.Contains(text, word) {
			t.Errorf("it did not print %q:\n%s", word, text)
		}
	}
	left, err := os.ReadDir(dir)
	if must(t, err); len(left) != 1 || left[0].Name() != "keep.txt" {
		t.Errorf("left are %v", left)
	}
}

func TestCallsOfStdin(t *testing.T) {
	stdin := strings.NewReader("x")
	if calls(nil, stdin) != stdin {
		t.Error("stdin is not read")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
