package events_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

var update = flag.Bool("update", false, "write the golden files anew")

// wireValues is everything that crosses a process boundary or stands in the
// log, by the golden file that holds it. The values are zero here; [fill] gives
// every field a value.
func wireValues() map[string][]any {
	return map[string][]any{
		"events": allEvents(),
		"commands": {
			events.Hello{},
			events.Renew{},
			events.Bye{},
			events.Find{},
			events.Sync{},
			events.Show{},
			events.Received{},
			events.Drawn{},
			events.ClaimCommand{},
			events.ReleaseCommand{},
			events.Respond{},
			events.History{},
			events.Ring{},
			events.RunCommand{},
		},
		"replies": {
			events.HelloReply{},
			events.RenewReply{},
			events.ByeReply{},
			events.FindReply{},
			events.SyncReply{},
			events.ShowReply{},
			events.ClaimReply{},
			events.Ack{},
			events.HistoryReply{},
			events.RingReply{},
			events.RunReply{},
			events.Refused{},
		},
		"feed": {
			events.Live{},
			events.Announce{},
			events.Question{},
			events.Line{},
			events.RunLine{},
			events.End{},
			events.Claim{},
			events.LiveClaim{},
			events.Change{},
			events.SessionHead{},
		},
		"agent": {events.HookCall{}, events.HookLine{}, events.HookReceipt{}},
		"operations": {
			events.Cores{},
			events.CoresReply{},
			events.SessionOpen{},
			events.SessionOpenReply{},
			events.Propose{},
			events.Await{},
			events.OperationReply{},
			events.OperationVerdict{},
			events.Commit{},
			events.Receipt{},
			events.Withdraw{},
			events.Finish{},
			events.FinishReply{},
			events.ToolResult{},
			events.SessionSignal{},
			events.MessageWithdrawn{},
			events.Observe{},
			events.Check{},
			events.CheckReply{},
		},
		"parts": {events.Body{}, events.Version{}, events.Tool{}, events.Hook{}},
	}
}

// allEvents is one value of every event type, the questions' once a gate.
func allEvents() []any {
	all := []any{
		events.Genesis{},
		events.SessionOpened{},
		events.SessionClosed{},
		events.TurnStarted{},
		events.TurnEnded{},
		events.Interrupted{},
		events.BuildChanged{},
		events.OperationProposed{},
		events.HookStarted{},
		events.HookRan{},
		events.ArgumentsChanged{},
		events.RecheckStarted{},
		events.OperationChecked{},
		events.OperationCommitted{},
		events.OperationDelivered{},
		events.OperationRefused{},
		events.OperationAborted{},
		events.OperationFinished{},
		events.AnswerRejected{},
	}
	for _, g := range []events.Gate{events.GateHook, events.GateApproval} {
		all = append(all, events.Request{Gate: g}, events.Presented{Gate: g}, events.Claimed{Gate: g},
			events.Released{Gate: g}, events.Response{Gate: g}, events.Withdrawn{Gate: g})
	}
	return all
}

func TestWireGoldens(t *testing.T) {
	for file, values := range wireValues() {
		t.Run(file, func(t *testing.T) {
			var text strings.Builder
			for _, v := range values {
				writeGolden(t, &text, wireName(v)+", zero", v)
				writeGolden(t, &text, wireName(v), fill(v))
			}
			compareGolden(t, file, text.String())
		})
	}
}

func TestMessageGolden(t *testing.T) {
	m := sampleMessage()
	data, hash, err := events.EncodeMessage(m)
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "message", fmt.Sprintf("== Message, hash %s\n%s%s", hash, indent(t, m), hexLines(data)))

	got, err := events.DecodeMessage(data)
	if err != nil {
		t.Fatal(err)
	}
	m.Hash = hash
	if d := cmp.Diff(m, got); d != "" {
		t.Errorf("decoded message differs (-want +got):\n%s", d)
	}
}

// TestEveryWireTypeHasAGolden reads the package's source, so that a new type
// cannot be forgotten.
func TestEveryWireTypeHasAGolden(t *testing.T) {
	seen := map[string]bool{"Message": true, "LogSubject": true, "DoorSubject": true, "AgentDoorSubject": true, "Pane": true} // not on the wire as such
	types := map[events.Type]bool{}
	for _, values := range wireValues() {
		for _, v := range values {
			seen[reflect.TypeOf(v).Name()] = true
			if e, ok := v.(events.Event); ok {
				types[e.EventType()] = true
			}
		}
	}
	for _, name := range exportedStructs(t) {
		if !seen[name] {
			t.Errorf("type %s has no golden: add it to wireValues", name)
		}
	}
	for _, typ := range events.Types() {
		if !types[typ] {
			t.Errorf("event %s has no golden: add it to allEvents", typ)
		}
	}
	if len(types) != len(events.Types()) {
		t.Errorf("%d event types in goldens, %d in Types()", len(types), len(events.Types()))
	}
}

// writeGolden adds a value's two forms, and checks that both are read back as
// the same value.
func writeGolden(t *testing.T, w *strings.Builder, name string, v any) {
	t.Helper()
	data, err := events.Encode(v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	fmt.Fprintf(w, "== %s\n%s%s", name, indent(t, v), hexLines(data))

	compact, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for form, b := range map[string][]byte{"msgpack": data, "json": compact} {
		back := reflect.New(reflect.TypeOf(v))
		if _, err := events.DecodeCommand(b, back.Interface()); err != nil {
			t.Errorf("%s: read back from %s: %v", name, form, err)
			continue
		}
		if d := cmp.Diff(withoutGate(v), withoutGate(back.Elem().Interface())); d != "" {
			t.Errorf("%s: read back from %s (-want +got):\n%s", name, form, d)
		}
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "wire", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("the wire format changed; stored logs and other programs depend on it.\n"+
			"If that is meant, run go test ./events -update (-want +got):\n%s", d)
	}
}

func wireName(v any) string {
	if e, ok := v.(events.Event); ok {
		return string(e.EventType())
	}
	return reflect.TypeOf(v).Name()
}

// indent is the readable form.
func indent(t *testing.T, v any) string {
	t.Helper()
	compact, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

func hexLines(b []byte) string {
	var s strings.Builder
	for line := range slices.Chunk(b, 32) {
		s.WriteString(hex.EncodeToString(line) + "\n")
	}
	return s.String()
}

// withoutGate clears what the wire name carries instead of the body.
func withoutGate(v any) any {
	r := reflect.New(reflect.TypeOf(v)).Elem()
	r.Set(reflect.ValueOf(v))
	if g := r.FieldByName("Gate"); g.IsValid() && isEvent(v) {
		g.SetString("")
	}
	return r.Interface()
}

func isEvent(v any) bool { _, ok := v.(events.Event); return ok }

func exportedStructs(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, file := range parseSources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && s.Name.IsExported() {
				if _, ok := s.Type.(*ast.StructType); ok {
					names = append(names, s.Name.Name)
				}
			}
			return true
		})
	}
	return names
}

func parseSources(t *testing.T) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
