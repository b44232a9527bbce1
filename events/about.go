package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxAbout bounds [About], bytes.
const maxAbout = 240

// About is the one line that tells what arguments, canonical JSON, are about: the
// first line of the string that says most, cut at 240 bytes with … at its end, and
// with … where further lines follow. It is not escaped: a screen must do that.
func About(args []byte) string {
	var text string
	if !bytes.HasPrefix(args, []byte(`"`)) || json.Unmarshal(args, &text) != nil {
		text = tellingMember(args)
	}
	text = strings.TrimLeft(text, "\n")
	line, rest, _ := strings.Cut(text, "\n")
	if len(line) <= maxAbout {
		if strings.TrimSpace(rest) != "" {
			line += " …"
		}
		return line
	}
	cut := maxAbout - len("…")
	for cut > 0 && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return line[:cut] + "…"
}

// claimed reports whether an argument is what the model says of its own call: it never
// stands for the call.
func claimed(name string) bool {
	switch strings.ToLower(name) {
	case "description", "reason", "explanation", "justification":
		return true
	}
	return false
}

// tellingMember picks the member of an object that says most, else its first string,
// else what there is.
func tellingMember(args []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil {
		return string(args)
	}
	var text string
	for _, name := range [...]string{"command", "cmd", "file_path", "path", "filePath", "url", "pattern", "query"} {
		if raw, ok := members[name]; ok && json.Unmarshal(raw, &text) == nil {
			return text
		}
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	if _, err := dec.Token(); err != nil {
		return string(args)
	}
	first := ""
	for dec.More() {
		var raw json.RawMessage
		name, err := dec.Token()
		if err != nil {
			return first
		}
		if err := dec.Decode(&raw); err != nil {
			return first
		}
		if claimed(fmt.Sprint(name)) {
			continue
		}
		if json.Unmarshal(raw, &text) == nil {
			return text
		}
		if first == "" {
			first = string(raw)
		}
	}
	return first
}
