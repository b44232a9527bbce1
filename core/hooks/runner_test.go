package hooks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// room is a place to run hooks in: a directory for scripts, one for the runs'
// files, and a working directory.
type room struct {
	t              *testing.T
	home, tmp, cwd string
	environ        []string
}

func newRoom(t *testing.T) *room {
	r := &room{t: t, home: t.TempDir(), tmp: t.TempDir(), cwd: t.TempDir(), environ: os.Environ()}
	t.Cleanup(func() {
		if left, err := os.ReadDir(r.tmp); err != nil || len(left) > 0 {
			t.Errorf("files of a run are left: %v %v", left, err)
		}
	})
	return r
}

func (r *room) write(name, text string, mode os.FileMode) string {
	path := filepath.Join(r.home, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// hook is the only hook of a file with these lines in place of run and
// execution.
func (r *room) hook(lines ...string) Hook {
	r.t.Helper()
	text := one(append([]string{"id: guard", "event: before_tool_call"}, lines...)...)
	set, err := newSet(filepath.Join(r.home, "hooks.yaml"), r.home, []byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	return set.Hook(0)
}

// shell is a blocking hook that runs a shell text.
func (r *room) shell(text string, execution ...string) Hook {
	r.t.Helper()
	return r.hook("run: {type: shell, shell: "+strconv.Quote(text)+"}",
		"execution: {"+strings.Join(append([]string{"mode: blocking"}, execution...), ", ")+"}")
}

func (r *room) input() Input {
	return Input{
		Cwd: r.cwd,
		Env: []string{"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		Payload: Payload{
			Event: events.BeforeToolCall, Timestamp: time.Date(2026, 5, 14, 15, 0, 0, 250_000_000, time.FixedZone("", 3600)),
			SessionID: "s-1", Profile: "Code", Cwd: r.cwd, Tool: events.Tool{Name: "Bash", Kind: "shell", CallID: "c1"},
			Args:    []byte(`{"command":"echo <a> & b\u2028","n":1.0}`),
			Attempt: 1, ConfirmationAvailable: true, OperationID: "01hzzzzzzzzzzzzzzzzzzzzzzz",
		},
	}
}

func (r *room) run(h Hook) Result {
	r.t.Helper()
	return r.runWith(r.t.Context(), h)
}

func (r *room) runWith(ctx context.Context, h Hook) Result {
	return NewRunner(RunnerOptions{TempDir: r.tmp, Environ: r.environ})(ctx, h, r.input())
}

// refused fails the test unless the run refused with the code, and its reason
// names hook, file and cause.
func refused(t *testing.T, r Result, code events.Code, cause string) {
	t.Helper()
	if r.Effect != events.EffectBlock || r.Code != code || r.FailedOpen || r.Override != nil {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{`hook "guard"`, "global file ", "hooks.yaml", cause} {
		if !strings.Contains(r.Reason, want) {
			t.Errorf("reason %q does not say %q", r.Reason, want)
		}
	}
}

const writeAsk = `printf '{"action":"ask","reason":"look"}' >"$FERMATA_HOOK_RESULT"; `

func TestHAND04FailureIsNotConsent(t *testing.T) {
	for _, tc := range []struct {
		name    string
		hook    func(r *room) Hook
		code    events.Code
		outcome events.RunOutcome
		exit    int
		cause   string
	}{
		{"exit 1", func(r *room) Hook { return r.shell("echo why >&2; exit 1") }, events.CodeHookFailed, events.RunFailed, 1, "exit status 1: why"},
		{"exit 3", func(r *room) Hook { return r.shell("exit 3") }, events.CodeHookFailed, events.RunFailed, 3, "exit status 3"},
		{"exit 127", func(r *room) Hook { return r.shell("no-such-program-here") }, events.CodeHookMissing, events.RunMissing, 127, "exit status 127"},
		{"script absent", func(r *room) Hook {
			return r.hook("run: {type: script, path: none.sh}", "execution: {mode: blocking}")
		}, events.CodeHookMissing, events.RunMissing, 0, "none.sh is not there"},
		{"script is a directory", func(r *room) Hook {
			return r.hook("run: {type: script, path: .}", "execution: {mode: blocking}")
		}, events.CodeHookMissing, events.RunMissing, 0, "is not a file"},
		{"runtime absent", func(r *room) Hook {
			r.write("a.rb", "exit 0", 0o600)
			r.environ = []string{"PATH=" + r.home}
			return r.hook("run: {type: script, path: a.rb}", "execution: {mode: blocking}")
		}, events.CodeHookMissing, events.RunMissing, 0, "no ruby was found in PATH"},
		{"interpreter of an executable absent", func(r *room) Hook {
			r.write("tool", "#!/no/such/interpreter\n", 0o700)
			return r.hook("run: {type: script, path: tool}", "execution: {mode: blocking}")
		}, events.CodeHookMissing, events.RunMissing, 0, "could not be started: the interpreter /no/such/interpreter that the first line of "},
		{"Windows line ends", func(r *room) Hook {
			r.write("tool", "#!/bin/sh\r\ntrue\r\n", 0o700)
			return r.hook("run: {type: script, path: tool}", "execution: {mode: blocking}")
		}, events.CodeHookMissing, events.RunMissing, 0, "could not be started: the first line of "},
		{"Windows line ends and env", func(r *room) Hook {
			r.write("tool", "#!/usr/bin/env sh\r\ntrue\r\n", 0o700)
			return r.hook("run: {type: script, path: tool}", "execution: {mode: blocking}")
		}, events.CodeHookMissing, events.RunMissing, 127, "ends with a carriage return"},
		{"a script that nobody may run", func(r *room) Hook {
			r.write("tool", "#!/bin/sh\n", 0o600)
			return r.hook("run: {type: script, path: tool}", "execution: {mode: blocking}")
		}, events.CodeHookMissing, events.RunMissing, 0, "tool is not executable; run chmod +x on it"},
		{"verdict on stdout", func(r *room) Hook { return r.shell(`echo '{"action":"block"}'`) }, events.CodeHookBadVerdict, events.RunBadVerdict, 0, "it wrote its verdict to stdout"},
		{"verdict on stdout where one is required", func(r *room) Hook {
			return r.shell(`echo '{"action":"ask"}'`, "require_result: true")
		}, events.CodeHookBadVerdict, events.RunBadVerdict, 0, "it wrote its verdict to stdout"},
		{"long verdict on stdout", func(r *room) Hook {
			return r.shell(`printf '{"action":"block","reason":"%0200000d"}' 0`)
		}, events.CodeHookBadVerdict, events.RunBadVerdict, 0, "it wrote its verdict to stdout"},
		{"program absent", func(r *room) Hook {
			return r.hook("run: {type: command, argv: [no-such-program-here]}", "execution: {mode: blocking}")
		}, events.CodeHookMissing, events.RunMissing, 0, "no-such-program-here was not found in PATH"},
		{"program absent at its path", func(r *room) Hook {
			return r.hook("run: {type: command, argv: [/no/such/program]}", "execution: {mode: blocking}")
		}, events.CodeHookMissing, events.RunMissing, 0, "/no/such/program is not there"},
		{"not a program", func(r *room) Hook {
			r.write("tool", "\x00\x01 neither script nor binary", 0o700)
			return r.hook("run: {type: script, path: tool}", "execution: {mode: blocking}")
		}, events.CodeHookFailed, events.RunFailed, 0, "could not be started"},
		{"working directory absent", func(r *room) Hook {
			return r.hook("run: {type: shell, shell: 'true', cwd: /no/such/place}", "execution: {mode: blocking}")
		}, events.CodeHookFailed, events.RunFailed, 0, "working directory /no/such/place"},
		{"kills itself", func(r *room) Hook { return r.shell("kill -KILL $$") }, events.CodeHookFailed, events.RunFailed, 137, "signal 9"},
		{"too slow", func(r *room) Hook { return r.shell("sleep 9", "timeout_seconds: 0.2") }, events.CodeHookTimedOut, events.RunTimedOut, 143, "did not end within 200ms"},
		{"B35 an ask before exit 1", func(r *room) Hook { return r.shell(writeAsk + "exit 1") }, events.CodeHookFailed, events.RunFailed, 1, "exit status 1"},
		{"B35 an ask before the limit", func(r *room) Hook { return r.shell(writeAsk+"sleep 9", "timeout_seconds: 0.2") }, events.CodeHookTimedOut, events.RunTimedOut, 143, "did not end"},
		{"no result where one is required", func(r *room) Hook { return r.shell("true", "require_result: true") }, events.CodeHookBadVerdict, events.RunBadVerdict, 0, "gave no result"},
		{"result file removed where one is required", func(r *room) Hook {
			return r.shell(`rm "$CHRYS_HOOK_RESULT"`, "require_result: true")
		}, events.CodeHookBadVerdict, events.RunBadVerdict, 0, "gave no result"},
		{"result file made a pipe", func(r *room) Hook {
			return r.shell(`rm "$CHRYS_HOOK_RESULT"; mkfifo "$CHRYS_HOOK_RESULT"`)
		}, events.CodeHookBadVerdict, events.RunBadVerdict, 0, "not a plain file"},
		{"result file made a link to nothing", func(r *room) Hook {
			return r.shell(`ln -sf /no/such/file "$CHRYS_HOOK_RESULT"`)
		}, events.CodeHookBadVerdict, events.RunBadVerdict, 0, "not readable"},
		{"bad verdict", func(r *room) Hook { return r.shell(`echo allow >"$CHRYS_HOOK_RESULT"`) }, events.CodeHookBadVerdict, events.RunBadVerdict, 0, "byte 0"},
		{"too large a verdict", func(r *room) Hook {
			return r.shell(`head -c 1048577 /dev/zero >"$CHRYS_HOOK_RESULT"`)
		}, events.CodeHookBadVerdict, events.RunBadVerdict, 0, "larger than 1 MiB"},
		{"regex that does not compile", func(r *room) Hook {
			return r.hook("run: {type: verdict, action: allow}", "execution: {mode: blocking}", "match: {args: {command: {regex: '('}}}")
		}, events.CodeHookFailed, events.RunFailed, 0, "match.args.command.regex: not a regex"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRoom(t)
			h := tc.hook(r)
			got := r.run(h)
			refused(t, got, tc.code, tc.cause)
			if got.Outcome != tc.outcome || got.Exit != tc.exit {
				t.Errorf("outcome %s, exit %d", got.Outcome, got.Exit)
			}
			for _, on := range []OnError{OnErrorWarn, OnErrorIgnore} {
				h.OnError = on
				if got := r.run(h); got.Effect != events.EffectError || !got.FailedOpen || got.Code != "" || got.Outcome != tc.outcome {
					t.Errorf("on_error %s: %+v", on, got)
				}
			}
		})
	}
}

// Under load some may come over their limit; none of them may let a call on
// without having said so, or take another's verdict.
func TestHAND04EightAtOnce(t *testing.T) {
	r := newRoom(t)
	results := make([]Result, 8)
	var group sync.WaitGroup
	for i := range results {
		text := fmt.Sprintf(`sleep 1.9; printf '{"action":"ask","reason":"%d"}' >"$CHRYS_HOOK_RESULT"`, i)
		h := r.shell(text, "timeout_seconds: 2")
		group.Go(func() { results[i] = r.run(h) })
	}
	group.Wait()
	for i, got := range results {
		asked := got.Effect == events.EffectAsk && got.Reason == strconv.Itoa(i) && got.Outcome == events.RunOK
		late := got.Effect == events.EffectBlock && got.Code == events.CodeHookTimedOut
		if !asked && !late {
			t.Errorf("%d: %+v", i, got)
		}
		if got.Duration > 4*time.Second {
			t.Errorf("%d took %s", i, got.Duration)
		}
	}
}

func TestRunVerdicts(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		execution  []string
		effect     events.Effect
		reason     string
	}{
		{name: "exit 0 and nothing written", text: "true", effect: events.EffectAllow},
		{name: "output is no decision", text: `echo 'action: block'`, effect: events.EffectAllow},
		{name: "B23 ask", text: writeAsk, effect: events.EffectAsk, reason: "look"},
		{name: "the other name of the file", text: `printf '{"action":"block","reason":"no"}' >"$CHRYS_HOOK_RESULT"`, effect: events.EffectBlock, reason: "no"},
		{name: "a file put in its place", text: `cd "${CHRYS_HOOK_RESULT%/*}"; printf '{"action":"ask"}' >new; mv new "$CHRYS_HOOK_RESULT"`, effect: events.EffectAsk},
		{name: "a result that is required", text: `printf '{"action":"allow"}' >"$CHRYS_HOOK_RESULT"`, execution: []string{"require_result: true"}, effect: events.EffectAllow},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRoom(t)
			got := r.run(r.shell(tc.text, tc.execution...))
			if got.Effect != tc.effect || got.Reason != tc.reason || got.Outcome != events.RunOK || got.Exit != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestB38AskWithNewArguments(t *testing.T) {
	r := newRoom(t)
	got := r.run(r.shell(`printf '{"action":"ask","args_override":{"command":"ls"}}' >"$CHRYS_HOOK_RESULT"`))
	if got.Effect != events.EffectAsk || string(got.Override) != `{"command":"ls"}` {
		t.Errorf("%+v", got)
	}
}

func TestF14VerdictWithoutAProcess(t *testing.T) {
	r := newRoom(t)
	r.tmp = "/no/such/place" // nothing may be written
	for action, effect := range map[string]events.Effect{
		"allow": events.EffectAllow, "block": events.EffectBlock, "ask": events.EffectAsk,
	} {
		h := r.hook("run: {type: verdict, action: "+action+", reason: because}", "execution: {mode: blocking}")
		got := r.run(h)
		if got.Effect != effect || got.Outcome != events.RunOK || (got.Code == events.CodeBlocked) != (action == "block") {
			t.Errorf("%s: %+v", action, got)
		}
		if action != "allow" && got.Reason != "because" {
			t.Errorf("%s: reason %q", action, got.Reason)
		}
	}
	r.tmp = t.TempDir()
}

func TestResultFromStdout(t *testing.T) {
	r := newRoom(t)
	from := func(text string) Hook {
		return r.hook("run: {type: shell, shell: "+strconv.Quote(text)+", result_from: stdout}", "execution: {mode: blocking}")
	}
	if got := r.run(from(`echo '{"action":"ask","reason":"look"}'; echo talk >&2`)); got.Effect != events.EffectAsk || got.Stderr != "talk\n" {
		t.Errorf("%+v", got)
	}
	if got := r.run(from("true")); got.Effect != events.EffectAllow {
		t.Errorf("nothing written: %+v", got)
	}
	refused(t, r.run(from("echo checking")), events.CodeHookBadVerdict, "byte 0")
	refused(t, r.run(from("head -c 2000000 /dev/zero")), events.CodeHookBadVerdict, "larger than 1 MiB")
	long := from(`printf '{"action":"block","reason":"'; head -c 400000 /dev/zero | tr '\0' x; printf '"}'`)
	if got := r.run(long); got.Code != events.CodeBlocked || len(got.Reason) != 400_000 || len(got.Stdout) > 300_000 {
		t.Errorf("a long verdict: %s, %d, %d", got.Code, len(got.Reason), len(got.Stdout))
	}
}

func TestPayloadReachesTheScript(t *testing.T) {
	r := newRoom(t)
	r.environ = append(r.environ, "NATS_CREDS=secret", "FERMATA_KEY=secret", "CHRYS_HOOK_OLD=secret", "LONG="+strings.Repeat("x", maxArgument),
		"ALLOWED_TOOLS=Bash", "PYTHONUTF8=0")
	r.write("check.sh", `
cat "$FERMATA_HOOK_PAYLOAD_FILE" >"$OUT/file"
cat >"$OUT/stdin"
env >"$OUT/env"
pwd -P >"$OUT/cwd"
ls -ld "${FERMATA_HOOK_RESULT%/*}" "$FERMATA_HOOK_PAYLOAD_FILE" "$FERMATA_HOOK_RESULT" | cut -c1-10 >"$OUT/modes"
printf '%s\n' "$@" >"$OUT/args"
`, 0o600)
	out := t.TempDir()
	h := r.hook("run: {type: script, path: check.sh, args: [--strict, 'a b'],",
		"  env: {OUT: "+out+", WHERE: '${session_id} ${profile} ${workspace_cwd} ${fermata_home} ${chrys_home} ${HOME}', TRACEPARENT: mine}, cwd: '${fermata_home}'}",
		"execution: {mode: blocking}")
	got := r.run(h)
	if got.Effect != events.EffectAllow {
		t.Fatalf("%+v", got)
	}
	script, err := os.ReadFile(filepath.Join(r.home, "check.sh"))
	if err != nil || got.Script != events.DigestOf(script) {
		t.Error("the digest is of the script:", got.Script, err)
	}
	text := func(name string) string {
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if text("file") != string(r.input().Payload.Encode()) || text("stdin") != text("file") {
		t.Errorf("file %s\nstdin %s", text("file"), text("stdin"))
	}
	env := "\n" + text("env")
	for _, want := range []string{
		"FERMATA_HOOK_ID=guard", "CHRYS_HOOK_ID=guard", "FERMATA_HOOK_EVENT=before_tool_call", "CHRYS_HOOK_EVENT=before_tool_call",
		"FERMATA_HOOK_PAYLOAD_FILE=" + r.tmp, "CHRYS_HOOK_PAYLOAD_FILE=" + r.tmp, "FERMATA_HOOK_RESULT=" + r.tmp, "CHRYS_HOOK_RESULT=" + r.tmp,
		"PYTHONUTF8=1", "PYTHONIOENCODING=utf-8", "TRACEPARENT=mine\n", "ALLOWED_TOOLS=Bash",
		"WHERE=s-1 Code " + r.cwd + " " + r.home + " " + r.home + " ${HOME}\n",
	} {
		if !strings.Contains(env, "\n"+want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	for _, not := range []string{"secret", "LONG=", "PYTHONUTF8=0"} {
		if strings.Contains(env, not) {
			t.Errorf("the environment has %s", not)
		}
	}
	if got := text("modes"); got != "drwx------\n-rw-------\n-rw-------\n" {
		t.Errorf("modes:\n%s", got)
	}
	if home, err := filepath.EvalSymlinks(r.home); err != nil || text("cwd") != home+"\n" {
		t.Error("cwd:", text("cwd"), err)
	}
	if text("args") != "--strict\na b\n" {
		t.Error("args:", text("args"))
	}
}

// fakeRuntime puts a program in the room's PATH that says how it was called.
func (r *room) fakeRuntime(name string) {
	r.write(name, "#!/bin/sh\necho "+name+` "$@"`+"\n", 0o700)
}

func TestRuntimes(t *testing.T) {
	for _, tc := range []struct{ script, runtimes, want string }{
		{"a.py", "uv python3", "uv run --no-project --python HOME/python3 SCRIPT x"},
		{"a.py", "uv", "uv run --no-project SCRIPT x"},
		{"a.py", "python3 python", "python3 SCRIPT x"},
		{"a.py", "python", "python SCRIPT x"},
		{"a.sh", "bash sh", "bash SCRIPT x"},
		{"a.bash", "sh", "sh SCRIPT x"},
		{"a.zsh", "bash", "bash SCRIPT x"},
		{"a.js", "node", "node SCRIPT x"},
		{"a.mjs", "node", "node SCRIPT x"},
		{"a.ts", "npx", "npx --prefix HOME tsx SCRIPT x"},
		{"a.rb", "ruby", "ruby SCRIPT x"},
		{"a.pl", "perl", "perl SCRIPT x"},
		{"a.ps1", "pwsh", "pwsh -File SCRIPT x"},
		{"a.ps1", "powershell", "powershell -File SCRIPT x"},
		{"icode/a", "python3", "python3 SCRIPT x"},
		{"icode/a.txt", "python3", "python3 SCRIPT x"},
	} {
		t.Run(tc.script+" with "+tc.runtimes, func(t *testing.T) {
			r := newRoom(t)
			for name := range strings.FieldsSeq(tc.runtimes) {
				r.fakeRuntime(name)
			}
			r.environ = []string{"PATH=" + r.home}
			name, icode := strings.CutPrefix(tc.script, "icode/")
			script := r.write(name, "", 0o600)
			h := r.hook("run: {type: script, path: "+name+", args: [x]}", "execution: {mode: blocking}")
			h.icode = icode
			got := r.run(h)
			if want := strings.NewReplacer("SCRIPT", script, "HOME", r.home).Replace(tc.want) + "\n"; got.Stdout != want || got.Effect != events.EffectAllow {
				t.Errorf("%q, want %q: %+v", got.Stdout, want, got)
			}
		})
	}
}

func TestExecutableRunsAsItIs(t *testing.T) {
	r := newRoom(t)
	r.write("tool.guard", "#!/bin/sh\n"+writeAsk, 0o700)
	if got := r.run(r.hook("run: {type: script, path: tool.guard}", "execution: {mode: blocking}")); got.Effect != events.EffectAsk {
		t.Errorf("%+v", got)
	}
}

func TestShellIsTheUsers(t *testing.T) {
	r := newRoom(t)
	r.fakeRuntime("mysh")
	r.environ = []string{"SHELL=" + filepath.Join(r.home, "mysh")}
	if got := r.run(r.shell("a  b")); got.Stdout != "mysh -c a  b\n" {
		t.Errorf("%+v", got)
	}
	r.environ = []string{"PATH=/usr/bin:/bin"}
	if got := r.run(r.shell("echo $0")); got.Stdout != "/bin/sh\n" {
		t.Errorf("%+v", got)
	}
}

// The working directory is the agent's ground: a program there must not be
// found through a relative or empty entry of PATH.
func TestRelativePathEntriesAreNotSearched(t *testing.T) {
	r := newRoom(t)
	if err := os.WriteFile(filepath.Join(r.cwd, "guard-tool"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.environ = []string{"PATH=:.:bin:" + r.home}
	got := r.run(r.hook("run: {type: command, argv: [guard-tool]}", "execution: {mode: blocking}"))
	refused(t, got, events.CodeHookMissing, "not found in PATH")
}

func TestRunRepeatsAMatchThatPlanCouldNotDecide(t *testing.T) {
	r := newRoom(t)
	slow := r.hook("run: {type: shell, shell: 'true'}", "execution: {mode: blocking}", "match: {args: {command: {regex: '(a+)+b'}}}")
	in := r.input()
	in.Payload.Args = []byte(`{"command":"` + strings.Repeat("a", 64) + `c"}`)
	run := NewRunner(RunnerOptions{TempDir: r.tmp, Environ: r.environ})
	refused(t, run(t.Context(), slow, in), events.CodeHookFailed, "took longer than")
	in.Payload.Args = []byte(`{"command":"ls"}`)
	if got := run(t.Context(), slow, in); got.Effect != events.EffectAllow || got.Outcome != events.RunOK {
		t.Errorf("%+v", got)
	}
}

func TestTempDirAbsent(t *testing.T) {
	r := newRoom(t)
	h := r.shell("true")
	r.tmp = "/no/such/place"
	refused(t, r.run(h), events.CodeHookFailed, "its files could not be written")
	r.tmp = t.TempDir()
}

// A later start of a delivery is told what the first one was told, and its
// filters and templates see the same.
func TestStoredPayloadIsTheInput(t *testing.T) {
	r := newRoom(t)
	first := r.input().Payload
	first.SessionID = "stored"
	in := Input{Cwd: r.cwd, Raw: first.Encode()}
	run := NewRunner(RunnerOptions{TempDir: r.tmp, Environ: r.environ})
	h := r.hook("run: {type: shell, shell: 'cat; printf %s \"$WHO\"', env: {WHO: '${session_id} ${profile} ${workspace_cwd}'}}",
		"execution: {mode: async}", "match: {args: {command: {regex: 'ech[o]'}}}")
	if got := run(t.Context(), h, in); got.Stdout != string(in.Raw)+"stored Code "+r.cwd {
		t.Errorf("%q %+v", got.Stdout, got.Reason)
	}
	in.Raw = []byte("{")
	if got := run(t.Context(), h, in); got.Outcome != events.RunFailed || !strings.Contains(got.Reason, "stored payload") {
		t.Errorf("%+v", got)
	}
}

// Nobody is asked on behalf of a run that nothing waits for, and its script is
// told so.
func TestB27ConfirmationIsAvailableOnlyToBlockingHooks(t *testing.T) {
	r := newRoom(t)
	for mode, want := range map[Mode]string{Blocking: "true", Async: "false", FireAndForget: "false"} {
		h := r.shell("cat")
		h.Mode = mode
		if got := r.run(h); !strings.Contains(got.Stdout, `"confirmation_available":`+want) {
			t.Errorf("%s: %s", mode, got.Stdout)
		}
	}
}

func TestTextsForTheModel(t *testing.T) {
	r := newRoom(t)
	const both = `printf '{"action":"allow","system_reminder":"remember","extra_context":"see"}' >"$CHRYS_HOOK_RESULT"; `
	for _, tc := range []struct {
		event             events.HookEvent
		text              string
		reminder, context string
	}{
		{events.UserPromptSubmit, both, "remember", ""},
		{events.AfterToolCall, both, "", "see"},
		{events.ToolError, both, "", "see"},
		{events.BeforeToolCall, both, "", ""},
		{events.SessionEnd, both, "", ""},
		{events.UserPromptSubmit, both + "exit 1", "", ""},
		{events.AfterToolCall, both + "exit 1", "", ""},
		{events.ToolError, both + "kill -KILL $$", "", ""},
	} {
		h := r.shell(tc.text)
		h.Event = tc.event
		if got := r.run(h); got.Reminder != tc.reminder || got.Context != tc.context {
			t.Errorf("%s %s: %+v", tc.event, tc.text, got)
		}
	}
	failing := r.shell(both+"exit 1", "on_error: block")
	failing.Event = events.AfterToolCall
	if got := r.run(failing); got.Effect != events.EffectError || got.Code != "" || got.FailedOpen {
		t.Errorf("what has happened is not refused: %+v", got)
	}
}
