package events_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// sampleTime is the moment of all samples.
var sampleTime = time.Date(2026, 11, 30, 17, 4, 5, 678_000, time.UTC)

func sampleID(n byte) events.ID {
	return events.NewID(sampleTime, [10]byte{9: n})
}

// samplesByType are plausible words of the types whose values are closed or
// checked; other strings are filled with their field's name.
var samplesByType = map[reflect.Type]any{
	reflect.TypeFor[events.ID]():            sampleID(1),
	reflect.TypeFor[events.Token]():         events.CoreToken("sample"),
	reflect.TypeFor[events.Digest]():        events.DigestOf([]byte("sample")),
	reflect.TypeFor[events.Micros]():        events.At(sampleTime),
	reflect.TypeFor[events.Gate]():          events.GateHook,
	reflect.TypeFor[events.Kind]():          events.KindToolCall,
	reflect.TypeFor[events.Agent]():         events.Agent("gemini"),
	reflect.TypeFor[events.Answer]():        events.AnswerContinue,
	reflect.TypeFor[events.Result]():        events.ResultTimedOut,
	reflect.TypeFor[events.EndReason]():     events.EndDeadline,
	reflect.TypeFor[events.Code]():          events.CodeDeclined,
	reflect.TypeFor[events.Reject]():        events.RejectAlreadyAnswered,
	reflect.TypeFor[events.Effect]():        events.EffectAsk,
	reflect.TypeFor[events.RunOutcome]():    events.RunOK,
	reflect.TypeFor[events.Outcome]():       events.OutcomeOK,
	reflect.TypeFor[events.ReleaseReason](): events.ReleasedLapsed,
	reflect.TypeFor[events.Cause]():         events.CauseHook,
	reflect.TypeFor[events.WhenNobody]():    events.NobodyReject,
	reflect.TypeFor[events.Scope]():         events.ScopeProject,
	reflect.TypeFor[events.FrontendKind]():  events.FrontendTUI,
	reflect.TypeFor[json.RawMessage]():      json.RawMessage(`{"command":"rm -r build"}`),
	reflect.TypeFor[[]byte]():               []byte("bytes\x00\xff"),
}

// fill returns v with every empty field set, the same value each time. A gate
// that is set stays.
func fill(v any) any {
	r := reflect.New(reflect.TypeOf(v)).Elem()
	r.Set(reflect.ValueOf(v))
	fillValue(r, "")
	return r.Interface()
}

func fillValue(v reflect.Value, name string) {
	if s, ok := samplesByType[v.Type()]; ok {
		if v.IsZero() {
			v.Set(reflect.ValueOf(s))
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(100 + len(name)))
	case reflect.Uint64:
		v.SetUint(uint64(70_000 + len(name)))
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0), name)
	case reflect.Struct:
		for i := range v.NumField() {
			tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			fillValue(v.Field(i), tag)
		}
	default:
		panic(fmt.Sprintf("no sample for %s: add its kind here", v.Type()))
	}
}

// sampleMessage holds every event and two bodies.
func sampleMessage() events.Message {
	m := events.Message{
		ID: sampleID(2), Project: events.ProjectToken("/home/ada/shop"),
		Session: events.SessionToken(events.CoreToken("sample"), "gemini", "s-1"), Operation: sampleID(3),
		Turn: "turn-1", At: events.At(sampleTime), Principal: "uid:1000",
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Prev:        events.DigestOf([]byte("the message before")),
		Bodies: []events.Body{
			{Key: events.ArgsBody(0), Salt: salt(1), Data: []byte(`{"command":"rm -r build"}`)},
			{Key: events.ReasonBody(sampleID(1)), Salt: salt(2), Data: []byte("removes a directory")},
		},
	}
	for _, e := range allEvents() {
		m.Events = append(m.Events, fill(e).(events.Event))
	}
	return m
}

func salt(n byte) []byte {
	s := make([]byte, events.SaltSize)
	for i := range s {
		s[i] = n
	}
	return s
}
