package place

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ConfigError is what is wrong in config.yaml, and where: line and column from
// 1, Path such as confirmation.timeout_seconds, "" for the file as a whole.
type ConfigError struct {
	File    string
	Line    int
	Column  int
	Path    string
	Message Message
}

// Error implements error.
func (e *ConfigError) Error() string { return e.In(fmt.Sprintf) }

// In gives the error in the language of say, as [Message.In] does.
func (e *ConfigError) In(say func(text string, args ...any) string) string {
	about := e.Message
	if e.Path != "" {
		about = tell("%s: %s", e.Path, about)
	}
	return tell("%s:%d:%d: %s", e.File, e.Line, e.Column, about).In(say)
}

func parse(file string, data []byte) (Config, error) {
	doc, err := document(file, data)
	if err != nil {
		return Config{}, err
	}
	c := Default()
	if doc == nil {
		return c, nil
	}
	r := reader{file: file, keys: Keys(), config: &c}
	if err := r.mapping(doc, ""); err != nil {
		return Config{}, err
	}
	return c, nil
}

// document reads the one YAML document; nil if there is nothing in the file.
func document(file string, data []byte) (*yaml.Node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, yamlError(file, err)
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, yamlError(file, err)
	}
	if err := loader.Load(&second); err == nil {
		return nil, &ConfigError{File: file, Line: max(second.Line, 1), Column: max(second.Column, 1), Message: tell("a second document begins here; only one is allowed")}
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlError(file, err)
	}
	if len(doc.Content) == 0 || empty(doc.Content[0]) {
		return nil, nil
	}
	return doc.Content[0], nil
}

func empty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
}

func yamlError(file string, err error) error {
	line, column, detail := 1, 1, err.Error()
	if at, ok := errors.AsType[*yaml.LoadError](err); ok {
		line, column, detail = max(at.Mark.Line, 1), max(at.Mark.Column, 1), at.Message
	}
	return &ConfigError{File: file, Line: line, Column: column, Message: tell("not readable as YAML: %s", detail)}
}

// reader walks the document along the known keys.
type reader struct {
	file   string
	keys   []Key
	config *Config
}

func (r reader) mapping(n *yaml.Node, path string) error {
	if n.Kind != yaml.MappingNode {
		return r.fail(n, path, "must be a mapping of keys to values")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.Kind != yaml.ScalarNode {
			return r.fail(name, path, "a key must be a word")
		}
		at := name.Value
		if path != "" {
			at = path + "." + name.Value
		}
		if seen[name.Value] {
			return r.fail(name, at, "the key stands here twice")
		}
		seen[name.Value] = true
		if err := r.value(name, value, at); err != nil {
			return err
		}
	}
	return nil
}

func (r reader) value(name, value *yaml.Node, path string) error {
	if slices.ContainsFunc(r.keys, func(k Key) bool { return strings.HasPrefix(k.Name, path+".") }) {
		return r.mapping(value, path)
	}
	i := slices.IndexFunc(r.keys, func(k Key) bool { return k.Name == path })
	if i < 0 {
		if near := r.near(path); near != "" {
			return r.fail(name, path, "unknown key; did you mean %s", near)
		}
		return r.fail(name, path, "unknown key; known here: %s", r.known())
	}
	k := r.keys[i]
	switch {
	case value.Kind != yaml.ScalarNode:
		return r.fail(value, path, "must be a single value")
	case !k.is.fits(value.Tag):
		return r.fail(value, path, "must be %s, not %q", k.is.name(), value.Value)
	}
	if err := k.set(r.config, value.Value); err != nil {
		return r.fail(value, path, "%s", err)
	}
	return nil
}

func (s sort) fits(tag string) bool {
	switch s {
	case number:
		return tag == "!!int" || tag == "!!float"
	case truth:
		return tag == "!!bool"
	}
	return tag == "!!str"
}

func (s sort) name() Message {
	return tell([...]sentence{word: "a word", number: "a number", truth: "true or false"}[s])
}

func (r reader) known() Message {
	known := tell("%s", r.keys[0].Name)
	for _, k := range r.keys[1:] {
		known = tell("%s, %s", known, k.Name)
	}
	return known
}

// near is the known key, or the beginning of one, that differs least from a path, ""
// when none is like it.
func (r reader) near(path string) string {
	const letters = 2 // more is another word
	best, least := "", letters+1
	for _, k := range r.keys {
		group, _, _ := strings.Cut(k.Name, ".")
		for _, known := range []string{k.Name, group} {
			if n := distance(path, known); n < least {
				best, least = known, n
			}
		}
	}
	return best
}

// distance is how many letters must be put in, left out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func (r reader) fail(n *yaml.Node, path string, text sentence, args ...any) error {
	return &ConfigError{File: r.file, Line: n.Line, Column: n.Column, Path: path, Message: tell(text, args...)}
}
