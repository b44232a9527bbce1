package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/core"
)

// maxVerdict bounds what a hook may write as its verdict.
const maxVerdict = 1 << 20

// verdict is what a hook wrote. Its zero value is no opinion.
type verdict struct {
	action   string // in lower case; "" for none
	reason   string
	override []byte // the bytes of args_override, nil for none
	reminder string // system_reminder
	context  string // extra_context
}

// verdictKeys are the keys that mean something, with the type that each must
// have.
var verdictKeys = []string{"action", "reason", "args_override", "system_reminder", "extra_context"}

// decodeVerdict reads a verdict strictly: whatever could be a decision that was
// written wrongly is an error, because reading it as no opinion would allow.
// Nothing written gives the zero verdict and empty true.
func decodeVerdict(data []byte) (v verdict, empty bool, err error) {
	if len(data) == 0 {
		return v, true, nil
	}
	if len(data) > maxVerdict {
		return v, false, errors.New("the verdict is larger than 1 MiB")
	}
	// The canonical form refuses, with the place: a byte order mark, invalid
	// UTF-8 and JSON, a second document, and duplicate keys at any depth.
	if _, err := core.Canonical(data); err != nil {
		return v, false, fmt.Errorf("the verdict is not readable: %w", err)
	}
	if !isObject(data) {
		return v, false, fmt.Errorf("the verdict is not a JSON object but begins with %q at byte %d", firstRune(data), leading(data))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return v, false, fmt.Errorf("the verdict is not readable: %w", err)
	}
	if len(fields) == 0 {
		return v, true, nil
	}
	if err := checkKeys(fields); err != nil {
		return v, false, err
	}
	v, err = readVerdict(fields)
	return v, false, err
}

func leading(data []byte) int { return len(data) - len(bytes.TrimLeft(data, " \t\r\n")) }

func firstRune(data []byte) rune {
	for _, r := range string(data[leading(data):]) {
		return r
	}
	return 0
}

// checkKeys wants at least one known key, and none that is known but for its
// case.
func checkKeys(fields map[string]json.RawMessage) error {
	known := false
	var near []string
	for key := range fields {
		if slices.Contains(verdictKeys, key) {
			known = true
		} else if i := slices.IndexFunc(verdictKeys, func(k string) bool { return strings.EqualFold(k, key) }); i >= 0 {
			near = append(near, fmt.Sprintf("the verdict's key %q must be written %q", clip(key), verdictKeys[i]))
		}
	}
	if len(near) > 0 {
		slices.Sort(near)
		return errors.New(near[0])
	}
	if !known {
		return fmt.Errorf("the verdict has none of the keys %s", strings.Join(verdictKeys, ", "))
	}
	return nil
}

func readVerdict(fields map[string]json.RawMessage) (verdict, error) {
	text := map[string]string{}
	for _, key := range verdictKeys {
		raw, ok := fields[key]
		if !ok {
			continue
		}
		if key == "args_override" {
			if !isObject(raw) {
				return verdict{}, errors.New("the verdict's args_override must be an object")
			}
			continue
		}
		if raw[0] != '"' {
			return verdict{}, fmt.Errorf("the verdict's %s must be a string", key)
		}
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return verdict{}, fmt.Errorf("the verdict's %s is not readable: %w", key, err)
		}
		text[key] = s
	}
	v := verdict{
		action: strings.ToLower(text["action"]), reason: text["reason"], override: fields["args_override"],
		reminder: text["system_reminder"], context: text["extra_context"],
	}
	if _, written := fields["action"]; written && !slices.Contains([]string{"allow", "block", "modify", "ask"}, v.action) {
		return verdict{}, fmt.Errorf("the verdict's action %q is none of allow, block, modify, ask", clip(text["action"]))
	}
	return v, v.coherent()
}

// coherent refuses a verdict whose parts contradict each other: one that gives
// new arguments and an action that would run the old ones, or the reverse.
func (v verdict) coherent() error {
	switch {
	case v.action == "modify" && v.override == nil:
		return errors.New("the verdict's action modify needs args_override")
	case (v.action == "" || v.action == "allow") && v.override != nil:
		return errors.New("the verdict's args_override needs the action modify or ask")
	}
	return nil
}
