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
	fail := func(line, column int, message string) (*yaml.Node, *ConfigError) {
		return nil, invalid(file, line, column, message)
	}
	if len(data) > maxFile {
		return fail(1, 1, "the file is larger than 1 MiB")
	}
	isJSON := strings.HasSuffix(file, ".json")
	data, at, message := decode(data, icode)
	if message == "" {
		at, message = unreadable(data, isJSON)
	}
	if message != "" {
		line, column := place(data, at)
		return fail(line, column, message)
	}
	if isJSON {
		return parseJSON(file, data)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return fail(1, 1, err.Error())
	}
	var doc, next yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		return fail(1, 1, "the file is empty; remove it if there are no hooks")
	case err != nil:
		return fail(syntax(err))
	}
	switch err := loader.Load(&next); {
	case err == nil:
		return fail(next.Line, next.Column, "a second document begins here; only one is allowed")
	case !errors.Is(err, io.EOF):
		return fail(syntax(err))
	}
	if len(doc.Content) == 0 {
		return fail(1, 1, "the file is empty; remove it if there are no hooks")
	}
	return doc.Content[0], nil
}

// invalid is a mistake at a place of a file, counted from 1.
func invalid(file string, line, column int, message string) *ConfigError {
	return &ConfigError{File: file, Line: max(line, 1), Column: max(column, 1), Message: message, Finding: FindingInvalid}
}

func syntax(err error) (line, column int, message string) {
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		return le.Mark.Line, le.Mark.Column, "not readable as YAML: " + le.Message
	}
	return 1, 1, "not readable as YAML: " + err.Error()
}

// unreadable finds the first byte that no reader should have to guess about.
func unreadable(data []byte, isJSON bool) (at int, message string) {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return i, "invalid UTF-8; save the file as UTF-8"
		case r < 0x20 && r != '\t' && r != '\n' && r != '\r':
			return i, "a control character"
		case !isJSON && (r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff):
			return i, "a control character"
		}
		i += n
	}
	return 0, ""
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
		return nil, invalid(file, line, column, "not readable as JSON: "+err.Error())
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
