package agents_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/agents/gemini"
	"github.com/fermata-hitl/fermata/core/agents/generic"
	"github.com/fermata-hitl/fermata/events"
)

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

var errStopping = errors.New("stopping")

// desk remembers what it was told, in order, and gives the verdict that the
// test puts into verdicts.
type desk struct {
	agents.Desk // what an asker never needs
	mu          sync.Mutex
	told        []string
	proposed    []core.Proposal
	refuse      error
	verdicts    chan core.Verdict
	fail        error
	held        time.Duration // how long telling the last verdict took
	observed    []core.Observation
	hooks       func() (core.Heard, error) // what hooks say to an observation
}

func (d *desk) say(format string, a ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, fmt.Sprintf(format, a...))
}

func (d *desk) heard() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.told...)
}

func (d *desk) Propose(_ context.Context, p core.Proposal) error {
	d.say("propose")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proposed = append(d.proposed, p)
	return d.refuse
}

func (d *desk) Notify(_ events.ID, _ string, tell func(core.Verdict, error)) func() bool {
	if d.fail != nil {
		tell(core.Verdict{}, d.fail)
		return func() bool { return false }
	}
	left := make(chan struct{})
	told := make(chan bool, 1)
	go func() {
		select {
		case v := <-d.verdicts:
			began := time.Now()
			tell(v, nil)
			d.held = time.Since(began)
			told <- true
		case <-left:
			told <- false
		}
	}()
	return func() bool { close(left); return !<-told }
}

func (d *desk) Receipt(context.Context, events.ID, string, events.ID) error {
	d.say("receipt")
	return nil
}

func (d *desk) Observe(_ context.Context, o core.Observation) (core.Heard, error) {
	d.say("observe %s", o.Signal)
	d.mu.Lock()
	d.observed = append(d.observed, o)
	d.mu.Unlock()
	if d.hooks == nil {
		return core.Heard{}, nil
	}
	return d.hooks()
}

func (d *desk) Gone(_ events.ID, _ string, r events.EndReason) { d.say("gone %s", r) }

// broken is an adapter with a fault.
type broken struct{}

func (broken) Translate(events.HookCall) (core.Proposal, error) { panic("broken") }

func (broken) Reply(events.HookCall, core.Verdict) events.HookLine { panic("broken") }

func (broken) Observe(events.HookCall) (core.Observation, error) { panic("broken") }

func (broken) Heard(events.HookCall, core.Heard) events.HookLine { panic("broken") }

// house is a socket that runs, and its desk.
type house struct {
	t    *testing.T
	l    *pipes
	desk *desk
	stop func()
}

func open(t *testing.T, o agents.SocketOptions) *house {
	t.Helper()
	h := &house{t: t, l: &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}, desk: &desk{verdicts: make(chan core.Verdict, 1)}}
	o.Listener, o.Desk, o.Stopping = h.l, h.desk, errStopping
	o.Adapters = map[events.Agent]agents.Adapter{"generic": generic.Adapter{}, "gemini": gemini.Adapter{}, "qwen": broken{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agents.NewSocket(o).Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return h
}

// client is agent-hook's side.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (h *house) dial() *client {
	h.t.Helper()
	mine, theirs := net.Pipe()
	h.l.conns <- theirs
	return &client{h.t, mine, bufio.NewReader(mine)}
}

func (c *client) send(s string) { _, _ = c.conn.Write([]byte(s)) }

func (c *client) line() (events.HookLine, error) {
	c.t.Helper()
	b, err := c.in.ReadBytes('\n')
	if err != nil {
		return events.HookLine{}, err
	}
	var l events.HookLine
	if err := json.Unmarshal(b, &l); err != nil {
		c.t.Fatalf("%q: %v", b, err)
	}
	return l, nil
}

func (c *client) expect(want events.HookLine) {
	c.t.Helper()
	got, err := c.line()
	if err != nil {
		c.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Fatalf("(-want +got):\n%s", diff)
	}
}

func (c *client) denied(word string) {
	c.t.Helper()
	l, err := c.line()
	if err != nil {
		c.t.Fatal(err)
	}
	if l.Accepted || l.Exit != 2 || !strings.Contains(l.Stderr, word) {
		c.t.Errorf("got %+v, want a deny that says %q", l, word)
	}
}

func (c *client) ended() {
	c.t.Helper()
	if l, err := c.line(); !errors.Is(err, io.EOF) {
		c.t.Errorf("got %+v, %v; want the end of the connection", l, err)
	}
}

const (
	op     = events.ID("01jq0000000000000000000000")
	secret = "0123456789abcdef"
	stdin  = `{"session_id":"s","agent":"generic","cwd":"/w","tool":{"name":"bash","kind":"shell","args":{"command":"ls"}}}`
)

func call(agent, event, in string) string {
	b, _ := json.Marshal(events.HookCall{V: 1, Operation: op, Secret: secret, Agent: agent, Event: event, Stdin: in, PID: 1, PPID: 2, Cwd: "/here"})
	return string(b) + "\n"
}

var receipt = fmt.Sprintf("{\"receipt\":%q}\n", op)

func bubble(t *testing.T, o agents.SocketOptions, f func(h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, o)
		defer h.stop()
		h.t = t
		f(h)
	})
}

func (h *house) told(want ...string) {
	h.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, h.desk.heard()); diff != "" {
		h.t.Errorf("the desk heard (-want +got):\n%s", diff)
	}
}

func TestCallIsProposedAnsweredAndConfirmed(t *testing.T) {
	bubble(t, agents.SocketOptions{}, func(h *house) {
		c := h.dial()
		c.send(call("generic", "before_tool_call", stdin))
		c.expect(events.HookLine{Accepted: true})
		<-time.After(20 * time.Hour) // a person thinks; this is the bubble's clock
		h.desk.verdicts <- core.Verdict{Operation: op, Allow: true, Code: events.CodeChecked, Args: []byte(`{"command":"ls"}`)}
		c.expect(events.HookLine{Stdout: `{"decision":"allow","code":"checked","operation":"01jq0000000000000000000000","args":{"command":"ls"}}`})
		c.send(receipt)
		c.ended()
		h.told("propose", "receipt", "gone agent_gone")
	})
}

// TestF2PaneReachesTheDesk: what agent-hook says of its pane goes on unread.
func TestF2PaneReachesTheDesk(t *testing.T) {
	const pane = "tmux:%3:/tmp/tmux-1000/default"
	in := func(line string) string { return strings.Replace(line, `{"v":1,`, `{"v":1,"pane":"`+pane+`",`, 1) }
	bubble(t, agents.SocketOptions{}, func(h *house) {
		c := h.dial()
		c.send(in(call("generic", "before_tool_call", stdin)))
		c.expect(events.HookLine{Accepted: true})
		o := h.dial()
		o.send(in(call("generic", "before_turn", `{"session_id":"s","agent":"generic","cwd":"/w"}`)))
		o.expect(events.HookLine{})
		h.desk.mu.Lock()
		defer h.desk.mu.Unlock()
		if got := h.desk.proposed[0].Pane; got != pane {
			t.Errorf("proposed %q", got)
		}
		if got := h.desk.observed[0].Pane; got != pane {
			t.Errorf("observed %q", got)
		}
	})
}

func TestDenyIsConfirmedToo(t *testing.T) {
	bubble(t, agents.SocketOptions{}, func(h *house) {
		c := h.dial()
		c.send(call("generic", "before_tool_call", stdin))
		c.expect(events.HookLine{Accepted: true})
		h.desk.verdicts <- core.Verdict{Code: events.CodeDeclined, Message: "no <b>"}
		c.expect(events.HookLine{Exit: 2, Stdout: `{"decision":"deny","code":"declined","reason":"no <b>"}`, Stderr: "no <b>\n"})
		c.send(receipt)
		c.ended()
		h.told("propose", "receipt", "gone agent_gone")
	})
}

// The asker is lost when its connection ends before a receipt, wherever it
// stands.
func TestB20LostAskerIsGone(t *testing.T) {
	for name, leave := range map[string]func(h *house, c *client){
		"while waiting": func(_ *house, c *client) { _ = c.conn.Close() },
		"with a word that is no receipt": func(_ *house, c *client) {
			c.send("what now\n")
			c.ended()
		},
		"with a receipt before the verdict": func(h *house, c *client) {
			c.send(receipt)
			synctest.Wait()
			h.desk.verdicts <- core.Verdict{Allow: true}
			c.ended()
		},
		"with a receipt for another": func(h *house, c *client) {
			h.desk.verdicts <- core.Verdict{Allow: true, Args: []byte(`{}`)}
			_, _ = c.line()
			c.send(`{"receipt":"01jq0000000000000000000001"}` + "\n")
			c.ended()
		},
		"after the verdict": func(h *house, c *client) {
			h.desk.verdicts <- core.Verdict{Allow: true, Args: []byte(`{}`)}
			_, _ = c.line()
			_ = c.conn.Close()
		},
		"silent after the verdict": func(h *house, c *client) {
			h.desk.verdicts <- core.Verdict{Allow: true, Args: []byte(`{}`)}
			_, _ = c.line()
			began := time.Now()
			c.ended()
			if d := time.Since(began); d != 10*time.Second {
				t.Errorf("it ended after %v", d)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, agents.SocketOptions{}, func(h *house) {
				c := h.dial()
				c.send(call("generic", "before_tool_call", stdin))
				c.expect(events.HookLine{Accepted: true})
				leave(h, c)
				h.told("propose", "gone agent_gone")
			})
		})
	}
}

// An asker that does not read its verdict is given up after ten seconds, and
// whoever decides does not wait for that.
func TestSlowAskerHoldsUpNobody(t *testing.T) {
	bubble(t, agents.SocketOptions{}, func(h *house) {
		c := h.dial()
		c.send(call("generic", "before_tool_call", stdin))
		c.expect(events.HookLine{Accepted: true})
		h.desk.verdicts <- core.Verdict{Allow: true, Args: []byte(`{}`)}
		<-time.After(11 * time.Second) // of the bubble's clock
		c.ended()
		h.told("propose", "gone agent_gone")
		if h.desk.held != 0 {
			t.Errorf("the desk was held up for %v", h.desk.held)
		}
	})
}

// The end of a core ends no operation: connections close without a verdict,
// and the desk does not hear that askers went.
func TestF3StoppingCoreSaysNothing(t *testing.T) {
	bubble(t, agents.SocketOptions{}, func(h *house) {
		c := h.dial()
		c.send(call("generic", "before_tool_call", stdin))
		c.expect(events.HookLine{Accepted: true})
		idle := h.dial()
		synctest.Wait()
		h.stop()
		c.ended()
		idle.ended()
		h.told("propose")
	})
	for name, prepare := range map[string]func(*desk){
		"at the proposal": func(d *desk) { d.refuse = fmt.Errorf("wrapped: %w", errStopping) },
		"at the verdict":  func(d *desk) { d.fail = errStopping },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, agents.SocketOptions{}, func(h *house) {
				prepare(h.desk)
				c := h.dial()
				c.send(call("generic", "before_tool_call", stdin))
				if l, err := c.line(); err == nil && !l.Accepted {
					t.Errorf("got %+v", l)
				} else if err == nil {
					c.ended()
				}
			})
		})
	}
}

// Whatever arrives, a deny with words goes back, and the next call is served.
func TestBadCallsAreDenied(t *testing.T) {
	edit := func(f func(*events.HookCall)) string {
		c := events.HookCall{V: 1, Operation: op, Secret: secret, Agent: "generic", Event: "before_tool_call", Stdin: stdin}
		f(&c)
		b, _ := json.Marshal(c)
		return string(b) + "\n"
	}
	cases := []struct{ name, line, word string }{
		{"empty line", "\n", "no JSON object"},
		{"no object", "[]\n", "no JSON object"},
		{"cut", `{"v":1` + "\n", "cannot be read"},
		{"unknown key", `{"v":1,"sudo":true}` + "\n", "cannot be read"},
		{"two values", `{"v":1} {"v":1}` + "\n", "cannot be read"},
		{"no version", edit(func(c *events.HookCall) { c.V = 0 }), "version 0"},
		{"newer", edit(func(c *events.HookCall) { c.V = 2 }), "(needs_newer_core)"},
		{"no operation", edit(func(c *events.HookCall) { c.Operation = "" }), "is not an id"},
		{"short secret", edit(func(c *events.HookCall) { c.Secret = "x" }), "16 to 128"},
		{"B9 negative limit", edit(func(c *events.HookCall) { c.Timeout = -1 }), "is not possible"},
		{"B9 endless limit", edit(func(c *events.HookCall) { c.Timeout = 1e300 }), "is not possible"},
		{"two payloads", edit(func(c *events.HookCall) { c.StdinB64 = []byte("x") }), "there twice"},
		{"unknown agent", call("nobody", "x", "{}"), "knows no event"},
		{"unknown event", call("gemini", "AfterLunch", "{}"), "knows no event"},
		{"no adapter yet", call("claude", "PreToolUse", "{}"), "no adapter for claude"},
		{"a prompt without a session", call("gemini", "BeforeAgent", "{}"), "is missing"},
		{"broken adapter", call("qwen", "PreToolUse", "{}"), "broke the core's adapter"},
		{"empty stdin", call("generic", "before_tool_call", ""), "got nothing"},
		{"control without control", call(agents.ControlAgent, "status", ""), "knows no event"},
		{"something behind it", strings.TrimSuffix(call("generic", "before_tool_call", stdin), "\n") + "\n{}", "something follows"},
	}
	bubble(t, agents.SocketOptions{}, func(h *house) {
		for _, c := range cases {
			t.Log(c.name)
			k := h.dial()
			k.send(c.line)
			k.denied(c.word)
			k.ended()
		}
		h.told()
	})
}

// Whatever arrives about an observed event, the agent hears a yes at once.
func TestObservedEventsAreNeverHeldUp(t *testing.T) {
	bubble(t, agents.SocketOptions{}, func(h *house) {
		for _, line := range []string{
			call("gemini", "AfterTool", "{}"), call("claude", "Stop", "not JSON"), call("generic", "session_end", ""),
			call("generic", "after_tool_call", `{"session_id":"s"}`), call("qwen", "Stop", "{}"),
			`{"v":1,"agent":"gemini","event":"SessionEnd"}` + "\n",
		} {
			c := h.dial()
			c.send(line)
			c.expect(events.HookLine{})
			c.ended()
		}
		h.told()
		h.desk.hooks = func() (core.Heard, error) { return core.Heard{Context: "unheard"}, errors.New("the log is away") }
		for _, event := range []string{"session_end", "turn_is_no_event", "before_turn"} {
			c := h.dial()
			c.send(call("generic", event, `{"session_id":"s","agent":"generic","cwd":"/w"}`))
			if event == "turn_is_no_event" {
				c.denied("knows no event")
				continue
			}
			c.expect(events.HookLine{})
			c.ended()
		}
		h.told("observe session_end", "observe before_turn")
	})
}

// Of a tool's end the agent hears that it is recorded, and then what hooks say,
// however long they take.
func TestB89ToolsEndWaitsForWhatHooksSay(t *testing.T) {
	const stdin = `{"session_id":"s","agent":"generic","cwd":"/w","operation":"01jq0000000000000000000000",` +
		`"tool":{"name":"bash","kind":"shell","args":{"command":"ls"}},"result":{"text":"a\nb","duration_ms":1.5}}`
	for _, event := range []string{"after_tool_call", "tool_error"} {
		bubble(t, agents.SocketOptions{}, func(h *house) {
			h.desk.hooks = func() (core.Heard, error) {
				<-time.After(20 * time.Second) // of the bubble's clock
				return core.Heard{Context: "look <here>"}, nil
			}
			c := h.dial()
			c.send(call("generic", event, stdin))
			c.expect(events.HookLine{Accepted: true})
			c.expect(events.HookLine{Stdout: `{"extra_context":"look <here>"}`})
			c.ended()
			want := []core.Observation{{
				Signal: core.Signal(event), Agent: "generic", Native: "s", Cwd: "/w", Path: "main", Operation: op,
				Tool: events.Tool{Name: "bash", Kind: "shell"}, Args: []byte(`{"command":"ls"}`),
				Result: &core.ToolResult{Text: "a\nb", Duration: 1500 * time.Microsecond},
			}}
			if diff := cmp.Diff(want, h.desk.observed); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

// An input that is refused anywhere at the door comes back as it was written.
func TestB90B91B92RefusedInputComesBack(t *testing.T) {
	const text = `"say \u003cb\u003e\t日本 \/ \ud83d\ude00"`
	for word, kind := range map[string]string{`,"kind":"prompt"`: "prompt", "": "prompt", `,"kind":"injection"`: "injection", `,"kind":"retry_note"`: "retry_note"} {
		stdin := `{"session_id":"s","agent":"generic","cwd":"/w","input":{"text":` + text + word + `}}`
		want := func(code, reason string) string {
			return `{"decision":"deny","code":"` + code + `","refused":"` + kind + `","reason":"` + reason + `","text":` + text + `}`
		}
		bubble(t, agents.SocketOptions{}, func(h *house) {
			c := h.dial()
			c.send(call("generic", "user_prompt_submit", stdin))
			c.expect(events.HookLine{Accepted: true})
			h.desk.verdicts <- core.Verdict{Code: events.CodeDeclined, Message: "no"}
			c.expect(events.HookLine{Exit: 2, Stdout: want("declined", "no"), Stderr: "no\n"})

			h.desk.refuse = &events.Refused{Code: events.RejectLogUnavailable, Hint: "full"}
			c = h.dial()
			c.send(call("generic", "user_prompt_submit", stdin))
			reason := agents.NotChecked(events.CodeLogUnavailable, "log_unavailable: full")
			c.expect(events.HookLine{Exit: 2, Stdout: want("log_unavailable", reason), Stderr: reason + "\n"})

			c = h.dial()
			c.send(call("generic", "user_prompt_submit", strings.Replace(stdin, `"cwd":"/w"`, `"cwd":"w"`, 1)))
			l, err := c.line()
			if err != nil || l.Exit != 2 || !strings.HasSuffix(l.Stdout, `,"text":`+text+`}`) {
				t.Errorf("a call that is wrong in something else: %+v, %v", l, err)
			}
		})
	}
}

func TestDeskRefuses(t *testing.T) {
	for code, want := range map[events.Reject]events.Code{
		events.RejectLogUnavailable: events.CodeLogUnavailable, events.RejectNotYours: events.CodeEnded,
		events.RejectMalformed: events.CodeNoCanonicalForm, events.RejectInternal: events.CodeLogUnavailable,
	} {
		bubble(t, agents.SocketOptions{}, func(h *house) {
			h.desk.refuse = &events.Refused{Code: code, Hint: "so it is"}
			c := h.dial()
			c.send(call("generic", "before_tool_call", stdin))
			c.denied("(" + string(want) + ")")
			h.told("propose")
		})
	}
	bubble(t, agents.SocketOptions{}, func(h *house) {
		h.desk.fail = errors.New("the disk is gone")
		c := h.dial()
		c.send(call("generic", "before_tool_call", stdin))
		c.expect(events.HookLine{Accepted: true})
		c.denied("the disk is gone")
		h.told("propose", "gone agent_gone")
	})
}

func TestLimits(t *testing.T) {
	bubble(t, agents.SocketOptions{}, func(h *house) {
		began := time.Now()
		c := h.dial()
		c.send("{")
		c.denied("did not arrive")
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("the first line had %v", d)
		}
		long := h.dial()
		go long.send(strings.Repeat("x", agents.MaxLine+2))
		long.denied("(too_large)")
	})
	bubble(t, agents.SocketOptions{MaxConns: 2}, func(h *house) {
		first, second := h.dial(), h.dial()
		synctest.Wait()
		third := h.dial()
		third.denied("too many calls")
		_ = first.conn.Close()
		synctest.Wait()
		fourth := h.dial()
		fourth.send(call("gemini", "AfterTool", "{}"))
		fourth.expect(events.HookLine{})
		_ = second.conn.Close()
	})
}

func TestDeadlineIsTheAgents(t *testing.T) {
	for _, c := range []struct {
		agent, event, in string
		timeout          float64
		want             time.Duration
	}{
		{"generic", "before_tool_call", stdin, 0, 0},
		{"generic", "before_tool_call", stdin, 1.5, 1500 * time.Millisecond},
		{"gemini", "BeforeTool", `{"session_id":"s","hook_event_name":"BeforeTool","tool_name":"x","tool_input":{}}`, 0, time.Minute},
		{"gemini", "BeforeTool", `{"session_id":"s","hook_event_name":"BeforeTool","tool_name":"x","tool_input":{}}`, 600, 10 * time.Minute},
	} {
		bubble(t, agents.SocketOptions{}, func(h *house) {
			b, _ := json.Marshal(events.HookCall{V: 1, Operation: op, Secret: secret, Agent: c.agent, Event: c.event, Stdin: c.in, Cwd: "/here", Timeout: c.timeout})
			k := h.dial()
			k.send(string(b) + "\n")
			k.expect(events.HookLine{Accepted: true})
			p := h.desk.proposed[0]
			got := time.Duration(0)
			if !p.Deadline.IsZero() {
				got = time.Until(p.Deadline)
			}
			if got != c.want || p.Operation != op || p.Secret != secret || p.Cwd == "" {
				t.Errorf("%s: deadline in %v, want %v; %+v", c.agent, got, c.want, p)
			}
			_ = k.conn.Close()
		})
	}
}

func TestControl(t *testing.T) {
	o := agents.SocketOptions{Control: func(_ context.Context, event string) (string, error) {
		if event != agents.ControlStatus {
			return "", errors.New("no such word")
		}
		return "{}\n", nil
	}}
	bubble(t, o, func(h *house) {
		for event, want := range map[string]events.HookLine{
			"status": {Stdout: "{}\n"}, "dance": {Exit: 1, Stderr: "no such word\n"},
		} {
			c := h.dial()
			b, _ := json.Marshal(events.HookCall{V: 1, Agent: agents.ControlAgent, Event: event})
			c.send(string(b) + "\n")
			c.expect(want)
			c.ended()
		}
	})
}
