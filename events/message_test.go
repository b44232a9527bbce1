package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/fermata-hitl/fermata/events"
)

func TestEncodeMessageRefusesWhatCouldNotBeReadBack(t *testing.T) {
	for name, bodies := range map[string][]events.Body{
		"short salt":       {{Key: "args/0", Salt: []byte("short"), Data: []byte("{}")}},
		"no salt":          {{Key: "args/0", Data: []byte("{}")}},
		"one key twice":    {{Key: "args/0", Salt: salt(1), Data: []byte("{}")}, {Key: "args/0", Salt: salt(1), Data: []byte("[]")}},
		"one body twice":   {{Key: "args/0", Salt: salt(1), Data: []byte("{}")}, {Key: "args/0", Salt: salt(1), Data: []byte("{}")}},
		"salt of 33 bytes": {{Key: "args/0", Salt: append(salt(1), 1), Data: []byte("{}")}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := events.EncodeMessage(events.Message{Bodies: bodies}); err == nil {
				t.Error("encoded")
			}
		})
	}
}

// stored is a message as it lies in the log, for changing behind the codec's
// back.
type stored struct {
	Envelope []byte        `json:"e"`
	Bodies   []events.Body `json:"b"`
}

func TestDecodeMessageChecksBodies(t *testing.T) {
	m := sampleMessage()
	tests := []struct {
		name   string
		change func(*stored)
		ok     bool
		there  bool // the first body can be read
	}{
		{"untouched", func(*stored) {}, true, true},
		{"a body left out", func(s *stored) { s.Bodies = s.Bodies[:1] }, true, true},
		{"a body removed", func(s *stored) { s.Bodies[0].Data = nil }, true, false},
		{"a body and its salt removed", func(s *stored) { s.Bodies[0].Salt, s.Bodies[0].Data = nil, nil }, true, false},
		{"another body", func(s *stored) { s.Bodies[0].Data = []byte("{}") }, false, false},
		{"an empty body", func(s *stored) { s.Bodies[0].Data = []byte{} }, false, false},
		{"another salt", func(s *stored) { s.Bodies[0].Salt = salt(9) }, false, false},
		{"another key", func(s *stored) { s.Bodies[0].Key = "args/7" }, false, false},
		{"a removed body of an unknown key", func(s *stored) { s.Bodies[0] = events.Body{Key: "args/7"} }, false, false},
		{"bodies exchanged", func(s *stored) { s.Bodies[0].Key, s.Bodies[1].Key = s.Bodies[1].Key, s.Bodies[0].Key }, false, false},
		{"a body twice", func(s *stored) { s.Bodies = append(s.Bodies, s.Bodies[0]) }, false, false},
		{"bytes moved from the data to the salt", func(s *stored) {
			b := &s.Bodies[0]
			b.Salt, b.Data = append(b.Salt, b.Data[:4]...), b.Data[4:]
		}, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := reopen(t, m)
			test.change(&s)
			b, err := events.Encode(s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := events.DecodeMessage(b)
			if (err == nil) != test.ok {
				t.Fatalf("error %v, want ok %v", err, test.ok)
			}
			if _, there := got.Body(m.Bodies[0].Key); test.ok && there != test.there {
				t.Errorf("Body says there: %v, want %v", there, test.there)
			}
		})
	}
}

func TestDecodeMessageStopsAtWhatOnlyANewerCoreKnows(t *testing.T) {
	for name, replace := range map[string][2]string{
		"event type":      {"SessionClosed", "SessionMelted"},
		"message version": {"\xa1v\x01", "\xa1v\x02"},
	} {
		t.Run(name, func(t *testing.T) {
			s := reopen(t, sampleMessage())
			s.Envelope = bytes.Replace(s.Envelope, []byte(replace[0]), []byte(replace[1]), 1)
			b, err := events.Encode(s)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := events.DecodeMessage(b); !errors.Is(err, events.ErrUnknownType) {
				t.Errorf("error %v, want ErrUnknownType", err)
			}
			if _, err := events.DecodeEnvelope(b); !errors.Is(err, events.ErrUnknownType) {
				t.Errorf("of the envelope: error %v, want ErrUnknownType", err)
			}
		})
	}
}

func TestDecodeEnvelopePassesBodiesOver(t *testing.T) {
	want := sampleMessage()
	s := reopen(t, want)
	want.Hash, want.Bodies = events.DigestOf(s.Envelope), nil
	s.Bodies[0].Data = []byte("not what was committed to")
	b, err := events.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := events.DecodeEnvelope(b)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("error %v, message (-want +got):\n%s", err, d)
	}
}

func TestTypeHeader(t *testing.T) {
	m := events.Message{Events: []events.Event{events.HookRan{}, events.Request{Gate: events.GateApproval}}}
	if got, want := m.TypeHeader(), "HookRan,ToolApprovalRequest"; got != want {
		t.Errorf("TypeHeader() = %q, want %q", got, want)
	}
}

func reopen(t *testing.T, m events.Message) stored {
	t.Helper()
	b, _, err := events.EncodeMessage(m)
	if err != nil {
		t.Fatal(err)
	}
	var s stored
	dec := msgpack.NewDecoder(bytes.NewReader(b))
	dec.SetCustomStructTag("json")
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDecodeCommandIsStrict(t *testing.T) {
	unknown, err := events.Encode(struct {
		Question events.ID `json:"question"`
		Force    bool      `json:"force"`
	}{sampleID(1), true})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"unknown key in msgpack":   unknown,
		"unknown key in JSON":      []byte(`{"question":"q","force":true}`),
		"two JSON values":          []byte(`{"question":"q"}{}`),
		"text behind the JSON":     []byte(`{"question":"q"} x`),
		"JSON that ends early":     []byte(`{"question":`),
		"another type in JSON":     []byte(`{"question":1}`),
		"a JSON list":              []byte(`["q"]`),
		"nothing":                  nil,
		"a number beyond its type": []byte(`{"question":"q","claim":-1}`),
	} {
		t.Run(name, func(t *testing.T) {
			var c events.ReleaseCommand
			if _, err := events.DecodeCommand(b, &c); err == nil {
				t.Errorf("accepted as %+v", c)
			}
		})
	}
	// Stored events are read leniently: a newer core may have added a key.
	var c events.ReleaseCommand
	if err := events.Decode(unknown, &c); err != nil || c.Question != sampleID(1) {
		t.Errorf("Decode: %+v, %v", c, err)
	}
}

func TestReplyHasTheEncodingOfItsCommand(t *testing.T) {
	want := events.Ack{Seq: 7}
	for _, asJSON := range []bool{false, true} {
		b, err := events.EncodeReply(want, asJSON)
		if err != nil {
			t.Fatal(err)
		}
		var got events.Ack
		back, err := events.DecodeCommand(b, &got)
		if err != nil || back != asJSON || got != want {
			t.Errorf("asJSON %v: read back %+v, asJSON %v, error %v", asJSON, got, back, err)
		}
	}
}

// What an agent may run stands in a reply byte for byte as it was checked.
func TestB64ReplyKeepsTheBytesOfJSON(t *testing.T) {
	args := `{"command":"a < b && c > d  ","n":1.0}`
	b, err := events.EncodeReply(events.OperationReply{Verdict: &events.OperationVerdict{Args: []byte(args)}}, true)
	if err != nil || !strings.Contains(string(b), `"args":`+args) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestRefusedSaysWhatHappened(t *testing.T) {
	r := &events.Refused{Code: events.RejectWithdrawn, EndReason: events.EndDeadline, Who: "core", Hint: "ask again"}
	if got, want := r.Error(), "withdrawn (deadline) by core: ask again"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if got, want := (&events.Refused{Code: events.RejectInternal}).Error(), "internal"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

// FuzzDecodeMessage checks that what is read is a fixed point: written again
// and read again, it is the same message in the same bytes.
func FuzzDecodeMessage(f *testing.F) {
	whole, _, err := events.EncodeMessage(sampleMessage())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	for _, e := range allEvents() {
		b, _, err := events.EncodeMessage(events.Message{Events: []events.Event{fill(e).(events.Event)}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, b := range hostile() {
		if len(b) < 1<<16 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := events.DecodeMessage(b)
		if err != nil {
			return
		}
		bare, err := events.DecodeEnvelope(b)
		bare.Bodies = first.Bodies
		if d := cmp.Diff(first, bare); d != "" || err != nil {
			t.Fatalf("not the same message without its bodies (%v):\n%s", err, d)
		}
		for _, body := range first.Bodies {
			if body.Data == nil {
				return // was removed, cannot be written again
			}
		}
		once, hash, err := events.EncodeMessage(first)
		if err != nil {
			t.Fatalf("decoded, but cannot be encoded: %v", err)
		}
		second, err := events.DecodeMessage(once)
		if err != nil {
			t.Fatalf("encoded, but cannot be decoded: %v", err)
		}
		if second.Hash != hash {
			t.Fatalf("hash %s when written, %s when read", hash, second.Hash)
		}
		first.Hash = hash // unknown keys are not written again, so the first hash may differ
		if d := cmp.Diff(first, second); d != "" {
			t.Fatalf("not the same message (-first +second):\n%s", d)
		}
		twice, _, err := events.EncodeMessage(second)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("two encodings of one message (%v)", err)
		}
	})
}

// FuzzDecodeCommand checks every command and reply in both encodings: no
// panic, and what is accepted is a fixed point of the encoding it came in.
func FuzzDecodeCommand(f *testing.F) {
	for _, b := range encodedSamples() {
		f.Add(b)
	}
	for _, group := range []string{"commands", "replies", "feed", "agent"} {
		for _, v := range wireValues()[group] {
			b, err := json.Marshal(fill(v))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte(strings.Repeat(`{"refused":`, 20_000)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, group := range []string{"commands", "replies", "feed", "agent"} {
			for _, v := range wireValues()[group] {
				checkFixedPoint(t, b, v)
			}
		}
	})
}

func checkFixedPoint(t *testing.T, b []byte, zero any) {
	first := pointerTo(zero)
	asJSON, err := events.DecodeCommand(b, first)
	if err != nil {
		return
	}
	once, err := events.EncodeReply(first, asJSON)
	if err != nil {
		t.Fatalf("%T decoded, but cannot be encoded: %v", zero, err)
	}
	second := pointerTo(zero)
	if _, err := events.DecodeCommand(once, second); err != nil {
		t.Fatalf("%T encoded, but cannot be decoded: %v", zero, err)
	}
	twice, err := events.EncodeReply(second, asJSON)
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("%T: two encodings of one value (%v)\n%q\n%q", zero, err, once, twice)
	}
}

func pointerTo(v any) any { return reflect.New(reflect.TypeOf(v)).Interface() }

func TestB4CommandThatSaysTwoThings(t *testing.T) {
	var r events.Respond
	_, err := events.DecodeCommand([]byte(`{"answer":"cancel","human":true,"answer":"continue"}`), &r)
	if err == nil || !strings.Contains(err.Error(), "twice") {
		t.Fatalf("%v %+v", err, r)
	}
}

func TestDeepJSONCommand(t *testing.T) {
	deep := `{"answer":` + strings.Repeat("[", 2<<20)
	var r events.Respond
	if _, err := events.DecodeCommand([]byte(deep), &r); err == nil || !strings.Contains(err.Error(), "deeper") {
		t.Fatal(err)
	}
}
