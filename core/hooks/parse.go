package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds a hooks file.
const maxFile = 1 << 20

// parse reads a file's text into a tree with places. JSON goes by the name's
// extension, never by content.
func parse(file string, icode bool, data []byte) (*yaml.Node, *ConfigError) {
	fail := func(line, column int, text sentence) (*yaml.Node, *ConfigError) {
		return nil, invalid(file, line, column, tell(text))
	}
	if len(data) > maxFile {
		return fail(1, 1, "the file is larger than 1 MiB")
	}
	data, at, wrong := decode(data, icode)
	if wrong.text == "" {
		at, wrong = unreadable(data, isJSON(file))
	}
	if wrong.text != "" {
		line, column := place(data, at)
		return nil, invalid(file, line, column, wrong)
	}
	if isJSON(file) {
		return parseJSON(file, data)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, syntax(file, err)
	}
	var doc, next yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		return fail(1, 1, "the file is empty; remove it if there are no hooks")
	case err != nil:
		return nil, syntax(file, err)
	}
	switch err := loader.Load(&next); {
	case err == nil:
		return fail(next.Line, next.Column, "a second document begins here; only one is allowed")
	case !errors.Is(err, io.EOF):
		return nil, syntax(file, err)
	}
	if len(doc.Content) == 0 {
		return fail(1, 1, "the file is empty; remove it if there are no hooks")
	}
	return doc.Content[0], nil
}

func isJSON(file string) bool { return strings.HasSuffix(file, ".json") }

// invalid is a mistake at a place of a file, counted from 1.
func invalid(file string, line, column int, message Message) *ConfigError {
	return &ConfigError{File: file, Line: max(line, 1), Column: max(column, 1), Message: message, Finding: FindingInvalid}
}

func syntax(file string, err error) *ConfigError {
	line, column, detail := 1, 1, err.Error()
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		line, column, detail = le.Mark.Line, le.Mark.Column, le.Message
	}
	return invalid(file, line, column, quoting(detail))
}

// quoting adds to the words of the YAML reader what they mean where somebody
// wrote a text without quotes, or a regex in the wrong ones.
func quoting(detail string) Message {
	switch {
	case strings.Contains(detail, "unknown escape character"):
		return tell("not readable as YAML: %s; write a regex in single quotes", detail)
	case strings.Contains(detail, "mapping values are not allowed"),
		strings.Contains(detail, "did not find expected ',' or '}'"),
		strings.Contains(detail, "cannot start any token"):
		return tell("not readable as YAML: %s; if a text there holds a sign such as a colon, put it in quotes", detail)
	}
	return tell("not readable as YAML: %s", detail)
}

// unreadable finds the first byte that no reader should have to guess about.
func unreadable(data []byte, isJSON bool) (at int, wrong Message) {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return i, tell(notEncoded, "UTF-8")
		case r < 0x20 && r != '\t' && r != '\n' && r != '\r':
			return i, tell("a control character")
		case !isJSON && (r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff):
			return i, tell("a control character")
		}
		i += n
	}
	return 0, Message{}
}

func place(data []byte, at int) (line, column int) {
	before := data[:at]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// parseJSON builds the same tree as YAML would give: YAML readers refuse some
// legal JSON, such as escaped surrogate pairs.
func parseJSON(file string, data []byte) (*yaml.Node, *ConfigError) {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		at := len(data)
		if se := (*json.SyntaxError)(nil); errors.As(err, &se) {
			at = max(int(se.Offset)-1, 0)
		}
		line, column := place(data, min(at, len(data)))
		return nil, invalid(file, line, column, tell("not readable as JSON: %s", err))
	}
	t := jsonTree{dec: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1, column: 1}
	t.dec.UseNumber()
	return t.node(), nil
}

// jsonTree turns tokens into nodes. The text is known to be valid.
type jsonTree struct {
	dec          *json.Decoder
	data         []byte
	at           int // place up to which line and column are counted
	line, column int
}

func (t *jsonTree) node() *yaml.Node {
	start := int(t.dec.InputOffset())
	for start < len(t.data) && bytes.IndexByte([]byte(" \t\r\n,:"), t.data[start]) >= 0 {
		start++
	}
	t.advance(start)
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: t.line, Column: t.column}
	token, _ := t.dec.Token()
	switch v := token.(type) {
	case json.Delim:
		n.Kind = yaml.SequenceNode
		if v == '{' {
			n.Kind = yaml.MappingNode
		}
		for t.dec.More() {
			n.Content = append(n.Content, t.node())
		}
		_, _ = t.dec.Token() // the closing bracket
	case string:
		n.Tag, n.Value, n.Style = "!!str", v, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!int", v.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", "false"
		if v {
			n.Value = "true"
		}
	default:
		n.Tag = "!!null"
	}
	return n
}

func (t *jsonTree) advance(to int) {
	for t.at < to {
		r, n := utf8.DecodeRune(t.data[t.at:])
		t.at += n
		t.column++
		if r == '\n' {
			t.line, t.column = t.line+1, 1
		}
	}
}
