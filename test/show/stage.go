package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// The rules of the stage: those of the person, and those of one project.
var (
	//go:embed testdata/hooks.yaml
	personsRules string
	//go:embed testdata/project.yaml
	projectsRules string
	//go:embed testdata/add-region.sh
	addRegion string
	//go:embed testdata/notify-team.sh
	notifyTeam string
)

// stage is a home of its own with a real core, agents that ask it through the
// real agent-hook, and an editor in which somebody else sits.
type stage struct {
	programs string // where the built programs are
	dir      string
	core     *exec.Cmd
	log      bytes.Buffer // what the core said
	editor   *frontends.Client
	leave    func() // ends the editor
	calls    []*exec.Cmd
}

// call is one call of an agent.
type call struct {
	id, agent, project string
	tool, kind         string
	args               map[string]string
	path               string // of a sub-agent, "" for the agent itself
}

// build makes the programs that are shown.
func build(ctx context.Context, dir string) error {
	packages := make([]string, 0, 3)
	for _, name := range []string{"core", "agent-hook", "tui-frontend"} {
		packages = append(packages, "github.com/fermata-hitl/fermata/cmd/"+name)
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", dir + "/"}, packages...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return nil
}

// openStage starts the core and the editor; nobody has asked anything yet.
func openStage(ctx context.Context, programs string) (_ *stage, err error) {
	s := &stage{programs: programs, leave: func() {}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.furnish(); err != nil {
		return nil, err
	}
	if out, err := s.command(ctx, "core", "hooks", "trust", "--yes", "--dir", s.project("myproj")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("trust the project's hooks: %w\n%s", err, out)
	}
	s.core = s.command(context.WithoutCancel(ctx), "core", "serve", "--mode", "process")
	s.core.Stderr = &s.log
	if err := s.core.Start(); err != nil {
		return nil, err
	}
	return s, s.openEditor(ctx)
}

// furnish makes the stage's directory and its files. The directory's name has
// the same length in each run, so that what shows it is as wide, and is short
// because of the sockets in it.
func (s *stage) furnish() error {
	for s.dir == "" {
		dir := fmt.Sprintf("/tmp/fs%06d", rand.IntN(1_000_000))
		switch err := os.Mkdir(dir, 0o700); {
		case err == nil:
			s.dir = dir
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	for file, text := range map[string]string{
		"config/hooks.yaml": personsRules, "config/add-region.sh": addRegion, "config/notify-team.sh": notifyTeam,
		"src/myproj/.fermata/hooks.yaml": projectsRules, "src/web-shop/README.md": "",
	} {
		file = filepath.Join(s.dir, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) project(name string) string { return filepath.Join(s.dir, "src", name) }

// command is one of the built programs, in an environment that is the same on
// every machine.
func (s *stage) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs, program), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{
		"HOME=" + s.dir, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "TZ=UTC", "FERMATA_AUTOSTART=0",
		"FERMATA_CONFIG_DIR=" + s.dir + "/config", "FERMATA_STATE_DIR=" + s.dir + "/state", "FERMATA_RUNTIME_DIR=" + s.dir + "/run",
	}
	return cmd
}

// openEditor attaches the other frontend, which can be asked, and returns when
// the core knows it.
func (s *stage) openEditor(ctx context.Context) (err error) {
	s.editor, err = frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.dir+"/run/nats.sock")
		},
		ID: engine.NewID(time.Now()), Kind: events.FrontendACP, Capable: true, Name: "the editor",
	})
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); _ = s.editor.Run(run) }()
	s.leave = func() { cancel(); <-done }
	return s.inbox(ctx, "attachment of the editor", func(b *frontends.Inbox) bool { return b.Complete() })
}

// inbox waits until the editor's inbox is as it should be.
func (s *stage) inbox(ctx context.Context, what string, look func(*frontends.Inbox) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, err := range s.editor.Updates(ctx) {
		if look(s.editor.Inbox()) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w: the core said: %s", what, err, s.log.String())
		}
	}
	return fmt.Errorf("%s: %w", what, ctx.Err())
}

// stdin is what the agent writes to agent-hook.
func (s *stage) stdin(c call, more map[string]any) []byte {
	payload := map[string]any{
		"session_id": c.agent + " in " + c.project, "agent": c.agent, "cwd": s.project(c.project), "turn_id": c.id,
		"tool": map[string]any{"name": c.tool, "kind": c.kind, "call_id": c.id, "args": c.args},
	}
	if c.path != "" {
		payload["path"] = c.path
	}
	maps.Copy(payload, more)
	b, _ := json.Marshal(payload) // strings always encode
	return b
}

// start makes a call, and does not wait for it.
func (s *stage) start(ctx context.Context, c call) (*exec.Cmd, error) {
	hook := s.command(ctx, "agent-hook", "generic", "before_tool_call")
	hook.Stdin = bytes.NewReader(s.stdin(c, nil))
	s.calls = append(s.calls, hook)
	return hook, hook.Start()
}

// ask makes a call and returns when its question is open.
func (s *stage) ask(ctx context.Context, c call) (q events.Question, err error) {
	if _, err = s.start(ctx, c); err != nil {
		return q, err
	}
	err = s.inbox(ctx, "question about "+c.id, func(b *frontends.Inbox) bool {
		i := slices.IndexFunc(b.Questions(), func(q events.Question) bool { return q.Tool.CallID == c.id })
		if i >= 0 {
			q = b.Questions()[i]
		}
		return i >= 0
	})
	return q, err
}

// settle makes a call, has the person in the editor answer it if there is an
// answer, and reports that the tool ran if it may.
func (s *stage) settle(ctx context.Context, c call, answer events.Answer, text string) error {
	var hook *exec.Cmd
	if answer != "" {
		q, err := s.ask(ctx, c)
		if err != nil {
			return err
		}
		_, err = s.editor.Answer(ctx, events.Respond{Question: q.ID, Digest: q.Version.Digest, Answer: answer, Text: text, Human: true})
		if err != nil {
			return err
		}
		hook = s.calls[len(s.calls)-1]
	} else {
		var err error
		if hook, err = s.start(ctx, c); err != nil {
			return err
		}
	}
	var refused *exec.ExitError
	switch err := hook.Wait(); {
	case errors.As(err, &refused) && refused.ExitCode() == 2:
		return nil
	case err != nil:
		return fmt.Errorf("agent-hook about %s: %w", c.id, err)
	}
	done := s.command(ctx, "agent-hook", "generic", "after_tool_call")
	done.Stdin = bytes.NewReader(s.stdin(c, map[string]any{"result": map[string]any{"duration_ms": 1200}}))
	return done.Run()
}

// history is what happened before the screen was opened.
func (s *stage) history(ctx context.Context) error {
	for _, one := range []struct {
		call   call
		answer events.Answer
		text   string
	}{
		{call{id: "h1", agent: "claude", project: "myproj", tool: "Edit", kind: "filesystem.write", args: map[string]string{"path": "main.go"}}, "", ""},
		{call{id: "h2", agent: "codex", project: "web-shop", tool: "list_files", kind: "shell", args: map[string]string{"command": "ls"}}, "", ""},
		{call{id: "h3", agent: "gemini", project: "web-shop", tool: "web_fetch", kind: "web_fetch", args: map[string]string{"url": "https://example.org/docs"}}, events.AnswerCancel, "use the mirror"},
		{call{id: "h4", agent: "claude", project: "myproj", tool: "Bash", kind: "shell", args: map[string]string{"command": "go test ./..."}}, events.AnswerContinue, ""},
	} {
		if err := s.settle(ctx, one.call, one.answer, one.text); err != nil {
			return err
		}
	}
	return nil
}

// questions are those that wait when the screen is opened, the oldest first.
func (s *stage) questions(ctx context.Context) (open []events.Question, err error) {
	remove := call{agent: "codex", project: "web-shop", tool: "shell", kind: "shell", args: map[string]string{"command": "rm -r build", "cwd": "packages/shop"}}
	first, second := remove, remove
	first.id, second.id = "q4", "q5"
	for _, c := range []call{
		{id: "q1", agent: "claude", project: "myproj", tool: "Bash", kind: "shell", args: map[string]string{"command": "git push --force origin main"}},
		{id: "q2", agent: "gemini", project: "web-shop", tool: "replace", kind: "filesystem.write", args: map[string]string{
			"file_path": "src/pay.ts", "old_string": roundedBefore, "new_string": roundedAfter,
		}},
		{id: "q3", agent: "claude", project: "myproj", tool: "run_script", kind: "shell", args: map[string]string{"command": longScript(), "description": "List files"}, path: "main > reviewer#1"},
		first, second,
		{id: "q6", agent: "claude", project: "myproj", tool: "Bash", kind: "shell", args: map[string]string{"command": "terraform apply"}},
	} {
		q, err := s.ask(ctx, c)
		if err != nil {
			return open, err
		}
		open = append(open, q)
	}
	return open, nil
}

// The two sides of an edit.
const (
	roundedBefore = `export function total(items: Item[]): number {
  let sum = 0;
  for (const item of items) {
    sum += item.price * item.count;
  }
  return Math.round(sum);
}
`
	roundedAfter = `export function total(items: Item[]): number {
  const cents = items.reduce(
    (sum, item) => sum + Math.round(item.price * 100) * item.count, 0);
  return cents / 100;
}
`
)

// longScript is 80,000 characters whose end matters.
func longScript() string {
	var b strings.Builder
	b.WriteString("set -e\n")
	const end = ";touch M"
	for n := 1; ; n++ {
		line := fmt.Sprintf("echo step %d of the long way to the end\n", n)
		if b.Len()+len(line) > 80_000-len(end) {
			break
		}
		b.WriteString(line)
	}
	b.WriteString(strings.Repeat("#", 80_000-len(end)-b.Len()) + end)
	return b.String()
}

// close ends everything that the stage began, and removes it.
func (s *stage) close() {
	s.leave()
	if s.core != nil && s.core.Process != nil {
		_ = s.core.Process.Signal(syscall.SIGTERM)
		_ = s.core.Wait()
	}
	for _, hook := range s.calls {
		if hook.Process != nil && hook.ProcessState == nil {
			_ = hook.Process.Kill()
			_ = hook.Wait()
		}
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
