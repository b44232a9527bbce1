package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/vmihailenco/msgpack/v5"
)

// Encode writes a wire value as msgpack: a map with named keys. The same value
// always gives the same bytes.
func Encode(v any) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, 512)) // most values fit; growing costs more than all else here
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(buf)
	enc.SetCustomStructTag("json")
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return buf.Bytes(), nil
}

// Decode reads a msgpack wire value after [Validate] has passed the bytes.
// Unknown keys are ignored: readers of stored events are lenient, additions
// are optional.
func Decode(b []byte, v any) error { return decode(b, v, false) }

// DecodeCommand reads what somebody sent to a door, msgpack or, when the first
// byte is '{', JSON. Unknown keys are errors: a command that says more than the
// core understands must not be half understood. asJSON tells how to reply.
func DecodeCommand(b []byte, v any) (asJSON bool, err error) {
	if len(b) > 0 && b[0] == '{' {
		if err := noNameTwice(json.NewDecoder(bytes.NewReader(b)), maxDepth); err != nil {
			return true, fmt.Errorf("not the JSON of this command: %w", err)
		}
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		if err := dec.Decode(v); err != nil {
			return true, fmt.Errorf("not the JSON of this command: %w", err)
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return true, errors.New("not the JSON of this command: something follows the object")
		}
		return true, nil
	}
	if !isMap(b) {
		return false, fmt.Errorf("%w: a command is a map of named keys", ErrMalformed)
	}
	return false, decode(b, v, true)
}

// noNameTwice reads one JSON value and refuses an object that says something
// twice: the decoder would take the last, and a person might have meant the
// first. Depth is how deep the value may be nested.
func noNameTwice(dec *json.Decoder, depth int) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	if depth == 0 {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	open, _ := t.(json.Delim)
	if open != '{' && open != '[' {
		return nil
	}
	names := map[string]bool{}
	for dec.More() {
		if open == '{' {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			text, _ := name.(string)
			if names[text] {
				return fmt.Errorf("%q stands there twice", clip(text))
			}
			names[text] = true
		}
		if err := noNameTwice(dec, depth-1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// isMap reports whether the first value is a map: nil and lists, which the
// decoder would take for a struct too, are no command.
func isMap(b []byte) bool {
	return len(b) > 0 && (b[0]&0xf0 == 0x80 || b[0] == 0xde || b[0] == 0xdf)
}

// EncodeReply writes a reply in the encoding that the command had. JSON that
// stands in it keeps its bytes.
func EncodeReply(v any, asJSON bool) ([]byte, error) {
	if !asJSON {
		return Encode(v)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func decode(b []byte, v any, strict bool) error {
	if err := Validate(b); err != nil {
		return err
	}
	dec := msgpack.GetDecoder()
	defer msgpack.PutDecoder(dec)
	dec.Reset(bytes.NewReader(b))
	dec.SetCustomStructTag("json")
	dec.DisallowUnknownFields(strict)
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}
