package hooks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

// encoded is a text in every encoding that iCode reads.
func encoded(t *testing.T, s string) map[string]string {
	t.Helper()
	out := map[string]string{"UTF-8": s, "UTF-8 with mark": byteOrderMark + s}
	for _, m := range marks {
		b, err := m.encoding.NewEncoder().String(s)
		if err != nil {
			t.Fatal(m.name, err)
		}
		out[m.name+" "+m.mark] = m.mark + b
	}
	b, err := simplifiedchinese.GB18030.NewEncoder().String(s)
	if err != nil {
		t.Fatal(err)
	}
	out["GB18030"] = b
	return out
}

func readAs(icode bool, name string, data []byte) (contents, error) {
	return readFile(origin{scope: events.ScopeGlobal, file: "/h/" + name, home: "/h", icode: icode}, data)
}

func TestEncodings(t *testing.T) {
	yaml := strings.Replace(named("检查-é-😀"), "version", "# 说明\nversion", 1)
	json := `{"version": 1, "hooks": [{"id": "检查-é-😀", "event": "after_turn", "run": {"type": "shell", "shell": "true"}}]}`
	for name, text := range map[string]string{"hooks.yaml": yaml, "hooks.json": json} {
		for encoding, data := range encoded(t, text) {
			c, err := readAs(true, name, []byte(data))
			if err != nil || len(c.hooks) != 1 || c.hooks[0].Ref.ID != "检查-é-😀" {
				t.Errorf("%s in %q: %v", name, encoding, err)
			}
			_, err = readAs(false, name, []byte(data))
			if own := strings.HasPrefix(encoding, "UTF-8"); own != (err == nil) {
				t.Errorf("a file of Fermata's own, %s in %q: %v", name, encoding, err)
			}
		}
	}
	if c, err := readAs(true, "hooks.yaml", []byte("hooks:\n- {id: \"\xbc\xec\xb2\xe9\", event: after_turn, run: {type: shell, shell: x}}\n")); err != nil || c.hooks[0].Ref.ID != "检查" {
		t.Error("GBK:", err)
	}
}

// Nothing is put in the place of what is not understood.
func TestEncodingsAreStrict(t *testing.T) {
	for name, data := range map[string]string{
		"half a character of UTF-16":    "\xff\xfev\x00e",
		"lone surrogate in UTF-16":      "\xff\xfe#\x00\x00\xd8\n\x00",
		"lone low surrogate":            "\xfe\xff\x00#\xdc\x00\x00\n",
		"surrogate in UTF-32":           "\xff\xfe\x00\x00\x00\xd8\x00\x00",
		"beyond Unicode in UTF-32":      "\x00\x00\xfe\xff\x00\x11\x00\x00",
		"half a character of UTF-32":    "\x00\x00\xfe\xff\x00\x00\x00",
		"a byte that GB18030 lacks":     "version: 1 # \xff\n",
		"a sign of GBK's alone":         "version: 1 # \x80\n",
		"half a character of GB18030":   "version: 1 # \xbc",
		"UTF-16 without a mark":         "v\x00:\x00 \x001\x00",
		"a zero byte":                   "version: 1 # \x00\n",
		"a substitute where none stood": "\xff\xfe#\x00\x00\xdc",
	} {
		_, err := readAs(true, "hooks.yaml", []byte(data))
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Line != 1 || bad.Column < 1 || bad.Finding != FindingInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := readAs(true, "hooks.yaml", []byte("# \xbc\xec\nversion: \xff\n"))
	var bad *ConfigError
	if !errors.As(err, &bad) || bad.Line != 2 || bad.Column != 10 {
		t.Errorf("the place in GB18030: %v", err)
	}
}

func TestEncodingsGoByThePlace(t *testing.T) {
	g := newGround(t)
	text := encoded(t, named("guard"))["UTF-16 \xff\xfe"]
	g.write(filepath.Join(g.o.ICodeGlobal, "hooks.yaml"), text)
	if set := g.set(); ids(set) != "guard" {
		t.Error(ids(set))
	}
	g.ok(os.Rename(filepath.Join(g.o.ICodeGlobal, "hooks.yaml"), filepath.Join(g.home, "hooks.yaml")))
	var bad *ConfigError
	if _, err := g.store().For(g.project); !errors.As(err, &bad) || !strings.Contains(err.Error(), "UTF-8") {
		t.Error("in Fermata's own place:", err)
	}
}

// Whatever is written in one of the encodings is read as it was meant.
func TestEncodingsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if !utf8.ValidString(text) || strings.HasPrefix(text, byteOrderMark) || strings.HasPrefix(text, "\x00") {
			return // a mark and a zero character in UTF-16 are the mark of UTF-32
		}
		for _, m := range marks {
			data, err := m.encoding.NewEncoder().String(text)
			if err != nil {
				t.Fatal(err)
			}
			got, _, message := decode([]byte(m.mark+data), true)
			if message.text != "" || string(got) != text {
				t.Fatalf("%s: %q is read as %q, %s", m.name, text, got, message)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "a", "\xff\xfea\x00", "\xfe\xff\x00a", "\xff\xfe\x00\x00a\x00\x00\x00", "\xbc\xec", "\x81\x30\x81\x30", "\xff\xfe\x00\xd8", "\ufeffé", "\x84\x31\xa4\x37"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, icode bool) {
		text, at, message := decode(data, icode)
		if at < 0 || at > len(text) {
			t.Fatalf("the place %d is not in a text of %d bytes", at, len(text))
		}
		if message.text != "" {
			return
		}
		if icode && !utf8.Valid(text) {
			t.Fatalf("%q is read as %q, which is no UTF-8", data, text)
		}
		if !icode && byteOrderMark+string(text) != string(data) && string(text) != string(data) {
			t.Fatalf("%q is read as %q", data, text)
		}
	})
}
