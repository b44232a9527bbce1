package hooks

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fermata-hitl/fermata/events"
)

func TestPayload(t *testing.T) {
	tool := events.Tool{Name: "Bash", Kind: "shell", CallID: "c1"}
	const head = `{"schema":1,"event":"EVENT","timestamp":"2026-05-14T14:00:00.250000Z","session_id":"s-1","profile":"Code","cwd":"/w<&>"`
	const call = `,"tool":{"name":"Bash","kind":"shell","call_id":"c1","args":{"command":"echo <a> & b\u2028","n":1.0}}`
	const gate = `,"confirmation_available":true,"attempt":1,"operation_id":"01hzzzzzzzzzzzzzzzzzzzzzzz"}`
	const id = `,"operation_id":"01hzzzzzzzzzzzzzzzzzzzzzzz"}`
	for _, tc := range []struct {
		event events.HookEvent
		give  Payload
		want  string
	}{
		{events.BeforeToolCall, Payload{}, call + gate},
		{events.BeforeToolCall, Payload{Path: "main > a#1", Turn: "t7"}, call + `,"path":"main > a#1","turn_id":"t7"` + gate},
		{
			events.AfterToolCall,
			Payload{Result: &ResultPayload{Text: "<ok>\n", DurationMS: 42}},
			call + `,"result":{"text":"<ok>\n","duration_ms":42,"error":false,"failed":false,"approval_rejected":false}` + id,
		},
		{
			events.AfterToolCall,
			Payload{Result: &ResultPayload{Text: "exit status 1", Failed: true}},
			call + `,"result":{"text":"exit status 1","duration_ms":0,"error":false,"failed":true,"approval_rejected":false}` + id,
		},
		{
			events.ToolError,
			Payload{Result: &ResultPayload{Error: "no such tool"}},
			call + `,"result":{"text":"no such tool","duration_ms":0,"error":true,"failed":true,"approval_rejected":false}` + id,
		},
		{
			events.AfterToolCall,
			Payload{Result: &ResultPayload{Text: "no", ApprovalRejected: true, RejectionSource: "hook", HookDenied: true, HookConfirmation: "declined"}},
			call + `,"result":{"text":"no","duration_ms":0,"error":false,"failed":true,"approval_rejected":true,"rejection_source":"hook","hook_denied":true,"hook_confirmation":"declined"}` + id,
		},
		{
			events.AfterToolCall,
			Payload{Result: &ResultPayload{Text: "no", ApprovalRejected: true, RejectionSource: "user"}},
			call + `,"result":{"text":"no","duration_ms":0,"error":false,"failed":true,"approval_rejected":true,"rejection_source":"user","hook_denied":false}` + id,
		},
		{events.UserPromptSubmit, Payload{Text: []byte(`"a <b> \u2028"`), Input: "prompt"}, `,"text":"a <b> \u2028","injected":false,"input":"prompt"` + gate},
		{events.UserPromptSubmit, Payload{Text: []byte(`"b"`), Input: "injection", Injected: true}, `,"text":"b","injected":true,"input":"injection"` + gate},
		{events.SessionStart, Payload{}, id},
		{events.SessionRestored, Payload{}, `,"restored_session_id":"s-1"` + id},
		{events.SessionEnd, Payload{Reason: "agent_gone"}, `,"reason":"agent_gone"` + id},
		{events.BeforeTurn, Payload{Turn: "t7"}, `,"turn_id":"t7"` + id},
		{events.AfterTurn, Payload{Turn: "t7"}, `,"turn_id":"t7"` + id},
		{events.AfterTurn, Payload{Turn: "t7", Reason: "interrupted"}, `,"status":"interrupted","failed":true,"turn_id":"t7","reason":"interrupted"` + id},
		{events.AfterTurn, Payload{Reason: "ok"}, `,"status":"ok","failed":false,"reason":"ok"` + id},
		{events.UserInterrupt, Payload{Turn: "t7"}, `,"turn_id":"t7"` + id},
		{events.SubAgentStart, Payload{Path: "main > reviewer#1"}, `,"sub_agent":{"name":"reviewer","invocation_id":"main > reviewer#1"},"path":"main > reviewer#1"` + id},
		{events.SubAgentEnd, Payload{Reason: "cancelled"}, `,"sub_agent":{},"status":"cancelled","failed":true,"reason":"cancelled"` + id},
		{events.PreCompact, Payload{Reason: "force"}, `,"trigger":"force","reason":"force"` + id},
		{events.WorkflowRunStart, Payload{Path: "w1"}, `,"run_id":"w1","path":"w1"` + id},
		{events.WorkflowRunEnd, Payload{Path: "w1", Reason: "failed"}, `,"run_id":"w1","outcome":"failed","path":"w1","reason":"failed"` + id},
		{events.ApprovalRequested, Payload{}, `,"request_id":"01hzzzzzzzzzzzzzzzzzzzzzzz","caller_name":"Code"` + call + id},
		{events.ApprovalResolved, Payload{Reason: "rejected"}, `,"request_id":"01hzzzzzzzzzzzzzzzzzzzzzzz","caller_name":"Code"` + call + `,"approved":false,"reason":"rejected"` + id},
	} {
		t.Run(string(tc.event), func(t *testing.T) {
			base := (&room{cwd: "/w<&>"}).input().Payload
			p := tc.give
			p.Event, p.Timestamp, p.SessionID, p.Profile, p.Cwd, p.Tool, p.Args = tc.event, base.Timestamp, base.SessionID, base.Profile, base.Cwd, tool, base.Args
			p.ConfirmationAvailable, p.Attempt, p.OperationID = true, 1, base.OperationID
			got := string(p.Encode())
			if want := strings.Replace(head, "EVENT", string(tc.event), 1) + tc.want; got != want || !json.Valid([]byte(got)) {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

// Every event has a payload, with nothing set too.
func TestPayloadOfNothing(t *testing.T) {
	for _, event := range append(events.ObservedEvents(), events.BeforeToolCall, events.UserPromptSubmit) {
		if got := (Payload{Event: event, Result: &ResultPayload{}}).Encode(); !json.Valid(got) {
			t.Errorf("%s: %s", event, got)
		}
	}
}

func TestPayloadReadBack(t *testing.T) {
	p := (&room{cwd: "/w<&> 工"}).input().Payload
	got, err := readBack(p.Encode())
	if err != nil || got.SessionID != p.SessionID || got.Profile != p.Profile || got.Cwd != p.Cwd || !bytes.Equal(got.Args, p.Args) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := readBack([]byte("{")); err == nil {
		t.Error("half a payload is read")
	}
}

func FuzzPayload(f *testing.F) {
	for _, args := range []string{`{"a":1.0}`, `"\ud800 <&>"`, `[1e400,-0, {"b":null}]`, ` {"x":"` + "\u2028\xff" + `"} `} {
		f.Add([]byte(args), "s <&>\x00\xff", "main > a#1")
	}
	f.Fuzz(func(t *testing.T, args []byte, text, path string) {
		if !json.Valid(args) {
			return // the core passes only what it could read itself
		}
		p := Payload{
			Event: events.AfterToolCall, SessionID: text, Profile: text, Cwd: text, Tool: events.Tool{Name: text, Kind: text, CallID: text},
			Args: args, Path: path, Turn: text, Reason: text, OperationID: events.ID(text), Result: &ResultPayload{Text: text, RejectionSource: text},
		}
		for _, event := range append(events.ObservedEvents(), events.BeforeToolCall, events.UserPromptSubmit) {
			p.Event = event
			if got := p.Encode(); !json.Valid(got) {
				t.Fatalf("%s: %q", event, got)
			}
		}
		p.Event = events.BeforeToolCall
		encoded := p.Encode()
		if !bytes.Contains(encoded, append([]byte(`"args":`), args...)) {
			t.Fatalf("the arguments %q are not in %q as they were", args, encoded)
		}
		got, err := readBack(encoded)
		if err != nil || !bytes.Equal(got.Args, bytes.TrimSpace(args)) {
			t.Fatalf("%q comes back as %q, %v", args, got.Args, err)
		}
		if utf8.ValidString(text) && got.SessionID != text {
			t.Fatalf("%q comes back as %q", text, got.SessionID)
		}
	})
}
