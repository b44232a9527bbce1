package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// TestBadInput throws at a core what no honest process would send, and what an
// honest one may have to. Whatever it is, the sender hears a clear no, the core
// goes on as the same process, and a question of another session that was open
// all the time can be answered at the end.
func TestBadInput(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *bystander){
		"payloads and words nobody knows":              unknownWords,
		"arguments of any size":                        anySize,
		"native ids of any length and letter":          anyNativeID,
		"a broken hooks.yaml":                          brokenRules,
		"a second core":                                secondCore,
		"garbage on agent.sock":                        garbageOnAgentSocket,
		"garbage on nats.sock":                         garbageOnNATSSocket,
		"garbage on every subject":                     garbageOnSubjects,
		"F4 a client that publishes where it must not": trespasser,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, askAboutWrites)
			b := h.bystander(t, h.startCore())
			test(t, b)
			b.unharmed(t)
		})
	}
	t.Run("a disk that is full", func(t *testing.T) {
		t.Parallel()
		fullDisk(t)
	})
}

// bystander is a question of a session that has nothing to do with the test.
type bystander struct {
	*home
	core   *process
	viewer *frontends.Client
	call   *asker
	asked  events.Question
}

const bystanderArgs = `{"path":"bystander"}`

func (h *home) bystander(t *testing.T, core *process) *bystander {
	t.Helper()
	b := &bystander{home: h, core: core, viewer: h.viewer(t)}
	b.call = h.propose(t, payload("bystander", "bystander", bystanderArgs))
	b.asked = openQuestion(t, b.viewer, b.call.Operation)
	return b
}

// unharmed: the same core lives, the question can be answered and its call
// runs, and nothing in log and spans is lost or wrong.
func (b *bystander) unharmed(t *testing.T) {
	t.Helper()
	b.alive(t)
	b.answered(t)
	b.termCore(b.core)
	e := b.evidence(t)
	e.checkSpans(t)
	e.checkRuns(t)
	wantEnd(t, e, "bystander", ending{events.ResultAnswered, events.EndContinue})
}

func (b *bystander) alive(t *testing.T) {
	t.Helper()
	if s, err := b.status(); err != nil || s.PID != b.core.pid() {
		t.Fatalf("core %d: status %+v, %v: %v", b.core.pid(), s, err, still(b.core))
	}
}

func (b *bystander) answered(t *testing.T) {
	t.Helper()
	_, err := b.viewer.Answer(t.Context(), events.Respond{
		Question: b.asked.ID, Digest: b.asked.Version.Digest, Answer: events.AnswerContinue, Human: true,
	})
	if err != nil {
		t.Fatalf("the bystander's question: %v", err)
	}
	if line, ran := b.call.verdict(); line.Exit != 0 || string(ran) != bystanderArgs {
		t.Fatalf("the bystander's call: %+v", line)
	}
}

// hook runs agent-hook for a generic agent's call.
func (h *home) hook(stdin string) result {
	h.t.Helper()
	return h.run(stdin, "agent-hook", "generic", "before_tool_call")
}

// free is a call that no rule holds.
func free(session, tool, args string) string {
	return strings.Replace(payload(session, tool, args), "filesystem.write", "filesystem.read", 1)
}

func unknownWords(t *testing.T, b *bystander) {
	for _, stdin := range []string{"", "{", "\xff\xfe", "null", strings.Repeat("[", 1<<20), payload("s", "write", "{\"a\":\"\xc0\"}")} {
		wantDenied(t, generic, b.hook(stdin), events.CodeNoCanonicalForm)
	}
	for _, words := range []string{"nobody BeforeTool", "gemini Unknown", "generic BeforeTool", "Generic before_tool_call", "core stop", "acp before_tool_call"} {
		r := b.run(payload("s", "write", "{}"), "agent-hook", strings.Fields(words)...)
		if r.Exit != 2 || !strings.Contains(r.Stderr, "knows no event") {
			t.Errorf("%s: %+v, want exit 2 with words", words, r)
		}
	}
}

func anySize(t *testing.T, b *bystander) {
	text := func(n int) string { return `{"content":"` + strings.Repeat("x", n) + `"}` }
	for _, n := range []int{5 << 20, 30 << 20} {
		wantDenied(t, generic, b.hook(payload("s", "large", text(n))), events.CodeTooLarge)
		wantDenied(t, generic, b.hook(free("s", "large", text(n))), events.CodeTooLarge)
	}
	// What the log can take is asked about whole.
	args := text(3 << 20)
	call := b.propose(t, payload("s", "fits", args))
	q := openQuestion(t, b.viewer, call.Operation)
	if shown, err := b.viewer.Args(t.Context(), q.ID, q.Version.N); err != nil || string(shown) != args {
		t.Errorf("a frontend was shown %d bytes (%v), want %d", len(shown), err, len(args))
	}
	if r := b.run("", "core", "answer", string(q.ID), "continue"); r.Exit != 0 {
		t.Errorf("core answer: %.300v", r)
	}
	if line, ran := call.verdict(); string(ran) != args {
		t.Errorf("%d bytes ran, want %d; exit %d", len(ran), len(args), line.Exit)
	}
}

func anyNativeID(t *testing.T, b *bystander) {
	ids := []string{
		".", "..", "*", ">", "a.*.>", " ", "\n", "\r\n\t", "\x00", "\u202e\u2028", "👩‍👩‍👧‍👦", "$JS.API", "fermata.ev.>", "'; DROP", `"\`, "🎼",
		strings.Repeat("é", 100_000), strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20), strings.Repeat("z", 1<<20),
	}
	for range 20 { // together more than one message of the server takes
		ids = append(ids, fmt.Sprintf("%d%s", len(ids), strings.Repeat("n", 1<<20)))
	}
	for _, id := range ids {
		if r := b.hook(free(id, "read", "{}")); r.Exit != 0 {
			t.Errorf("session %.20q: %.300v", id, r)
		}
	}
	// They do not keep a person from their questions, now or later.
	call := b.propose(t, payload("*.>", "write", `{"path":"a"}`))
	late := b.home.viewer(t)
	if q := openQuestion(t, late, call.Operation); b.run("", "core", "answer", string(q.ID), "cancel").Exit != 0 {
		t.Error("core answer failed")
	}
	if line, _ := call.verdict(); line.Exit != 2 {
		t.Errorf("the call got %+v after a no", line)
	}
	b.kept(t, ids)
}

// kept checks, from the core's own list, that each native id is a session.
func (b *bystander) kept(t *testing.T, ids []string) {
	t.Helper()
	if s, err := b.status(); err != nil || s.Sessions != len(ids)+2 {
		t.Errorf("%d sessions (%v), want %d", s.Sessions, err, len(ids)+2)
	}
}

func brokenRules(t *testing.T, b *bystander) {
	for name, text := range map[string]string{
		"no YAML": "version: 1\nhooks: [", "empty": "", "unknown key": askAboutWrites + "extra: 1\n",
		"wrong type": "version: 1\nhooks:\n  - 7\n", "binary": "\x00\xff\xfe",
	} {
		b.write("hooks.yaml", text)
		r := b.hook(payload("s", "write", "{}"))
		wantDenied(t, generic, r, events.CodeHooksConfigInvalid)
		if !strings.Contains(r.Stderr, b.dirs.Config+"/hooks.yaml:") {
			t.Errorf("%s: stderr %q does not say where the file is broken", name, r.Stderr)
		}
	}
	b.write("hooks.yaml", askAboutWrites)
	if r := b.hook(free("s", "read", "{}")); r.Exit != 0 {
		t.Errorf("after it was mended: %+v", r)
	}
}

func secondCore(t *testing.T, b *bystander) {
	elsewhere := emptyHome(t)
	for name, other := range map[string][2]string{
		"same state and runtime directory": {b.dirs.State, b.dirs.Runtime},
		"same state":                       {b.dirs.State, elsewhere.dirs.Runtime},
		"same runtime directory":           {elsewhere.dirs.State, b.dirs.Runtime},
	} {
		cmd := b.command("", "core", "serve")
		cmd.Env = append(cmd.Environ(), "FERMATA_STATE_DIR="+other[0], "FERMATA_RUNTIME_DIR="+other[1])
		r := b.launch(cmd).wait()
		if r.Exit != 1 || !strings.Contains(r.Stderr, fmt.Sprintf("in use by process %d", b.core.pid())) {
			t.Errorf("%s: %+v, want exit 1 and who holds it", name, r)
		}
		b.alive(t)
	}
}

// limitedMain is the program of fullDisk: limited BYTES PROGRAM ARG… starts a
// program that cannot make a file longer than that. It needs no privilege, and
// a write beyond the limit fails as one to a full disk does.
func limitedMain() {
	var n uint64
	_, err := fmt.Sscan(os.Args[1], &n)
	fatal(err)
	fatal(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n}))
	fatal(syscall.Exec(os.Args[2], os.Args[2:], os.Environ()))
}

// fullDisk: when the log cannot be written any more no call runs, the core
// lives and says why, and a core with room again goes on where the log stands.
func fullDisk(t *testing.T) {
	h := newHome(t, askAboutWrites)
	b := h.bystander(t, h.launchCore(h.command("", "limited", fmt.Sprint(4<<20), built+"/core", "serve")))
	args := `{"content":"` + strings.Repeat("x", 1<<20) + `"}`
	r := b.hook(free("s", "large", args))
	for i := 0; r.Exit == 0 && i < 10; i++ {
		r = b.hook(free("s", "large", args))
	}
	wantDenied(t, generic, r, events.CodeLogUnavailable)
	// An answer that the log cannot take is not taken, and can be given later.
	if r := b.run("", "core", "answer", string(b.asked.ID), "continue", "--json"); r.Exit != 3 ||
		!strings.Contains(r.Stdout, string(events.RejectLogUnavailable)) {
		t.Errorf("core answer with a full disk: %+v, want exit 3 and log_unavailable", r)
	}
	b.alive(t)
	b.termCore(b.core)
	b.core = h.startCore()
	b.call = h.proposeAs(t, b.call.Operation, payload("bystander", "bystander", bystanderArgs))
	if r := b.hook(free("s", "after", args)); r.Exit != 0 {
		t.Errorf("a call after there was room again: %.300v", r)
	}
	b.unharmed(t)
}

func garbageOnAgentSocket(t *testing.T, b *bystander) {
	call, err := json.Marshal(events.HookCall{
		V: 1, Operation: b.call.Operation, Secret: strings.Repeat("0", 16), Agent: "generic", Event: "before_tool_call",
		Stdin: payload("bystander", "bystander", bystanderArgs), Cwd: "/",
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{
		"nothing": "\n", "no JSON": "hello\n", "binary": "\x00\xff\x1b\n", "another protocol": "GET / HTTP/1.1\r\n",
		"list": "[1]\n", "no version": "{}\n", "newer": `{"v":2}` + "\n", "unknown key": `{"v":1,"root":true}` + "\n",
		"deep": strings.Repeat(`{"v":`, 100_000) + "\n", "two lines": "{}\n{}\n",
		"no operation":   `{"v":1,"agent":"generic","event":"before_tool_call","secret":"0123456789abcdef"}` + "\n",
		"somebody's own": string(call) + "\n", // the operation of another, without its secret
		"endless":        strings.Repeat("x", 25<<20) + "\n",
		"unknown agent":  `{"v":1,"operation":"` + string(b.call.Operation) + `","secret":"0123456789abcdef","agent":"nobody","event":"x"}` + "\n",
		"control":        `{"v":1,"agent":"core","event":"format the disk"}` + "\n",
	}
	for name, text := range lines {
		a := b.dial(t)
		_, _ = a.conn.Write([]byte(text)) // it may have been refused before its end
		if line := a.hear(); line.Exit == 0 || line.Stderr == "" || line.Accepted {
			t.Errorf("%s: the core said %+v, want a no with words", name, line)
		}
		_ = a.conn.Close()
		b.alive(t)
	}
	for _, text := range []string{"", "{", `{"v":1,"operation":"`} { // and gone
		a := b.dial(t)
		a.say(text)
		_ = a.conn.Close()
	}
}

// corpus is what kills a careless reader of msgpack, and some that only confuses
// one.
func corpus() map[string][]byte {
	nested := func(n int) []byte { return append(bytes.Repeat([]byte{0x91}, n), 0xc0) }
	key := func(name string, value ...byte) []byte {
		return append(append([]byte{0x81, 0xa0 | byte(len(name))}, name...), value...)
	}
	return map[string][]byte{
		"nothing": nil, "nil": {0xc0}, "byte": {0xc1}, "text": []byte("hello"), "JSON": []byte(`{"question":`), "JSON list": []byte(`[]`),
		"array32 huge": {0xdd, 0xff, 0xff, 0xff, 0xff}, "map32 huge": {0xdf, 0xff, 0xff, 0xff, 0xff},
		"str32 huge": {0xdb, 0xff, 0xff, 0xff, 0xff}, "bin32 huge": {0xc6, 0xff, 0xff, 0xff, 0xff},
		"ext32 huge":          {0xc9, 0xff, 0xff, 0xff, 0xff, 1},
		"known key, array32":  key("question", 0xdd, 0xff, 0xff, 0xff, 0xff),
		"known key, map32":    key("digest", 0xdf, 0xff, 0xff, 0xff, 0xff),
		"unknown key, nested": key("x", nested(60_000)...),
		"nested 60,000":       nested(60_000), "nested 1 M": nested(1 << 20), "nested 8 M": nested(8 << 20),
		"honest-looking headers": bytes.Repeat([]byte{0xdd, 0, 0, 0x40, 0}, 12_000),
		"wrong types":            key("question", 0x93, 1, 2, 3), "trailing": {0x80, 0x80},
		"same key twice": append([]byte{0x82}, bytes.Repeat(append([]byte{0xa8}, "question\xc0"...), 2)...),
	}
}
