package core

import (
	"slices"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q lacks %q", text, p)
		}
	}
}

// everyCode lists the refusal codes of the design.
var everyCode = []events.Code{
	events.CodeDeclined, events.CodeTimedOut, events.CodeUnavailable, events.CodeBlocked, events.CodeHookFailed,
	events.CodeHookTimedOut, events.CodeHookMissing, events.CodeHookBadVerdict, events.CodeHooksConfigInvalid,
	events.CodeNotTrusted, events.CodeRecheckLimit, events.CodeRecheckCycle, events.CodeChangedAfterCheck,
	events.CodeEnded, events.CodeNoCanonicalForm, events.CodeTooLarge, events.CodeLogUnavailable,
	events.CodeCoreUnreachable, events.CodeNeedsNewerCore, "a_code_of_tomorrow",
}

func TestTexts(t *testing.T) {
	text := func(c events.Code) string {
		return ModelText(Refusal{Code: c, Kind: events.KindToolCall, Tool: "Bash"})
	}
	t.Run("B82 every text says that the call did not run, and whether calling again can help", func(t *testing.T) {
		for _, c := range everyCode {
			got := strings.ToLower(text(c))
			wantText(t, got, "the tool call did not run.", "again")
			if strings.Contains(got, "!") || strings.Contains(got, "%!") || strings.Contains(got, "..") {
				t.Errorf("%s: %q", c, got)
			}
		}
		for c := range texts {
			if !slices.Contains(everyCode, c) {
				t.Errorf("a text for %q, which is no refusal code", c)
			}
		}
	})
	t.Run("B83 declined", func(t *testing.T) {
		wantText(t, text(events.CodeDeclined), "said no", "Do not call it again unless the user asks for it.")
	})
	t.Run("B84 no answer in time", func(t *testing.T) {
		wantText(t, text(events.CodeTimedOut), "did not answer in time", "Ask the user before you call it again")
	})
	t.Run("B85 nobody to ask", func(t *testing.T) {
		wantText(t, text(events.CodeUnavailable), "nobody could be asked", "would be refused again")
	})
	t.Run("B86 kept changing, changed after the check", func(t *testing.T) {
		wantText(t, text(events.CodeRecheckLimit), "kept changing")
		wantText(t, text(events.CodeRecheckCycle), "kept changing", "earlier version")
		wantText(t, text(events.CodeChangedAfterCheck), "after it had been checked", "Trying again may help")
	})
	t.Run("B68 ended says why", func(t *testing.T) {
		seen := map[string]bool{}
		for _, r := range []events.Result{events.ResultWithdrawn, events.ResultFailed} {
			for _, reason := range events.EndReasons(r) {
				if _, ok := ends[reason]; !ok {
					t.Errorf("no words for %q", reason)
				}
				got := ModelText(Refusal{Code: events.CodeEnded, EndReason: reason})
				wantText(t, got, "did not run", "because "+ends[reason])
				seen[got] = true
			}
		}
		if len(seen) != len(ends) {
			t.Errorf("%d different texts for %d ends", len(seen), len(ends))
		}
		wantText(t, takenText(events.KindToolCall), "did not run", "once")
	})
	t.Run("B91 the kind is named", func(t *testing.T) {
		for kind, want := range map[events.Kind]string{
			events.KindUserPrompt: "The prompt did not run: it was not submitted.",
			events.KindInjection:  "The injected message did not run",
			events.KindRetryNote:  "The retry note did not run",
			"unknown":             "The tool call did not run.",
		} {
			wantText(t, ModelText(Refusal{Code: events.CodeBlocked, Kind: kind}), want)
		}
	})
	t.Run("F8 a person's words come last, unchanged and marked", func(t *testing.T) {
		words := "use the staging db\n  — not production! \u202e"
		got := ModelText(Refusal{
			Code: events.CodeDeclined, Kind: events.KindToolCall, Hook: hook(0), Reason: "This changes production.", Words: words,
		})
		if !strings.HasSuffix(got, "\n\nThe user's own words:\n"+words) {
			t.Errorf("%q", got)
		}
		wantText(t, got, `(hook "hook-0", project .fermata/hooks.yaml:6)`, "This changes production.")
	})
}

func TestVerdictTexts(t *testing.T) {
	t.Run("B83 a declined verdict carries the person's words", func(t *testing.T) {
		st := asked(t)
		a := no(st.s)
		a.Text = "use the staging db"
		st.must(a)
		v, _ := VerdictOf(st.s)
		wantText(t, v.Message, "said no", `hook "hook-0"`)
		if !strings.HasSuffix(v.Message, "use the staging db") || v.Args != nil || v.Operation != op {
			t.Errorf("%+v", v)
		}
	})
	t.Run("B82 a blocked verdict names hook, place and reason", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next(run(1), 2)))
		st.must(HookDone{Run: run(1), Effect: events.EffectBlock, Outcome: events.RunFailed, Code: events.CodeHookFailed, Reason: "exit status 3"})
		v, _ := VerdictOf(st.s)
		wantText(t, v.Message, `hook "hook-2", project .fermata/hooks.yaml:8`, "exit status 3", "did not run")
	})
	t.Run("B84 a timeout names the hook that asked", func(t *testing.T) {
		st := asked(t).must(EndQuestion{Question: q1, Reason: events.EndDeadline})
		v, _ := VerdictOf(st.s)
		wantText(t, v.Message, "did not answer in time", "hook-0")
	})
}
