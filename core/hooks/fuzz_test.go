package hooks

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

func FuzzConfig(f *testing.F) {
	f.Add("hooks.yaml", []byte(rule("match: {cwd: '/a/**', args: {a: {regex: '(?P<x>a)\\b'}}}")))
	f.Add("hooks.json", []byte(`{"version":1,"settings":{},"hooks":[{"id":"a","event":"after_turn","run":{"type":"shell","shell":"a"}}]}`))
	f.Add("hooks.yaml", []byte("a: &a [*a]"))
	f.Add("hooks.yaml", []byte("hooks:\n- {id: a, event: after_turn, run: &r {type: command, argv: [a], env: {A: b}}}\n- {id: b, event: after_turn, run: *r}\n"))
	f.Add("icode.yaml", []byte("\xff\xfeh\x00o\x00o\x00k\x00s\x00:\x00[\x00]\x00"))
	f.Add("icode.yaml", []byte("# \xbc\xec\xb2\xe9\n"+one("id: a", "event: before_tool_call", "run: {type: shell, shell: a}", "match: {tool_kind: trash, args: {a: {regex: '('}}}")))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		// A name that begins so is read as where iCode looks.
		icode := strings.HasPrefix(name, "icode")
		if !strings.HasSuffix(name, ".json") {
			name = "hooks.yaml"
		}
		c, err := readFile(origin{scope: events.ScopeGlobal, file: name, home: "/h", icode: icode}, data)
		if err != nil {
			var ce *ConfigError
			if !errors.As(err, &ce) || ce.Line < 1 || ce.Column < 1 || ce.Message.Error() == "" || ce.File != name {
				t.Fatalf("an error without a place: %#v", err)
			}
			return
		}
		ids := map[string]bool{}
		for i, h := range c.hooks {
			if h.Ref.ID == "" || ids[h.Ref.ID] || h.Timeout <= 0 || h.Ref.Line < 1 {
				t.Fatalf("hook %d: %+v", i, h)
			}
			if h.Event.Gated() && h.Mode == Blocking && h.OnError == "" {
				t.Fatalf("hook %d does not say what happens when it fails", i)
			}
			if !icode && h.Event.Gated() && h.OnError == OnErrorWarn && !bytes.Contains(data, []byte("warn")) && h.Mode == Blocking {
				t.Fatalf("hook %d fails open and nobody wrote so", i)
			}
			ids[h.Ref.ID] = true
		}
	})
}
