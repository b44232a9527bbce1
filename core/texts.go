package core

import (
	"fmt"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// Refusal is all that the texts about one need. Hook is the one that refused,
// failed or asked, zero if none did. Reason is its own explanation, Words what
// the person who said no wants the model to read.
type Refusal struct {
	Code      events.Code
	EndReason events.EndReason
	Kind      events.Kind
	Tool      string
	Hook      events.Hook
	Reason    string
	Words     string
}

// ModelText is what the model reads: that the call did not run, why, and
// whether calling again can help. A person's words stand last, unchanged and
// marked as the user's.
func ModelText(r Refusal) string {
	t := textOf(r)
	var b strings.Builder
	b.WriteString(notRun(r.Kind))
	b.WriteByte(' ')
	b.WriteString(t.why)
	if r.Hook.ID != "" {
		fmt.Fprintf(&b, " (%s)", hookName(r.Hook))
	}
	b.WriteString(". ")
	b.WriteString(t.lastWord(r.Kind))
	if r.Reason != "" {
		b.WriteString("\n\nReason given by the check:\n")
		b.WriteString(r.Reason)
	}
	if r.Words != "" {
		b.WriteString("\n\nThe user's own words:\n")
		b.WriteString(r.Words)
	}
	return b.String()
}

func hookName(h events.Hook) string {
	return fmt.Sprintf("hook %q, %s %s:%d", h.ID, h.Scope, h.File, h.Line)
}

// nouns say what was refused.
var nouns = map[events.Kind]string{
	events.KindToolCall:   "the tool call",
	events.KindUserPrompt: "the prompt",
	events.KindInjection:  "the injected message",
	events.KindRetryNote:  "the retry note",
}

func notRun(k events.Kind) string {
	switch k {
	case events.KindUserPrompt, events.KindInjection, events.KindRetryNote:
		return "T" + nouns[k][1:] + " did not run: it was not submitted."
	}
	return "The tool call did not run."
}

// refusalText is one entry of the catalogue. Why carries no full stop: the hook's
// name may follow.
type refusalText struct{ why, again string }

// The last word of each text: whether trying again can help. {call} and {Calling} stand
// for what trying is called for this kind of operation.
const (
	againIfAsked    = "Do not {call} it again unless the user asks for it."
	againAfterUser  = "Ask the user before you {call} it again; now it could wait in vain once more."
	againUnasked    = "{Calling} it again now would be refused again; go on without it, or tell the user, who is asked when fermata is open."
	againInVain     = "{Calling} it again now would be refused again; go on without it or tell the user."
	againSame       = "{Calling} it again in the same way would end the same way; tell the user that the arguments kept changing."
	againMayHelp    = "Trying again may help: it is checked anew then."
	againMended     = "{Calling} it again cannot help before this is mended; tell the user."
	againLater      = "{Calling} it again may help once Fermata works again; tell the user if it does not."
	againIfWanted   = "{Calling} it again makes sense only if it is still wanted."
	againSmaller    = "{Calling} it again in a smaller form may help."
	againWellFormed = "{Calling} it again may help if it is well-formed JSON without duplicate names."
)

// lastWord tells whether trying again can help, for a kind of operation.
func (t refusalText) lastWord(k events.Kind) string {
	verb, gerund := "call", "Calling"
	switch k {
	case events.KindUserPrompt, events.KindInjection, events.KindRetryNote:
		verb, gerund = "submit", "Submitting"
	case events.KindToolCall:
	}
	return strings.NewReplacer("{call}", verb, "{Calling}", gerund).Replace(t.again)
}

// texts is the catalogue, but for ended operations.
var texts = map[events.Code]refusalText{
	events.CodeDeclined:           {"The user was asked and said no", againIfAsked},
	events.CodeTimedOut:           {"The user was asked and did not answer in time", againAfterUser},
	events.CodeUnavailable:        {"A rule wants the user to be asked, and nobody could be asked", againUnasked},
	events.CodeBlocked:            {"A rule of the user refuses it", againInVain},
	events.CodeRecheckLimit:       {"Its arguments kept changing: checks rewrote them again and again after they had been agreed to", againSame},
	events.CodeRecheckCycle:       {"Its arguments kept changing: after they had been agreed to, checks turned them back into an earlier version", againSame},
	events.CodeChangedAfterCheck:  {"It changed after it had been checked", againMayHelp},
	events.CodeHookFailed:         {"It could not be checked: a check failed", againMended},
	events.CodeHookTimedOut:       {"It could not be checked: a check took too long", againMended},
	events.CodeHookMissing:        {"It could not be checked: the program of a check is missing", againMended},
	events.CodeHookBadVerdict:     {"It could not be checked: a check gave an answer that cannot be understood", againMended},
	events.CodeHooksConfigInvalid: {"It could not be checked: the user's hooks file is broken", againMended},
	events.CodeNotTrusted: {
		"It could not be checked: the project's hooks have changed and the user has not agreed to them yet", againMended,
	},
	events.CodeNoCanonicalForm: {"It could not be checked: its arguments can be read in more than one way", againWellFormed},
	events.CodeTooLarge:        {"It could not be checked: its arguments are too large", againSmaller},
	events.CodeLogUnavailable:  {"It could not be checked: Fermata's log cannot be written", againLater},
	events.CodeCoreUnreachable: {"It could not be checked: Fermata's core cannot be reached", againLater},
	events.CodeNeedsNewerCore:  {"It could not be checked: this needs a newer Fermata", againMended},
}

// unknownText is for a code that this build does not know: no reason to run.
var unknownText = refusalText{"It could not be checked", againMended}

// ends say how an operation ended before it could run, for the model.
var ends = map[events.EndReason]string{
	events.EndTurnEnded:        "its turn ended",
	events.EndInterrupted:      "the user interrupted",
	events.EndMessageWithdrawn: "its message was withdrawn",
	events.EndRunEnded:         "the run that it belongs to ended",
	events.EndSessionChanged:   "the session changed",
	events.EndSessionClosed:    "the session was closed",
	events.EndBuildChanged:     "the model, the profile or the settings changed",
	events.EndAgentGone:        "the agent that asked went away",
	events.EndCallerCancelled:  "whoever called it cancelled it",
	events.EndAnsweredInAgent:  "it was answered in the agent's own dialog",
	events.EndShutdown:         "Fermata was shut down",
	events.EndStoreError:       "Fermata's log failed",
	events.EndInternal:         "something in Fermata failed",
}

// takenText is what an asker hears that comes for a right which was handed out
// before.
func takenText(k events.Kind) string {
	what, ok := nouns[k]
	if !ok {
		what = nouns[events.KindToolCall]
	}
	return "This repetition of " + what + " did not run: the right to run it has been handed out before, and counts once. " +
		"Use the result of the first run; call it anew only if it is still wanted."
}

func textOf(r Refusal) refusalText {
	if r.Code != events.CodeEnded {
		if t, ok := texts[r.Code]; ok {
			return t
		}
		return unknownText
	}
	t := refusalText{"It ended before it could run", againIfWanted}
	if how, ok := ends[r.EndReason]; ok {
		t.why += ", because " + how
	}
	return t
}
