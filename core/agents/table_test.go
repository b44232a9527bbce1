package agents_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	agentsSeen := map[events.Agent]bool{}
	for _, e := range agents.Table() {
		key := string(e.Agent) + " " + e.Name
		if seen[key] {
			t.Errorf("%s stands twice", key)
		}
		seen[key], agentsSeen[e.Agent] = true, true
		if !slices.Contains(events.Agents(), e.Agent) {
			t.Errorf("%s: unknown agent", key)
		}
		if e.Gated != (e.Deny != "") {
			t.Errorf("%s: gated %v with deny %q", key, e.Gated, e.Deny)
		}
	}
	for _, a := range events.Agents() {
		if !agentsSeen[a] && a != "acp" { // ACP agents have no hooks; the proxy asks for them
			t.Errorf("%s has no events", a)
		}
	}
}

// A deny is exit 2, words on stderr, and JSON that holds exactly them.
func TestDenyIsInTheAgentsWords(t *testing.T) {
	reason := "no: \"$code\" $reason <b>\n\x01 é \u202e"
	for _, e := range agents.Table() {
		l := agents.Deny(e.Agent, e.Name, events.CodeDeclined, reason)
		if l.Exit != 2 || l.Stderr != reason+"\n" || l.Accepted {
			t.Errorf("%s %s: %+v", e.Agent, e.Name, l)
		}
		if !e.Gated {
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(l.Stdout), &v); err != nil {
			t.Fatalf("%s %s: %q: %v", e.Agent, e.Name, l.Stdout, err)
		}
		if !holds(v, reason) {
			t.Errorf("%s %s: %q does not hold the reason", e.Agent, e.Name, l.Stdout)
		}
		if strings.Contains(l.Stdout, "ask") || strings.Contains(l.Stdout, "allow") {
			t.Errorf("%s %s: %q", e.Agent, e.Name, l.Stdout)
		}
	}
}

func holds(v any, s string) bool {
	switch v := v.(type) {
	case string:
		return v == s
	case map[string]any:
		for _, x := range v {
			if holds(x, s) {
				return true
			}
		}
	}
	return false
}

func FuzzHookCall(f *testing.F) {
	f.Add([]byte(`{"v":1,"operation":"01jq0000000000000000000000","secret":"0123456789abcdef","agent":"gemini","event":"BeforeTool","stdin":"{}","pid":1,"ppid":1,"cwd":"/","timeout":60}`))
	f.Add([]byte(`{"v":1,"operation":"01jq0000000000000000000000","secret":"0123456789abcdef","agent":"x","event":"y","stdin_b64":"//8="}`))
	f.Add([]byte(`{"v":1,"agent":"core","event":"status"}`))
	f.Add([]byte(`{"v":2}`))
	f.Add([]byte("\x82\xa1v\x01"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := agents.DecodeCall(line)
		if err != nil || c.Agent == agents.ControlAgent {
			return
		}
		if _, err := events.ParseID(string(c.Operation)); err != nil || c.V != 1 || len(c.Secret) < 16 || c.Timeout < 0 || c.StdinB64 != nil {
			t.Fatalf("accepted %+v", c)
		}
	})
}
