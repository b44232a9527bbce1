package agents

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/fermata-hitl/fermata/events"
)

// FuzzAgentCommand: whatever bytes come, a verb reads them as a command of proper
// form or says why not, and never breaks.
func FuzzAgentCommand(f *testing.F) {
	const id, secret = events.ID("01arz3ndektsv4rrffq69g5fav"), "0123456789abcdef"
	text, digest := "say <b>", events.DigestOf([]byte(`{}`))
	tool := &events.Tool{Name: "bash", Kind: "shell"}
	seeds := map[string][]any{
		events.VerbCores:       {events.Cores{}},
		events.VerbSessionOpen: {events.SessionOpen{Agent: "generic", Native: "s", Cwd: "/w"}, events.SessionOpen{}},
		events.VerbPropose: {
			events.Propose{Operation: id, Secret: secret, Kind: events.KindToolCall, Tool: tool, Args: []byte(`{"a":1}`)},
			events.Propose{Operation: id, Secret: secret, Kind: events.KindUserPrompt, Text: &text, TimeoutMS: 1},
		},
		events.VerbAwait:            {events.Await{Operation: id, Secret: secret}},
		events.VerbCommit:           {events.Commit{Operation: id, Secret: secret, Digest: digest}},
		events.VerbReceipt:          {events.Receipt{Operation: id, Secret: secret}},
		events.VerbFinish:           {events.Finish{Operation: id, Secret: secret, Outcome: events.OutcomeOK, Ran: digest, Result: &events.ToolResult{}}},
		events.VerbWithdraw:         {events.Withdraw{Operation: id, Secret: secret}},
		events.VerbCheck:            {events.Check{Kind: events.KindInjection, Text: &text}},
		events.VerbInterrupt:        {events.SessionSignal{Turn: "t"}},
		events.VerbMessageWithdrawn: {events.MessageWithdrawn{Operation: id}},
		events.VerbObserve:          {events.Observe{Event: events.SubAgentEnd}},
	}
	verbs := doorVerbs()
	names := slices.Sorted(maps.Keys(verbs))
	for i, name := range names {
		f.Add(uint8(i), []byte(nil))
		for _, c := range seeds[name] {
			packed, err := events.Encode(c)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), packed)
			plain, err := json.Marshal(c)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), plain)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		name := names[int(which)%len(names)]
		run, err := verbs[name].read(data)
		if (run == nil) == (err == nil) {
			t.Fatalf("read gave run %v and error %v", run != nil, err)
		}
		if err != nil && !utf8.ValidString(refuse(events.RejectMalformed, "%s", err).Hint) {
			t.Fatalf("the hint of a refusal is no UTF-8: %q", err)
		}
		var c events.Propose
		if _, bad := events.DecodeCommand(data, &c); bad != nil || err != nil || name != events.VerbPropose {
			return
		}
		p := proposal(caller{}, c)
		if p.Kind != events.KindToolCall && !json.Valid(p.Args) || p.Kind == events.KindToolCall && p.Tool.Name == "" || p.Path == "" {
			t.Fatalf("%q was read as %+v", data, p)
		}
	})
}
