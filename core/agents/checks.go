package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// free is the check of a command that no value is wrong in.
func free[C any](C) error { return nil }

func checkOpen(c events.SessionOpen) error {
	switch {
	case !slices.Contains(events.Agents(), c.Agent):
		return errors.New(`"agent" must be one of the agents that Fermata knows; for others it is "generic"`)
	case c.Native == "" || len(c.Native) > maxNative:
		return fmt.Errorf(`"native" must have 1 to %d bytes`, maxNative)
	case !filepath.IsAbs(c.Cwd):
		return errors.New(`"cwd" must be an absolute path`)
	case c.Parent == "":
		return nil
	}
	_, err := events.ParseToken(string(c.Parent))
	return err
}

func checkPropose(c events.Propose) error {
	if err := checkAwait(events.Await{Operation: c.Operation, Secret: c.Secret}); err != nil {
		return err
	}
	if c.TimeoutMS < 0 || c.TimeoutMS > maxTimeout*1000 {
		return fmt.Errorf("a time limit of %d ms is not possible", c.TimeoutMS)
	}
	if c.Traceparent != "" && !IsTraceparent(c.Traceparent) {
		return errors.New(`"traceparent" must look like 00-<32 hex>-<16 hex>-<2 hex>`)
	}
	return checkWhat(c.Kind, c.Cwd, c.Tool, c.Args, c.Text)
}

func checkCheck(c events.Check) error { return checkWhat(c.Kind, c.Cwd, c.Tool, c.Args, c.Text) }

// checkWhat checks that a command holds what its kind of operation is about, and
// nothing of another.
func checkWhat(k events.Kind, cwd string, tool *events.Tool, args json.RawMessage, text *string) error {
	switch {
	case cwd != "" && !filepath.IsAbs(cwd):
		return errors.New(`"cwd" must be an absolute path`)
	case k == events.KindToolCall && (tool == nil || len(args) == 0 || text != nil):
		return errors.New(`a tool_call has "tool" and "args", and no "text"`)
	case k == events.KindToolCall:
		return checkTool(*tool)
	case events.InputWord(k) == "":
		return fmt.Errorf("%.32q is no kind of operation: tool_call, user_prompt, injection or retry_note", k)
	case text == nil || tool != nil || len(args) > 0:
		return fmt.Errorf(`%s has "text", and neither "tool" nor "args"`, k)
	}
	return nil
}

func checkTool(t events.Tool) error {
	switch {
	case t.Name == "":
		return errors.New(`"tool": "name" is missing`)
	case !slices.Contains(events.ToolKinds(), t.Kind):
		return errors.New(`"tool": "kind" must be one of ` + strings.Join(events.ToolKinds(), ", "))
	}
	return nil
}

func checkAwait(c events.Await) error {
	if _, err := events.ParseID(string(c.Operation)); err != nil {
		return err
	}
	return checkSecret(c.Secret)
}

func checkCommit(c events.Commit) error {
	if _, err := events.ParseDigest(string(c.Digest)); err != nil {
		return err
	}
	return checkAwait(events.Await{Operation: c.Operation, Secret: c.Secret})
}

func checkReceiptOf(c events.Receipt) error { return checkAwait(events.Await(c)) }

func checkWithdraw(c events.Withdraw) error { return checkAwait(events.Await(c)) }

func checkFinish(c events.Finish) error {
	switch c.Outcome {
	case events.OutcomeOK, events.OutcomeFailed, events.OutcomeNotRun, events.OutcomeUnknown:
	default:
		return fmt.Errorf("%.32q is no outcome: ok, failed, not_run or unknown", c.Outcome)
	}
	if c.Ran != "" {
		if _, err := events.ParseDigest(string(c.Ran)); err != nil {
			return err
		}
	}
	if c.Result != nil && (c.Result.DurationMS < 0 || c.Result.DurationMS > maxTimeout*1000) {
		return fmt.Errorf("a duration of %d ms is not possible", c.Result.DurationMS)
	}
	return checkAwait(events.Await{Operation: c.Operation, Secret: c.Secret})
}

func checkMessage(c events.MessageWithdrawn) error {
	_, err := events.ParseID(string(c.Operation))
	return err
}

func checkObserve(c events.Observe) error {
	switch c.Event {
	case events.SubAgentStart, events.SubAgentEnd, events.PreCompact, events.WorkflowRunStart, events.WorkflowRunEnd:
		return nil
	}
	return fmt.Errorf("%.32q is not observed here; a verb of its own says it", c.Event)
}

func checkSecret(secret string) error {
	if len(secret) < 16 || len(secret) > 128 {
		return fmt.Errorf("the secret has %d bytes, it must have 16 to 128", len(secret))
	}
	return nil
}

// IsTraceparent reports whether s has the form of a W3C trace parent, version 00.
func IsTraceparent(s string) bool {
	f := strings.Split(s, "-")
	if len(f) != 4 || f[0] != "00" || len(f[1]) != 32 || len(f[2]) != 16 || len(f[3]) != 2 {
		return false
	}
	hex := strings.Trim(f[1]+f[2]+f[3], "0123456789abcdef") == ""
	return hex && strings.Trim(f[1], "0") != "" && strings.Trim(f[2], "0") != ""
}
