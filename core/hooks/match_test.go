package hooks

import (
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// planned reports whether a blocking rule with the given match is in the plan.
func planned(t *testing.T, match string, sub Subject) bool {
	t.Helper()
	return len(setOf(t, rule("match: "+match)).Plan(sub)) == 1
}

func setOf(t *testing.T, text string) *Set {
	t.Helper()
	set, err := newSet("/h/hooks.yaml", "/h", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

var shellCall = Subject{
	Event: events.BeforeToolCall, Agent: "claude", Profile: "Code", Cwd: "/home/u/work/app",
	Tool: events.Tool{Name: "Bash", Kind: "shell"},
	Args: []byte(`{"big":12345678901234567890,"command":"rm -rf build","f":1.0,"list":[1,{"a":"b"}],"n":null,"no":false,"o":{},"q":"\"\u2028","small":1e-7,"yes":true}`),
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		match string
		want  bool
	}{
		{`{}`, true},
		{`{profile: Code}`, true},
		{`{profile: code}`, false},
		{`{profiles: [Ask, Code]}`, true},
		{`{profiles: [Ask]}`, false},
		{`{profiles: []}`, true},
		{`{profile: Code, profiles: [Ask]}`, false},
		{`{tool_kind: shell}`, true},
		{`{tool_kind: chrys.shell}`, true},
		{`{tool_kind: search}`, false},
		{`{tool_name: Bash}`, true},
		{`{tool_name: bash}`, false},
		{`{agent: claude}`, true},
		{`{agent: gemini}`, false},
		{`{cwd: "/home/u/**"}`, true},
		{`{cwd: "/home/u/work/app/**"}`, true},
		{`{cwd: "/home/*/work/{app,lib}"}`, true},
		{`{cwd: "/home/u/*"}`, false},
		{`{cwd: "**/app"}`, true},
		{`{args: {}}`, true},
		{`{args: {command: {}}}`, true},
		{`{args: {missing: {}}}`, false},
		{`{args: {n: {}}}`, false},
		{`{args: {n: {regex: ".*"}}}`, false},
		{`{args: {command: {equals: "rm -rf build"}}}`, true},
		{`{args: {command: {equals: "rm"}}}`, false},
		{`{args: {command: {contains: "-rf"}}}`, true},
		{`{args: {command: {contains: "-rf", regex: "^ls"}}}`, false},
		{`{args: {command: {regex: '\brm\b'}}}`, true},
		{`{args: {command: {contains: "rm"}, missing: {contains: ""}}}`, false},
		{`{args: {yes: {equals: "True"}, no: {equals: "False"}}}`, true},
		{`{args: {yes: {equals: "true"}}}`, false},
		{`{args: {big: {equals: "12345678901234567890"}}}`, true},
		{`{args: {f: {equals: "1.0"}}}`, true},
		{`{args: {small: {equals: "1e-07"}}}`, true},
		{`{args: {list: {equals: '[1,{"a":"b"}]'}}}`, true},
		{`{args: {o: {equals: '{}'}}}`, true},
		{`{args: {q: {equals: "\"\u2028"}}}`, true},
		{`{tool_kind: shell, tool_name: Bash, agent: claude, cwd: "/home/**", args: {command: {regex: "rm"}}}`, true},
		{`{tool_kind: shell, tool_name: Bash, agent: codex, cwd: "/home/**", args: {command: {regex: "rm"}}}`, false},
	} {
		if got := planned(t, tc.match, shellCall); got != tc.want {
			t.Errorf("%s: %v", tc.match, got)
		}
	}
	for _, args := range []string{``, `null`, `5`, `"command"`, `["command"]`} {
		sub := shellCall
		sub.Args = []byte(args)
		if planned(t, `{args: {command: {}}}`, sub) {
			t.Errorf("arguments %q have no names", args)
		}
		if !planned(t, `{tool_kind: shell}`, sub) {
			t.Errorf("arguments %q do not matter here", args)
		}
	}
	broken := shellCall
	broken.Args = []byte(`{"command":`)
	if !planned(t, `{args: {command: {equals: x}}}`, broken) {
		t.Error("what cannot be read must not slip past")
	}
}

func TestPythonNumbers(t *testing.T) {
	for token, want := range map[string]string{
		"0": "0", "-0": "0", "-0.0": "-0.0", "10": "10", "1.0": "1.0", "1.50": "1.5", "1e2": "100.0", "1E2": "100.0",
		"1e15": "1000000000000000.0", "1e16": "1e+16", "123456789012345680.0": "1.2345678901234568e+17", "0.0001": "0.0001",
		"0.00001": "1e-05", "1e400": "inf", "-1e400": "-inf", "5e-324": "5e-324", "1e-400": "0.0", "9007199254740993": "9007199254740993",
	} {
		if got := pythonNumber(token); got != want {
			t.Errorf("%s: %s, want %s", token, got, want)
		}
	}
}

func TestPlan(t *testing.T) {
	set := setOf(t, `
hooks:
  - {id: watch, event: before_tool_call, run: {type: shell, shell: a}, execution: {mode: async}}
  - {id: off, enabled: false, event: before_tool_call, run: {type: verdict, action: block}, execution: {mode: blocking}}
  - {id: first, event: before_tool_call, run: {type: verdict, action: ask}, execution: {mode: blocking}}
  - {id: prompt, event: user_prompt_submit, run: {type: verdict, action: ask}, execution: {mode: blocking}}
  - {id: other, event: before_tool_call, run: {type: verdict, action: ask}, execution: {mode: blocking}, match: {tool_kind: search}}
  - {id: last, event: before_tool_call, run: {type: shell, shell: a}, execution: {mode: blocking}}
`)
	var ids []string
	for _, ref := range set.Plan(shellCall) {
		if h := set.Hook(ref.Index); h.Ref != ref {
			t.Errorf("hook %d is %s, not %s", ref.Index, h.Ref.ID, ref.ID)
		}
		ids = append(ids, ref.ID)
	}
	if got := strings.Join(ids, " "); got != "first last" {
		t.Error(got)
	}
	if len(set.Hooks) != 6 {
		t.Error("hooks that do not decide are kept too")
	}
}

// The expected answers are Python 3.11's re.search.
func TestPatternsMeanWhatPythonMeans(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{`a\Z`, "a\n", false},
		{`a\Z`, "ba", true},
		{`a$`, "a\n", true},
		{`^b`, "a\nb", false},
		{`(?m)^b`, "a\nb", true},
		{`.`, "\n", false},
		{`(?s).`, "\n", true},
		{`(?P<q>['"]).*(?P=q)`, `"x"`, true},
		{`(?P<q>['"]).*(?P=q)`, `"x'`, false},
		{`(?P<n>a)(b)\2\1`, "abba", true},
		{`(a)?(?(1)b|c)$`, "ab", true},
		{`(?P<x>a)?(?(x)b|c)`, "c", true},
		{`(?<=sudo )rm`, "sudo rm", true},
		{`(?<!sudo )rm`, "sudo rm", false},
		{`rm(?! -i)`, "rm -i", false},
		{`rm(?= -rf)`, "rm -rf", true},
		{`a++b`, "aab", true},
		{`a*+a`, "aa", false},
		{`(?>a+)b`, "aab", true},
		{`a{,2}b`, "aab", true},
		{`^a{,2}$`, "aaa", false},
		{`^a{,}$`, "aaaa", true},
		{`a{1001}`, strings.Repeat("a", 1001), true},
		{`a{x}`, "a{x}", true},
		{`\d`, "٣", true},
		{`\w`, "é", true},
		{`\w`, "\u0301", false},
		{`\w`, "²", true},
		{`\brm\b`, "rm\u0301", true},
		{`\brm\b`, "rm\u200dx", true},
		{`\Brm`, "xrm", true},
		{`\s`, "\x1c", true},
		{`\S`, "\x1c", false},
		{`[^\S\n]`, "\n", false},
		{`[^\S\n]`, "\t", true},
		{`[\W_]`, "_", true},
		{`[^\W_]`, "_", false},
		{`^[a-z-[b]]$`, "[]", true},
		{`[[]`, "[", true},
		{`[]a]`, "]", true},
		{`[^]a]`, "]", false},
		{`[[:alpha:]]`, "a]", true},
		{`[\b]`, "\b", true},
		{`[a&&b]`, "&", true},
		{`\x41\u0042\U00000043\104\0`, "ABCD\x00", true},
		{`\U0001F600+$`, "😀😀", true},
		{`(?x) r m  # comment (?P< [
		   \ -rf`, "rm -rf", true},
		{`(?x)a[ #]b`, "a#b", true},
		{`(?x: a b )c d`, "abc d", true},
		{`(?#note)a`, "a", true},
		{`(?i)RM`, "rm", true},
		{`(?i:R)M`, "rM", true},
		{`(?i:R)M`, "rm", false},
		{`(?i)a(?-i:b)`, "AB", false},
		{`(?i)(?m)^B`, "a\nb", true},
		{`(?u)é`, "é", true},
		{`#{1}`, "#", true},
		{``, "", true},
	} {
		p := newPattern(tc.pattern)
		if got, err := p.search(tc.text); got != tc.want || err != nil {
			t.Errorf("%q in %q: %v %v", tc.pattern, tc.text, got, err)
		}
	}
}

func TestPatternsThatAreRefused(t *testing.T) {
	for _, pattern := range []string{
		`(`, `)`, `[a`, `[`, `\`, `a**`, `*a`, `\z`, `\G`, `\e`, `\Q`, `\R`, `\X`, `\p{L}`, `\k<1>`, `\N{DASH}`, `\c`, `\8`, `\1`, `(a\1)`,
		`(?P<1>`, `(?P<n>a`, `(?P<n>a)(?P<n>b)`, `(?P=n)`, `(?P>n)`, `(?<n>a)`, `(?'n'a)`, `(?<n-m>a)`, `(?(2)a|b)`, `(?|a)`, `(?1)`, `(?n)a`,
		`(?a)\w`, `(?L)a`, `a(?i)`, `(?i-s)a`, `(?-:a)`, `[z-a]`, `[a-\d]`, `[\d-z]`, `[\A]`, `[\8]`, `\x1`, `\ud800`, `\U00110000`, `\777`,
		`(?>a+)*a`, `(?:a++)*a`, `(?:(?:a++))?a`, `(?#`,
	} {
		if p := newPattern(pattern); p.err == nil {
			t.Errorf("%q compiled", pattern)
		}
	}
}

func TestPatternHasATimeLimit(t *testing.T) {
	p := newPattern(`(a+)+b`)
	started := time.Now()
	found, err := p.search(strings.Repeat("a", 64) + "c")
	if found || err == nil || strings.Contains(err.Error(), "aaaa") {
		t.Error(found, err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Error("took", took)
	}
	// A long text alone takes more memory than the engine's own bound gives.
	if found, err := newPattern(`(a|b)*c`).search(strings.Repeat("ab", 4_000) + "c"); !found || err != nil {
		t.Error(found, err)
	}
}

func FuzzPattern(f *testing.F) {
	for _, p := range []string{`(?P<a>[^\W_]+)\b(?(a)x|y)\1`, `(?x) a {,2} # b`, `[]\d-]{1,}+`, `(?i-s:(?<!a).)\Z`} {
		f.Add(p, "some text")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 200 {
			return
		}
		p := newPattern(pattern)
		if p.err == nil {
			_, _ = p.search(text)
		}
	})
}
