package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// generic is the gated event of agents without an adapter of their own.
var generic, _ = agents.Lookup("generic", "before_tool_call")

// wantDenied checks the one form that every no on a gated event has: exit 2,
// words on stderr, and the agent's own deny with them on stdout.
func wantDenied(t *testing.T, e agents.NativeEvent, r result, codes ...events.Code) {
	t.Helper()
	words := strings.TrimSuffix(r.Stderr, "\n")
	if r.Exit != 2 || words == "" || !json.Valid([]byte(r.Stdout)) {
		t.Errorf("got %.600v, want exit 2, words, and a native deny", r)
		return
	}
	if !slices.ContainsFunc(codes, func(c events.Code) bool { return r.Stdout == e.DenyText(c, words) }) {
		t.Errorf("stdout %.300q is not the native deny with one of %v and the words of stderr %.300q", r.Stdout, codes, r.Stderr)
	}
}

// wantSilence checks what an observed event always gets.
func wantSilence(t *testing.T, r result) {
	t.Helper()
	if r != (result{}) {
		t.Errorf("an observed event got %.600v, want exit 0 and silence", r)
	}
}

// TestFailClosed goes through the ways in which a gated call can go wrong with
// a real core: each is a deny with words, and on an observed event nothing at
// all. What agent-hook does by itself is tested beside it.
func TestFailClosed(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"payloads that no adapter reads":         unreadablePayloads,
		"a core that was killed before the call": deadCore,
		"a core that goes while somebody waits":  coreGoesWhileWaiting,
		"a core that says nothing":               silentCore,
		"a core that cannot start":               brokenStart,
		"signals to agent-hook":                  signalledHook,
		"B35 B37 hooks that fail":                failingHooks,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// every runs agent-hook for every event of every agent and checks how it ended.
func (h *home) every(t *testing.T, stdin string, codes []events.Code, flags ...string) {
	t.Helper()
	for batch := range slices.Chunk(agents.Table(), 8) {
		var running []*process
		for _, e := range batch {
			running = append(running, h.start(stdin, "agent-hook", append(flags, string(e.Agent), e.Name)...))
		}
		for i, e := range batch {
			r := running[i].wait()
			if t.Failed() {
				t.Logf("%s %s with %.40q", e.Agent, e.Name, stdin)
			}
			if e.Gated {
				wantDenied(t, e, r, codes...)
			} else {
				wantSilence(t, r)
			}
		}
	}
}

func unreadablePayloads(t *testing.T) {
	h := newHome(t, askAboutWrites)
	core := h.startCore()
	unread := []events.Code{events.CodeNoCanonicalForm, events.CodeNeedsNewerCore}
	for _, stdin := range []string{"", "{", "\xff\xfe{}", `{"tool":{}}`} {
		h.every(t, stdin, unread)
	}
	whole := payload("s", "write", `{"path":"a"}`)
	for name, stdin := range map[string]string{
		"list": "[]", "null": "null", "text": `"x"`, "byte order mark": "\ufeff" + whole, "cut": whole[:len(whole)-1],
		"two": whole + whole, "unknown key": `{"x":1,` + whole[1:], "same key twice": `{"session_id":"t",` + whole[1:],
		"deep": strings.Repeat("[", 1<<20), "arguments with a key twice": payload("s", "write", `{"a":1,"a":2}`),
		"half a surrogate": payload("s", "write", `{"a":"\ud800"}`), "bad UTF-8 in arguments": payload("s", "write", "{\"a\":\"\xc0\"}"),
		"deep arguments":  payload("s", "write", `{"a":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`),
		"no directory":    strings.Replace(whole, `"cwd":"/"`, `"cwd":"here"`, 1),
		"unknown kind":    strings.Replace(whole, "filesystem.write", "filesystem", 1),
		"another's words": `{"hook_event_name":"BeforeTool","session_id":"s","tool_name":"write_file","tool_input":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			wantDenied(t, generic, h.run(stdin, "agent-hook", "generic", "before_tool_call"), events.CodeNoCanonicalForm)
		})
	}
	h.termCore(core)
	if n := len(facts[events.OperationCommitted](h.evidence(t))); n != 0 {
		t.Errorf("%d of them were committed", n)
	}
}

// deadCore: the sockets of a killed core are still there.
func deadCore(t *testing.T) {
	h := newHome(t, askAboutWrites)
	h.startCore()
	h.killCore()
	h.every(t, payload("s", "write", "{}"), []events.Code{events.CodeCoreUnreachable}, "--timeout", "0.6")
}

// waiting is a call about which somebody is being asked.
func (h *home) waiting(t *testing.T, flags ...string) *process {
	t.Helper()
	before, err := h.status()
	if err != nil {
		t.Fatal(err)
	}
	p := h.start(payload("s", "write", `{"path":"a"}`), "agent-hook", append(flags, "generic", "before_tool_call")...)
	must(t, "open question", func() error {
		if now, err := h.status(); err == nil && now.Open > before.Open {
			return nil
		}
		return still(p)
	})
	return p
}

func coreGoesWhileWaiting(t *testing.T) {
	h := newHome(t, askAboutWrites)
	for name, c := range map[string]struct {
		end  func(*process)
		code events.Code
	}{
		"SIGKILL":   {func(core *process) { h.killCore() }, events.CodeCoreUnreachable},
		"SIGTERM":   {h.termCore, events.CodeCoreUnreachable},
		"core stop": {func(*process) { h.stopCore() }, events.CodeEnded},
	} {
		core := h.startCore()
		h.viewer(t)
		began := time.Now()
		call := h.waiting(t, "--timeout", "6")
		c.end(core)
		wantDenied(t, generic, call.wait(), c.code)
		if took := time.Since(began); took > 7*time.Second { // a busy machine may take a while to see the end
			t.Errorf("%s: the agent waited %v, longer than its limit", name, took)
		}
	}
	core := h.startCore()
	h.termCore(core)
	e := h.evidence(t)
	e.checkSpans(t)
	if n := len(facts[events.OperationCommitted](e)); n != 0 {
		t.Errorf("%d of the calls were committed", n)
	}
}

func silentCore(t *testing.T) {
	h := newHome(t, askAboutWrites)
	core := h.startCore()
	h.viewer(t)
	call := h.waiting(t, "--timeout", "5")
	began := time.Now()
	freeze(t, core)
	defer core.signal(syscall.SIGCONT)
	late := h.start(payload("s", "write", "{}"), "agent-hook", "--timeout", "1", "generic", "before_tool_call")
	observed := h.start("{}", "agent-hook", "generic", "session_end")
	wantSilence(t, observed.wait())
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("an observed event held its agent up for %v", took)
	}
	wantDenied(t, generic, late.wait(), events.CodeCoreUnreachable)
	wantDenied(t, generic, call.wait(), events.CodeCoreUnreachable)
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("the agent waited %v, longer than its limit", took)
	}
}

// brokenStart: agent-hook may start a core, and what it starts ends at once.
func brokenStart(t *testing.T) {
	for name, spoil := range map[string]func(*home){
		"configuration": func(h *home) { h.write("config.yaml", "mode: whatever\n") },
		"state": func(h *home) {
			if err := os.WriteFile(h.dirs.State, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, askAboutWrites)
			h.setenv("FERMATA_AUTOSTART", "1")
			spoil(h)
			gated := h.start(payload("s", "write", "{}"), "agent-hook", "generic", "before_tool_call")
			observed := h.start("{}", "agent-hook", "claude", "Stop")
			wantSilence(t, observed.wait())
			wantDenied(t, generic, gated.wait(), events.CodeCoreUnreachable)
		})
	}
}

func signalledHook(t *testing.T) {
	h := newHome(t, askAboutWrites)
	core := h.startCore()
	h.viewer(t)
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
	for _, s := range signals {
		call := h.waiting(t)
		call.signal(s)
		wantDenied(t, generic, call.wait(), events.CodeEnded)
		must(t, "withdrawal", func() error {
			if now, err := h.status(); err != nil || now.Open > 0 {
				return still(core)
			}
			return nil
		})
	}
	h.termCore(core)
	e := h.evidence(t)
	e.checkSpans(t)
	for id, ends := range e.endings() {
		if want := (ending{events.ResultWithdrawn, events.EndAgentGone}); len(ends) != 1 || ends[0] != want {
			t.Errorf("question %s ended %v, want %v", id, ends, want)
		}
	}
}

// failingHooks: a hook that does not give a good verdict is no yes, whatever
// else it does.
func failingHooks(t *testing.T) {
	hooks := map[string]struct {
		run  string // YAML of run
		code events.Code
	}{
		"exit-1":        {`{type: shell, shell: "exit 1"}`, events.CodeHookFailed},
		"exit-3":        {`{type: shell, shell: "exit 3"}`, events.CodeHookFailed},
		"ask-and-fail":  {`{type: shell, shell: "echo '{\"action\":\"ask\"}' >$FERMATA_HOOK_RESULT; exit 1"}`, events.CodeHookFailed},
		"killed":        {`{type: shell, shell: "kill -9 $$"}`, events.CodeHookFailed},
		"no-program":    {`{type: command, argv: [/no/such/program]}`, events.CodeHookMissing},
		"no-script":     {`{type: script, path: absent.sh}`, events.CodeHookMissing},
		"too-long":      {`{type: shell, shell: "sleep 9"}`, events.CodeHookTimedOut},
		"no-json":       {`{type: shell, shell: "echo yes >$FERMATA_HOOK_RESULT"}`, events.CodeHookBadVerdict},
		"unknown":       {`{type: shell, shell: "echo '{\"action\":\"permit\"}' >$FERMATA_HOOK_RESULT"}`, events.CodeHookBadVerdict},
		"wrong-type":    {`{type: shell, shell: "echo '{\"action\":true}' >$FERMATA_HOOK_RESULT"}`, events.CodeHookBadVerdict},
		"almost-action": {`{type: shell, shell: "echo '{\"Action\":\"allow\"}' >$FERMATA_HOOK_RESULT"}`, events.CodeHookBadVerdict},
	}
	rules := "version: 1\nhooks:\n"
	for name, h := range hooks {
		rules += fmt.Sprintf("  - {id: %s, event: before_tool_call, match: {tool_name: %s}, execution: {mode: blocking, timeout_seconds: 1}, run: %s}\n", name, name, h.run)
	}
	h := newHome(t, rules)
	core := h.startCore()
	h.viewer(t)
	for name, hook := range hooks {
		t.Run(name, func(t *testing.T) {
			r := h.run(payload("s", name, `{"path":"a"}`), "agent-hook", "generic", "before_tool_call")
			wantDenied(t, generic, r, hook.code)
			if !strings.Contains(r.Stderr, `"`+name+`"`) || !strings.Contains(r.Stderr, h.dirs.Config+"/hooks.yaml") {
				t.Errorf("stderr %q does not say which hook of which file", r.Stderr)
			}
		})
	}
	h.termCore(core)
	e := h.evidence(t)
	if a, q := len(facts[events.OperationCommitted](e)), len(facts[events.Request](e)); a != 0 || q != 0 {
		t.Errorf("%d committed, %d questions, want none", a, q)
	}
}
