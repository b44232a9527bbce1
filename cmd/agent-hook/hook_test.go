package main

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

const payload = `{"session_id":"s","tool":{"name":"bash"}}`

var generic, _ = agents.Lookup("generic", "before_tool_call")

func name(e agents.NativeEvent) string { return string(e.Agent) + " " + e.Name }

// Every event of every agent, without a core: a gated call is denied in the
// agent's own words, an observed one is let be, silently.
func TestWithoutCore(t *testing.T) {
	waits := map[agents.NativeEvent]func() result{}
	for _, e := range agents.Table() {
		waits[e] = start(t, newHome(t).command(payload, "--timeout", "0.6", string(e.Agent), e.Name))
	}
	for e, wait := range waits {
		r := wait()
		t.Run(name(e), func(t *testing.T) {
			if e.Gated {
				checkDenied(t, e, r, "core_unreachable")
			} else if r != (result{}) {
				t.Errorf("an observed event got %+v, want silence and exit 0", r)
			}
		})
	}
}

// Every event of every agent, with every sort of answer.
func TestAnswers(t *testing.T) {
	answers := []struct {
		name, line string
		want       result
		word       string // "" when want is what is to come
	}{
		{"allow in silence", `{"exit":0,"stdout":"","stderr":""}`, result{}, ""},
		{"allow with text", `{"exit":0,"stdout":"{\"a\":\"ü\\n<b>\"}","stderr":""}`, result{Stdout: `{"a":"ü\n<b>"}`}, ""},
		{"deny", `{"exit":2,"stdout":"{}","stderr":"no\n"}`, result{2, "{}", "no\n"}, ""},
		{"deny without words", `{"exit":2,"stdout":"","stderr":""}`, result{}, "Fermata denied it"},
		{"exit 1", `{"exit":1,"stdout":"","stderr":"x"}`, result{}, "not understood"},
		{"exit 49", `{"exit":49,"stdout":"","stderr":""}`, result{}, "not understood"},
		{"negative", `{"exit":-1,"stdout":"","stderr":""}`, result{}, "not understood"},
		{"not JSON", `allow`, result{}, "not understood"},
		{"empty line", ``, result{}, "not understood"},
		{"another order", `{"stdout":"","exit":0,"stderr":""}`, result{}, "not understood"},
		{"more keys", `{"exit":0,"stdout":"","stderr":"","allow":true}`, result{}, "not understood"},
		{"cut", `{"exit":0,"stdout":"","std`, result{}, "not understood"},
	}
	for _, e := range agents.Table() {
		t.Run(name(e), func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			l := h.listen()
			for _, a := range answers {
				wait := start(t, h.command(payload, string(e.Agent), e.Name))
				k := accept(t, l)
				k.accepted()
				k.say(a.line + "\n")
				confirmed := k.receipt()
				r := wait()
				switch {
				case !e.Gated:
					want := result{}
					if a.word == "" && a.want.Exit == 0 {
						want = a.want
					}
					if r != want {
						t.Errorf("%s: an observed event got %+v, want %+v", a.name, r, want)
					}
				case a.word != "":
					if r.Exit != 2 || !strings.Contains(r.Stderr, a.word) || r.Stdout == "" {
						t.Errorf("%s: got %+v, want a deny that says %q", a.name, r, a.word)
					}
				default:
					if diff := cmp.Diff(a.want, r); diff != "" {
						t.Errorf("%s (-want +got):\n%s", a.name, diff)
					}
					if !confirmed {
						t.Errorf("%s: no receipt came before the end", a.name)
					}
				}
			}
		})
	}
}

func TestPayloadArrivesAsItWas(t *testing.T) {
	for name, stdin := range map[string]string{
		"empty": "", "object": payload, "not JSON": "{", "lines": "a\nb\r\n\x00\x1f\"\\", "not UTF-8": "\xff\xfe{\"a\":1}",
		"one bad byte": payload + "\xc0", "deceptive": "\u202e\u2028é<&>", "1 MiB": strings.Repeat("x\"", 1<<19),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			l := h.listen()
			wait := start(t, h.command(stdin, "--timeout=1500", "gemini", "BeforeTool"))
			k := accept(t, l)
			if k.call.Stdin != stdin {
				t.Errorf("%d bytes arrived, %d were sent, or they differ", len(k.call.Stdin), len(stdin))
			}
			if k.call.Agent != "gemini" || k.call.Event != "BeforeTool" || k.call.Cwd != h.dir || k.call.PPID != os.Getpid() {
				t.Errorf("the call is %+v", k.call)
			}
			if k.call.Timeout < 1400 || k.call.Timeout > 1500 {
				t.Errorf("timeout %g, want what is left of 1500", k.call.Timeout)
			}
			k.verdict(events.HookLine{})
			if r := wait(); r != (result{}) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestDefaultTimeoutIsTheAgents(t *testing.T) {
	h := newHome(t)
	l := h.listen()
	for agent, limits := range map[string][2]float64{"gemini BeforeTool": {50, 60}, "generic before_tool_call": {0, 0}} {
		wait := start(t, h.command(payload, strings.Fields(agent)...))
		k := accept(t, l)
		if k.call.Timeout < limits[0] || k.call.Timeout > limits[1] {
			t.Errorf("%s: timeout %g, want %v", agent, k.call.Timeout, limits)
		}
		k.verdict(events.HookLine{})
		wait()
	}
}

func TestTooLarge(t *testing.T) {
	h := newHome(t)
	h.listen()
	for name, stdin := range map[string]string{
		"payload": strings.Repeat("x", maxLine+1), "line": strings.Repeat("\x01", maxLine/5),
	} {
		r := h.run(stdin, "generic", "before_tool_call")
		t.Log(name)
		checkDenied(t, generic, r, "(too_large)")
	}
}

func TestUsage(t *testing.T) {
	gemini, _ := agents.Lookup("gemini", "BeforeTool")
	for args, e := range map[string]agents.NativeEvent{
		"":                                      {},
		"gemini":                                {},
		"gemini BeforeTool more":                {},
		"nobody BeforeTool":                     {},
		"gemini Unknown":                        {},
		"Gemini BeforeTool":                     {},
		"--help":                                {},
		"--timeout":                             {},
		"--timeout x gemini BeforeTool":         gemini,
		"--timeout -1 gemini BeforeTool":        gemini,
		"--timeout NaN gemini BeforeTool":       gemini,
		"--timeout=+Inf gemini BeforeTool":      gemini,
		"--timeout 1e300 gemini BeforeTool":     gemini,
		"--timeout x -q gemini BeforeTool":      {},
		"--timeout 5 opencode never_heard_of":   {},
		"--timeout nonsense generic not_at_all": {},
	} {
		r := newHome(t).run(payload, strings.Fields(args)...)
		if r.Exit != 2 || r.Stderr == "" {
			t.Errorf("%q: %+v, want exit 2 with words", args, r)
		}
		if e.Gated {
			checkDenied(t, e, r, "--timeout")
		}
	}
	if r := newHome(t).run("", "--timeout", "NaN", "gemini", "SessionEnd"); r != (result{}) {
		t.Errorf("an observed event got %+v", r)
	}
}

func TestSignalsDenyAndWithdraw(t *testing.T) {
	h := newHome(t)
	l := h.listen()
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		for _, accepted := range []bool{false, true} {
			cmd := h.command(payload, "generic", "before_tool_call")
			wait := start(t, cmd)
			k := accept(t, l)
			if accepted {
				k.accepted()
			}
			ended := insist(cmd.Process, sig)
			if k.receipt() {
				t.Errorf("%v: a receipt without a verdict", sig)
			}
			r := wait()
			close(ended)
			checkDenied(t, generic, r, "stopped by a signal")
		}
	}
	cmd := h.command(payload, "generic", "session_end")
	wait := start(t, cmd)
	accept(t, l)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if r := wait(); r != (result{}) {
		t.Errorf("an observed event got %+v", r)
	}
}

// insist sends a signal again and again until the channel it returns is
// closed: in its first milliseconds agent-hook ignores them.
func insist(p *os.Process, sig os.Signal) chan struct{} {
	ended := make(chan struct{})
	go func() {
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-ended:
				return
			case <-again.C:
				_ = p.Signal(sig)
			}
		}
	}()
	return ended
}

// A signal at any moment, minded or not yet, ends in 0 or 2.
func TestSignalsNeverEndItOtherwise(t *testing.T) {
	h := newHome(t)
	l := h.listen()
	for range 50 {
		cmd := h.command(payload, "generic", "before_tool_call")
		wait := start(t, cmd)
		k := accept(t, l)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = k.conn.Write([]byte(wire(t, events.HookLine{}))) // it may have left
		if r := wait(); r.Exit != 0 && r.Exit != 2 {
			t.Fatalf("%+v", r)
		}
	}
}

func TestSilenceEndsBeforeTheAgentsLimit(t *testing.T) {
	h := newHome(t)
	l := h.listen()
	began := time.Now()
	wait := start(t, h.command(payload, "--timeout", "1.5", "generic", "before_tool_call"))
	k := accept(t, l)
	k.accepted()
	if k.receipt() {
		t.Error("a receipt without a verdict")
	}
	checkDenied(t, generic, wait(), "within the agent's limit of 1.5 s")
	if d := time.Since(began); d > 1500*time.Millisecond {
		t.Errorf("it took %v", d)
	}
}

func TestObservedNeverHoldsTheAgentUp(t *testing.T) {
	h := newHome(t)
	h.listen() // nobody answers
	stdin, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	for name, in := range map[string]*os.File{"a silent core": nil, "stdin left open": stdin} {
		cmd := h.command("", "claude", "Stop")
		if in != nil {
			cmd.Stdin = in
		}
		began := time.Now()
		if r := start(t, cmd)(); r != (result{}) {
			t.Errorf("%s: %+v", name, r)
		}
		if d := time.Since(began); d > 1900*time.Millisecond {
			t.Errorf("%s: it took %v", name, d)
		}
	}
}

// A core that dies at any point is only a pause: the next one hears the same
// operation with the same secret.
// What a core has accepted is waited for up to the agent's limit, asked about
// once, and never a reason to hold the agent up.
func TestObservedWaitsForWhatHooksSay(t *testing.T) {
	const said = `{"extra_context":"read this"}`
	for name, c := range map[string]struct {
		limit string
		then  func(k *talk)
		want  result
		least time.Duration
		most  time.Duration
	}{
		"a reply after more than a second": {"30", func(k *talk) {
			<-time.After(1300 * time.Millisecond) // more than it has for a core that says nothing
			k.verdict(events.HookLine{Stdout: said})
		}, result{Stdout: said}, 1300 * time.Millisecond, 10 * time.Second},
		"no reply within the limit": {"2", func(*talk) {}, result{}, 1500 * time.Millisecond, 2 * time.Second},
		"a core that goes":          {"30", func(k *talk) { _ = k.conn.Close() }, result{}, 0, 5 * time.Second},
		"a deny":                    {"30", func(k *talk) { k.verdict(events.HookLine{Exit: 2, Stdout: said, Stderr: "no"}) }, result{}, 0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			l := h.listen()
			began := time.Now()
			wait := start(t, h.command(payload, "--timeout", c.limit, "generic", "after_tool_call"))
			k := accept(t, l)
			k.accepted()
			c.then(k)
			r := wait()
			if took := time.Since(began); r != c.want || took < c.least || took > c.most {
				t.Errorf("got %+v after %v, want %+v after %v to %v", r, took, c.want, c.least, c.most)
			}
			if err := l.(*net.UnixListener).SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if again, err := l.Accept(); err == nil {
				_ = again.Close()
				t.Error("it was said a second time")
			}
		})
	}
}

func TestF3KilledCore(t *testing.T) {
	for name, die := range map[string]func(*talk){
		"before a word":     func(*talk) {},
		"after accepting":   (*talk).accepted,
		"inside its answer": func(k *talk) { k.accepted(); k.say(`{"exit":0,"stdo`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			first := h.listen()
			wait := start(t, h.command(payload, "generic", "before_tool_call"))
			k := accept(t, first)
			die(k)
			_ = first.Close()
			_ = k.conn.Close()
			again := accept(t, h.listen())
			if again.call.Operation != k.call.Operation || again.call.Secret != k.call.Secret || again.call.Stdin != payload {
				t.Errorf("first %+v, then %+v", k.call, again.call)
			}
			again.accepted()
			again.verdict(events.HookLine{Stdout: "{}"})
			if !again.receipt() {
				t.Error("no receipt")
			}
			if r := wait(); r != (result{Stdout: "{}"}) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestParentGoneWithdraws(t *testing.T) {
	h := newHome(t)
	l := h.listen()
	shell := exec.Command("/bin/sh", "-c", built+`/agent-hook generic before_tool_call </dev/null >out 2>err & read wait`)
	shell.Env, shell.Dir = h.env, h.dir
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	k := accept(t, l)
	k.accepted()
	_ = in.Close()
	_ = shell.Wait()
	if k.receipt() {
		t.Error("a receipt without a verdict")
	}
}

// What the agent does not read must not become an allow of something else.
func TestClosedStdout(t *testing.T) {
	h := newHome(t)
	l := h.listen()
	for _, c := range []struct {
		line events.HookLine
		exit int
	}{{events.HookLine{Stdout: "changed"}, 2}, {events.HookLine{}, 0}, {events.HookLine{Exit: 2, Stdout: "{}", Stderr: "no"}, 2}} {
		out, broken, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = out.Close()
		cmd := h.command(payload, "generic", "before_tool_call")
		cmd.Stdout = broken
		wait := start(t, cmd)
		k := accept(t, l)
		k.verdict(c.line)
		if r := wait(); r.Exit != c.exit {
			t.Errorf("%+v: exit %d, want %d", c.line, r.Exit, c.exit)
		}
		_ = broken.Close()
	}
}

func TestFirstContactTakesThreeSeconds(t *testing.T) {
	began := time.Now()
	r := newHome(t).run(payload, "generic", "before_tool_call")
	checkDenied(t, generic, r, "FERMATA_AUTOSTART=0")
	if d := time.Since(began); d < 3*time.Second || d > 6*time.Second {
		t.Errorf("it took %v", d)
	}
}

// Somebody else's runtime directory, or one that is open, is no place to ask.
func TestRuntimeDirectoryMustBePrivate(t *testing.T) {
	h := newHome(t)
	if err := os.Mkdir(h.runtime(), 0o755); err != nil {
		t.Fatal(err)
	}
	checkDenied(t, generic, h.run(payload, "generic", "before_tool_call"), "chmod 700")
	h = newHome(t)
	if err := os.Symlink(t.TempDir(), h.runtime()); err != nil {
		t.Fatal(err)
	}
	checkDenied(t, generic, h.run(payload, "generic", "before_tool_call"), "not a link")
	h = newHome(t)
	h.env = append(h.env, "FERMATA_RUNTIME_DIR=/tmp/"+strings.Repeat("x", 100))
	checkDenied(t, generic, h.run(payload, "generic", "before_tool_call"), "FERMATA_RUNTIME_DIR")
}
