package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// vector is one entry of docs/canonical-json.json: In or, when it is not
// UTF-8, InBase64; and what becomes of it.
type vector struct {
	Name     string
	In       string
	InBase64 []byte `json:"in_base64"`
	Out      string
	Error    string
	Offset   int
}

func (v vector) input() []byte {
	if v.InBase64 != nil {
		return v.InBase64
	}
	return []byte(v.In)
}

func vectors(t testing.TB) []vector {
	t.Helper()
	raw, err := os.ReadFile("../docs/canonical-json.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(raw, &list); err != nil || len(list) < 50 {
		t.Fatalf("%d vectors: %v", len(list), err)
	}
	return list
}

func TestB64CanonicalVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			in := v.input()
			kept := bytes.Clone(in)
			out, err := Canonical(in)
			if !bytes.Equal(in, kept) {
				t.Error("the input has been written to")
			}
			if v.Error != "" {
				want := &CanonicalError{v.Offset, v.Error}
				if diff := cmp.Diff(error(want), err); diff != "" {
					t.Errorf("out %q:\n%s", out, diff)
				}
				return
			}
			if err != nil || string(out) != v.Out {
				t.Fatalf("got %s (%v), want %s", out, err, v.Out)
			}
			if again, err := Canonical(out); err != nil || !bytes.Equal(again, out) {
				t.Errorf("the form of the form is %s (%v)", again, err)
			}
		})
	}
}

func TestCanonicalErrorSaysWhere(t *testing.T) {
	_, err := Canonical([]byte(`{"a":01}`))
	if want := `no canonical JSON, byte 6: "1" where "," or "}" should stand`; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// TestB65HostileInput: what is built to be slow or deep ends in bounded time,
// without a stack or memory that grows with it.
func TestB65HostileInput(t *testing.T) {
	const size = 1 << 20
	long := strings.Repeat("k", 1000)
	var many, prefixed strings.Builder
	many.WriteString("{")
	prefixed.WriteString("{")
	for i := range size / 10 {
		fmt.Fprintf(&many, `"%06d":0,`, (i*7919)%(size/10)) // every name once, in no order
		if i < size/1000 {
			fmt.Fprintf(&prefixed, `"%s%06d":0,`, long, size-i)
		}
	}
	many.WriteString(`"z":0}`)
	prefixed.WriteString(`"z":0}`)
	inner := `"` + strings.Repeat("x", size) + `"`
	for range maxDepth {
		inner = `{"b":` + inner + `,"a":0}`
	}
	for name, in := range map[string]string{
		"many names": many.String(), "long prefixes": prefixed.String(), "every level out of order": inner,
		"open brackets": strings.Repeat("[", size), "open objects": strings.Repeat(`{"a":`, size/5),
		"backslashes": `"` + strings.Repeat(`\\`, size/2), "escapes": `["` + strings.Repeat(`\u0041`, size/6) + `"]`,
		"spaces": strings.Repeat(" ", size), "digits": strings.Repeat("1", size), "commas": "[" + strings.Repeat(",", size),
	} {
		t.Run(name, func(t *testing.T) {
			out, err := Canonical([]byte(in))
			var ce *CanonicalError
			if err != nil && !errors.As(err, &ce) {
				t.Fatal(err)
			}
			if err == nil && (len(out) > len(in) || !json.Valid(out)) {
				t.Errorf("%d bytes out of %d", len(out), len(in))
			}
		})
	}
}

// TestUTF16Order compares with the standard library's own encoding.
func TestUTF16Order(t *testing.T) {
	letters := rapid.StringOf(rapid.SampledFrom([]rune{0, 'a', 'é', 0x7ff, 0xd7ff, 0xe000, 0xfb33, 0xfffd, 0xffff, 0x10000, 0x1f600, 0x10ffff}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := letters.Draw(t, "a"), letters.Draw(t, "b")
		want := slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		if got := compareUTF16([]byte(a), []byte(b)); got != want {
			t.Fatalf("%q, %q: %d, want %d", a, b, got, want)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.input())
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := Canonical(in)
		if err != nil {
			var ce *CanonicalError
			if !errors.As(err, &ce) || ce.Offset < 0 || ce.Offset > len(in) || ce.Reason == "" {
				t.Fatalf("%q: %v", in, err)
			}
			return
		}
		if !json.Valid(in) || !json.Valid(out) {
			t.Fatalf("%q → %q is not JSON", in, out)
		}
		if len(out) > len(in) {
			t.Fatalf("%q has grown to %q", in, out)
		}
		if again, err := Canonical(out); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q → %q → %q (%v)", in, out, again, err)
		}
		if a, b := meaning(t, in), meaning(t, out); !reflect.DeepEqual(a, b) {
			t.Fatalf("%q means %v, %q means %v", in, a, out, b)
		}
	})
}

// meaning is what encoding/json reads, numbers as they stand.
func meaning(t *testing.T, raw []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return v
}

// benchArgs is 100 KB as agents send it: a file to write, and edits in no
// canonical order.
func benchArgs() []byte {
	type edit struct {
		Old  string `json:"old_string"`
		New  string `json:"new_string"`
		All  bool   `json:"all"`
		Line int    `json:"line"`
	}
	args := struct {
		Path    string `json:"path"`
		Content string `json:"content"`
		Edits   []edit `json:"edits"`
	}{Path: "/home/ana/src/myproj/main.go", Content: strings.Repeat("if a < b && b > c {\n\treturn \"é\"\n}\n", 1500)}
	for i := range 300 {
		args.Edits = append(args.Edits, edit{fmt.Sprintf("func before%d() {\n\treturn\n}", i), fmt.Sprintf("func after%d() {\n\treturn\n}", i), i%2 == 0, i})
	}
	raw, _ := json.MarshalIndent(args, "", "  ")
	return raw
}

func BenchmarkCanonical100KB(b *testing.B) {
	raw := benchArgs()
	form, err := Canonical(raw)
	if err != nil {
		b.Fatal(err)
	}
	for name, in := range map[string][]byte{"as sent": raw, "canonical already": form} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Canonical(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
