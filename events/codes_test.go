package events_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

func TestB96EndReasonsPartition(t *testing.T) {
	results := map[events.Result][]events.EndReason{}
	for _, word := range constants(t)["EndReason"] {
		r := events.ResultOf(events.EndReason(word))
		if r == "" {
			t.Errorf("end reason %q belongs to no result", word)
		}
		results[r] = append(results[r], events.EndReason(word))
	}
	known := constants(t)["Result"]
	if len(known) != len(results) {
		t.Errorf("%d results have reasons, %d are declared", len(results), len(known))
	}
	for _, word := range known {
		r := events.Result(word)
		// Equal lists mean: every reason of a result is declared, and none
		// stands under two results.
		if d := cmp.Diff(results[r], events.EndReasons(r)); d != "" {
			t.Errorf("result %s: its reasons in the order of declaration (-want +got):\n%s", r, d)
		}
	}
	if got := events.EndReasons("no such result"); got != nil {
		t.Errorf("EndReasons of an unknown result: %v, want nil", got)
	}
	if got := events.ResultOf("no such reason"); got != "" {
		t.Errorf("ResultOf of an unknown reason: %q, want none", got)
	}
}

// TestCodeTablesAreClosed pins the words themselves: stored logs hold them, so
// a word may be added and never changed.
func TestCodeTablesAreClosed(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for typ, words := range constants(t) {
		if len(words) != len(slices.Compact(slices.Sorted(slices.Values(words)))) {
			t.Errorf("%s: a word stands for two constants: %v", typ, words)
		}
		for _, w := range words {
			if !word.MatchString(w) {
				t.Errorf("%s: %q is not a lower-case word with underscores", typ, w)
			}
		}
	}
	want := map[string][]string{
		"Gate":          {"hook_confirmation", "tool_approval"},
		"Kind":          {"tool_call", "user_prompt", "injection", "retry_note"},
		"Result":        {"answered", "timed_out", "unavailable", "withdrawn", "failed"},
		"RunOutcome":    {"ok", "failed", "timed_out", "missing", "bad_verdict", "abandoned", "detached"},
		"Outcome":       {"ok", "failed", "not_run", "unknown"},
		"ReleaseReason": {"given_back", "lapsed", "taken_over"},
		"Scope":         {"project", "global"},
		"WhenNobody":    {"reject", "wait"},
		"FrontendKind":  {"tui", "acp", "web", "cli"},
		"HookMode":      {"blocking", "async", "fire_and_forget"},
		"HookEvent": {
			"before_tool_call", "user_prompt_submit", "session_start", "session_restored", "session_end", "before_turn",
			"after_turn", "user_interrupt", "after_tool_call", "tool_error", "approval_requested", "approval_resolved",
			"sub_agent_start", "sub_agent_end", "pre_compact", "workflow_run_start", "workflow_run_end",
		},
		"Code": {
			"checked", "declined", "timed_out", "unavailable", "blocked", "hook_failed", "hook_timed_out",
			"hook_missing", "hook_bad_verdict", "hooks_config_invalid", "not_trusted", "recheck_limit",
			"recheck_cycle", "changed_after_check", "ended", "no_canonical_form", "too_large",
			"log_unavailable", "core_unreachable", "needs_newer_core",
		},
		"Answer": {
			"continue", "cancel", "proceed_once", "proceed_always", "proceed_always_tool",
			"proceed_always_server", "modify_with_editor", "client_cancelled",
		},
	}
	got := constants(t)
	for typ, words := range want {
		if d := cmp.Diff(words, got[typ]); d != "" {
			t.Errorf("%s (-want +got):\n%s", typ, d)
		}
	}
}

func TestGatedEvents(t *testing.T) {
	for _, e := range []events.HookEvent{events.BeforeToolCall, events.UserPromptSubmit} {
		if !e.Gated() {
			t.Errorf("%s is not gated", e)
		}
	}
	for _, e := range events.ObservedEvents() {
		if e.Gated() {
			t.Errorf("%s is gated", e)
		}
	}
}

func TestAgentsAndToolKindsAreDistinct(t *testing.T) {
	for name, words := range map[string]int{
		"Agents":         len(slices.Compact(slices.Sorted(slices.Values(events.Agents())))) - len(events.Agents()),
		"ToolKinds":      len(slices.Compact(slices.Sorted(slices.Values(events.ToolKinds())))) - len(events.ToolKinds()),
		"ObservedEvents": len(slices.Compact(slices.Sorted(slices.Values(events.ObservedEvents())))) - len(events.ObservedEvents()),
	} {
		if words != 0 {
			t.Errorf("%s lists a word twice", name)
		}
	}
}

// constants collects the string constants of the package by their type, in the
// order of declaration.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, file := range parseSources(t) {
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, s := range d.Specs {
				spec := s.(*ast.ValueSpec)
				typ, ok := spec.Type.(*ast.Ident)
				if !ok {
					continue
				}
				for _, v := range spec.Values {
					if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						word, err := strconv.Unquote(lit.Value)
						if err != nil {
							t.Fatal(err)
						}
						found[typ.Name] = append(found[typ.Name], word)
					}
				}
			}
		}
	}
	return found
}

func TestInputWordsReadBack(t *testing.T) {
	for kind, word := range map[events.Kind]string{
		events.KindUserPrompt: "prompt", events.KindInjection: "injection", events.KindRetryNote: "retry_note",
	} {
		if events.InputWord(kind) != word || events.KindOfInput(word) != kind {
			t.Errorf("%s is called %q, and %q is %q", kind, events.InputWord(kind), word, events.KindOfInput(word))
		}
	}
	for _, none := range []string{"", "tool_call", "user_prompt", "Prompt"} {
		if word, kind := events.InputWord(events.KindToolCall), events.KindOfInput(none); word != "" || kind != "" {
			t.Errorf("%q is %q, a tool call is called %q", none, kind, word)
		}
	}
}
