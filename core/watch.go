package core

import (
	"errors"
	"fmt"

	"github.com/fermata-hitl/fermata/events"
)

// watched finds an open run that decides nothing, -1 if there is none of that id.
func (s *State) watched(run events.ID) int {
	if s.End == nil {
		return -1
	}
	for i, w := range s.End.Watch {
		if w.Run == run {
			return i
		}
	}
	return -1
}

// record writes runs that decide nothing. They may begin and end long after
// their operation, and no event of theirs can touch what was decided. A
// repetition is left out: a run begins and ends once.
func record(s State, c Record) (Decision, error) {
	if s.Phase == PhaseNone {
		return Decision{}, errors.New("record: there is no operation")
	}
	d := draft{s: s}
	for _, e := range c.Events {
		run, starts, err := onRecord(e)
		if err != nil {
			return Decision{}, err
		}
		if open := d.s.watched(run) >= 0; open != starts {
			d.add(e)
		}
	}
	if len(d.Events) == 0 {
		return Decision{}, nil
	}
	for _, b := range c.Bodies {
		d.body(b.Key, b.Data)
	}
	return d.Decision, nil
}

// onRecord says of which run an event is, and whether it starts it. Any other
// event than of a run that decides nothing is a fault.
func onRecord(e events.Event) (run events.ID, starts bool, _ error) {
	var hook events.Hook
	atGate := false
	if started, ok := e.(events.HookStarted); ok {
		run, starts, hook, atGate = started.Run, true, started.Hook, started.AtGate()
	} else if ran, ok := e.(events.HookRan); ok {
		run, hook, atGate = ran.Run, ran.Hook, ran.AtGate()
	} else {
		return "", false, fmt.Errorf("record: %T is no hook's run", e)
	}
	if atGate {
		return "", false, fmt.Errorf("record: hook %q has no event and no mode; its run would decide", hook.ID)
	}
	return run, starts, nil
}
