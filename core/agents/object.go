package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Field is one member of an [Object]. Value is the JSON as it was written.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Object is one JSON object with its members in order. Names are exact:
// nothing is matched by case, and no name appears twice.
type Object []Field

// ReadObject reads exactly one JSON object: valid UTF-8, no byte order mark,
// nothing behind it, no name twice. Values are checked to be JSON and kept as
// they are; whether they have a canonical form is the core's business.
func ReadObject(b []byte) (Object, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, errors.New("expected a JSON object, got nothing")
	}
	if !utf8.Valid(b) {
		return nil, errors.New("expected a JSON object in UTF-8, got invalid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("expected a JSON object%s", because(err))
	}
	var o Object
	for dec.More() {
		f, err := readField(dec)
		if err != nil {
			return nil, fmt.Errorf("not a JSON object at byte %d%s", dec.InputOffset(), because(err))
		}
		if _, twice := o.Get(f.Name); twice {
			return nil, fmt.Errorf("the key %q is there twice", clip(f.Name))
		}
		o = append(o, f)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("not a JSON object at byte %d%s", dec.InputOffset(), because(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the JSON object at byte %d", dec.InputOffset())
	}
	return o, nil
}

func readField(dec *json.Decoder) (Field, error) {
	t, err := dec.Token()
	if err != nil {
		return Field{}, err
	}
	name, ok := t.(string)
	if !ok {
		return Field{}, errors.New("a key must be a string")
	}
	f := Field{Name: name}
	err = dec.Decode(&f.Value)
	return f, err
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// Get returns a member's value, false if there is none.
func (o Object) Get(name string) (json.RawMessage, bool) {
	for _, f := range o {
		if f.Name == name {
			return f.Value, true
		}
	}
	return nil, false
}

// Text returns a member that must be a string, "" if it is absent or null.
// Half a surrogate pair is an error: two different ids must not read alike.
func (o Object) Text(name string) (string, error) {
	raw, ok := o.Get(name)
	if !ok || string(raw) == "null" {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("%q must be a string", name)
	}
	if replaced(raw, s) {
		return "", fmt.Errorf("%q holds half a surrogate pair", name)
	}
	return s, nil
}

// replaced reports whether decoding put a replacement character where the JSON
// has none.
func replaced(raw []byte, s string) bool {
	return strings.ContainsRune(s, utf8.RuneError) &&
		!bytes.ContainsRune(raw, utf8.RuneError) && !bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`))
}

// Need is [Object.Text] for a member that must be there and not be empty.
func (o Object) Need(name string) (string, error) {
	s, err := o.Text(name)
	if err == nil && s == "" {
		err = fmt.Errorf("%q is missing", name)
	}
	return s, err
}

// Only refuses a member that is not named.
func (o Object) Only(names ...string) error {
	for _, f := range o {
		if !slices.Contains(names, f.Name) {
			return fmt.Errorf("unknown key %q; known are %s", clip(f.Name), strings.Join(names, ", "))
		}
	}
	return nil
}

// Encode writes the object without spaces, values as they are.
func (o Object) Encode() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(f.Name))
		b.WriteByte(':')
		b.Write(f.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Quote writes a JSON string that people can read: < > & stand as they are.
func Quote(s string) json.RawMessage {
	b, _ := marshal(s) // a string cannot fail
	return b
}

func quote(s string) string { return string(Quote(s)) }

// marshal writes JSON. Unlike json.Marshal it leaves < > & alone, so that people
// can read what is sent.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}
	return s
}
