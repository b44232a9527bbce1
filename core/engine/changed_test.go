package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

func TestB44B46WhatHooksMadeOfACall(t *testing.T) {
	names := func(list []events.Hook) (ids []string) {
		for _, h := range list {
			ids = append(ids, h.ID)
		}
		return ids
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	bubble(t, "B44 B46 a first question tells what hooks made of what the agent asked for, and which did", func(t *testing.T) {
		r, s := chain(t, "first", "looks", "second", "asks")
		r.hook["first"] = sets(`{"path":"b"}`)
		r.hook["second"] = sets(`{"mode":"append"}`)
		r.hook["asks"] = asks
		c := r.propose(`{"path":"a"}`)
		q := s.question()
		want := []events.Change{{Name: "mode", New: raw(`"append"`)}, {Name: "path", Old: raw(`"a"`), New: raw(`"b"`)}}
		if d := cmp.Diff(want, q.Changed); d != "" || q.Previous != -1 || q.Attempt != 0 {
			t.Errorf("previous %d, attempt %d (-want +got):\n%s", q.Previous, q.Attempt, d)
		}
		if d := cmp.Diff([]string{"first", "second"}, names(q.ChangedBy)); d != "" {
			t.Error(d)
		}
		r.restart() // what the log says is the same
		r.send(c.p)
		again := r.attach("uid:1").questionOf(c)
		if d := cmp.Diff([]any{q.Changed, q.ChangedBy}, []any{again.Changed, again.ChangedBy}); d != "" {
			t.Error(d)
		}
	})
	bubble(t, "B44 nothing changed, or changed back, is nothing to tell", func(t *testing.T) {
		r, s := chain(t, "first", "second", "asks")
		r.hook["first"], r.hook["second"] = sets(`{"path":"b"}`), sets(`{"path":"a"}`)
		r.hook["asks"] = asks
		r.propose(`{"path":"a"}`)
		if q := s.question(); len(q.Changed)+len(q.ChangedBy) != 0 {
			t.Errorf("%s", toJSON(q))
		}
	})
	bubble(t, "B46 a repeated question tells of what came behind the yes", func(t *testing.T) {
		r, s := chain(t, "first", "asks", "late")
		r.hook["first"], r.hook["asks"], r.hook["late"] = sets(`{"path":"b"}`), asks, sets(`{"mode":"append"}`)
		c := r.propose(`{"path":"a"}`)
		first := s.question()
		s.answer(first, events.AnswerContinue)
		r.until("it asks again", func() bool { return s.questionOf(c).ID != first.ID })
		q := s.questionOf(c)
		if d := cmp.Diff([]events.Change{{Name: "mode", New: raw(`"append"`)}}, q.Changed); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"late"}, names(q.ChangedBy)); d != "" {
			t.Error(d)
		}
	})
}
