package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"time"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// writtenPayload is a payload as a hook gets it, or as much of one as a person
// cares to write.
type writtenPayload struct {
	Event     events.HookEvent `json:"event"`
	Agent     events.Agent     `json:"agent"`
	SessionID string           `json:"session_id"`
	Profile   string           `json:"profile"`
	Cwd       string           `json:"cwd"`
	Tool      *struct {
		Name   string          `json:"name"`
		Kind   string          `json:"kind"`
		CallID string          `json:"call_id"`
		Args   json.RawMessage `json:"args"`
	} `json:"tool"`
	Text      json.RawMessage `json:"text"`
	Injected  bool            `json:"injected"`
	Input     string          `json:"input"`
	Result    *writtenResult  `json:"result"`
	Path      string          `json:"path"`
	Turn      string          `json:"turn_id"`
	Reason    string          `json:"reason"`
	Available *bool           `json:"confirmation_available"`
	Attempt   int             `json:"attempt"`
}

// writtenResult is what a tool gave back.
type writtenResult struct {
	Text             string `json:"text"`
	Error            string `json:"error"`
	DurationMS       int64  `json:"duration_ms"`
	Failed           bool   `json:"failed"`
	ApprovalRejected bool   `json:"approval_rejected"`
	RejectionSource  string `json:"rejection_source"`
	HookDenied       bool   `json:"hook_denied"`
	HookConfirmation string `json:"hook_confirmation"`
}

// rehearsed is the operation of a dry run.
type rehearsed struct {
	hooks.Payload
	agent events.Agent
}

// decodePayload reads a payload and fills in what it leaves out. What is not
// understood besides is passed over, as hooks themselves would.
func (c cli) decodePayload(text []byte, event events.HookEvent, dir string) (rehearsed, error) {
	var w writtenPayload
	if err := json.Unmarshal(text, &w); err != nil {
		return rehearsed{}, c.fault(words.RunBadPayload, c.wrongType(err))
	}
	if w.Event != "" && w.Event != event {
		return rehearsed{}, c.fault(words.RunOtherEvent, w.Event, event)
	}
	p := hooks.Payload{
		Event: event, Timestamp: time.Now(), SessionID: cmp.Or(w.SessionID, "dry-run"), Profile: w.Profile, Cwd: dir,
		Text: w.Text, Input: w.Input, Injected: w.Injected, Path: w.Path, Turn: w.Turn, Reason: w.Reason,
		ConfirmationAvailable: w.Available == nil || *w.Available, Attempt: w.Attempt, OperationID: engine.NewID(time.Now()),
	}
	if w.Cwd != "" {
		p.Cwd = filepath.Clean(w.Cwd)
		if !filepath.IsAbs(p.Cwd) {
			p.Cwd = filepath.Join(dir, p.Cwd)
		}
	}
	if r := w.Result; r != nil {
		result := hooks.ResultPayload(*r)
		p.Result = &result
	}
	if w.Tool != nil {
		p.Tool = events.Tool{Name: w.Tool.Name, Kind: cmp.Or(w.Tool.Kind, "other"), CallID: cmp.Or(w.Tool.CallID, "dry-run-1")}
		args, err := agents.AddKindName(w.Tool.Args, p.Tool.Kind)
		if err != nil {
			return rehearsed{}, c.fault(words.RunBadPayload, err)
		}
		p.Args = args
	}
	return rehearsed{p, cmp.Or(w.Agent, "generic")}, c.complete(p)
}

// wrongType says which member has another type than a payload's, in the words
// of JSON.
func (c cli) wrongType(err error) error {
	var of *json.UnmarshalTypeError
	if !errors.As(err, &of) {
		return err
	}
	return c.fault(words.RunWrongType, cmp.Or(of.Field, "payload"), of.Value, jsonType(of.Type.Kind()))
}

func jsonType(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Struct, reflect.Pointer, reflect.Map:
		return "object"
	default:
		return "number"
	}
}

// complete refuses a payload that lacks what its event cannot do without.
func (c cli) complete(p hooks.Payload) error {
	switch p.Event {
	case events.BeforeToolCall, events.AfterToolCall, events.ToolError:
		if p.Tool.Name == "" {
			return c.fault(words.RunWantsMember, "tool.name")
		}
	case events.UserPromptSubmit:
		var text string
		if json.Unmarshal(p.Text, &text) != nil {
			return c.fault(words.RunWantsMember, "text")
		}
	}
	return nil
}
