package frontdesk

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fermata-hitl/fermata/events"
)

// FuzzCommand: whatever bytes come, a verb reads them as a command of proper
// form or says why not, and never breaks.
func FuzzCommand(f *testing.F) {
	id := events.ID("01arz3ndektsv4rrffq69g5fav")
	digest := events.DigestOf([]byte(`{}`))
	seeds := map[string][]any{
		events.VerbHello:     {events.Hello{Kind: events.FrontendTUI, Capable: true, Name: "tui on pts/3"}, events.Hello{Kind: "toaster"}},
		events.VerbRenew:     {events.Renew{}, events.Renew{Input: true}},
		events.VerbBye:       {events.Bye{}},
		events.VerbSessions:  {nothing{}},
		events.VerbFind:      {events.Find{Question: id}, events.Find{Operation: id}, events.Find{}},
		events.VerbHistory:   {events.History{}, events.History{Limit: 50}, events.History{Limit: -1}},
		events.VerbRing:      {events.Ring{Question: id}, events.Ring{}},
		events.VerbRun:       {events.RunCommand{Operation: id, Run: id}, events.RunCommand{Run: id}, events.RunCommand{Operation: id}},
		events.VerbSync:      {events.Sync{}, events.Sync{Cursor: id}},
		events.VerbShow:      {events.Show{Question: id, Version: 1, Offset: 262144}, events.Show{Question: id, Version: -1}},
		events.VerbReceived:  {events.Received{Questions: []events.ID{id, id}}, events.Received{Questions: []events.ID{""}}},
		events.VerbPresented: {events.Drawn{Question: id, Digest: digest}},
		events.VerbClaim:     {events.ClaimCommand{Question: id}, events.ClaimCommand{}},
		events.VerbRelease:   {events.ReleaseCommand{Question: id, Claim: 7}},
		events.VerbRespond: {
			events.Respond{Question: id, Digest: digest, Claim: 7, Answer: events.AnswerCancel, Text: "use the staging db", Human: true},
			events.Respond{Question: id, Digest: digest, Answer: "maybe", Text: "\xff"},
		},
	}
	verbs := newVerbs()
	var names []string
	for name := range verbs {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		for _, c := range seeds[name] {
			packed, err := events.Encode(c)
			if err != nil {
				f.Fatal(err)
			}
			plain, err := json.Marshal(c)
			if err != nil {
				f.Fatal(err)
			}
			for _, data := range [][]byte{packed, plain, packed[:len(packed)-1], append(slices.Clone(packed), 0xc0)} {
				f.Add(uint8(i), data)
			}
		}
		f.Add(uint8(i), []byte{0xdd, 0xff, 0xff, 0xff, 0xff})
		f.Add(uint8(i), bytes.Repeat([]byte{0x91}, 100))
		f.Add(uint8(i), []byte(strings.Repeat(`{"a":`, 100)))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		v := verbs[names[int(which)%len(names)]]
		run, err := v.read(data)
		if (run == nil) == (err == nil) {
			t.Fatalf("read gave run %v and error %v", run != nil, err)
		}
		if err != nil && !utf8.ValidString(refused(events.RejectMalformed, "%s", err).Hint) {
			t.Fatalf("the hint of a refusal is no UTF-8: %q", err)
		}
	})
}
