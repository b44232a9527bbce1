package card

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestF7OrdinaryTextIsUntouched(t *testing.T) {
	for _, s := range []string{
		"", "git push --force origin main", "a\tb\nc", "naïve café", "cafe\u0301 na\u0308ive", "Tiếng Việt tie\u0302\u0301ng",
		"مرحبا بالعالم", "می\u200cخواهم", "שָׁלוֹם", "नमस्ते क्\u200dष", "ภาษาไทย ที่นี่", "中文，全角！　引号「」", "日本語　です", "한국어",
		"привет, мир", "Ελληνικά κείμενα", "Δx = λ · µ", "👩‍👩‍👧 👍🏽 ❤️ 1️⃣ 🇨🇳 🏳️‍🌈", "x ⟨y⟩ z", "–—…“”«»", "\\nпривет",
		"IT-отдел", "𝒳 ≠ ∅", "Straße ﬁ Ⅷ", "box ─│┌",
	} {
		if got := Escape(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestF7DeceptiveCharactersAreVisible(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"bidi override", "a\u202egpj.exe", "a⟨U+202E⟩gpj.exe"},
		{"isolates", "\u2066x\u2069", "⟨U+2066⟩x⟨U+2069⟩"},
		{"escape sequence", "\x1b[2Jok", "⟨U+001B⟩[2Jok"},
		{"C1", "\u009b31m", "⟨U+009B⟩31m"},
		{"lone carriage return", "rm -rf /\recho hi", "rm -rf /⟨U+000D⟩echo hi"},
		{"Windows line end", "a\r\nb", "a␍\nb"},
		{"backspace", "safe\b\b\b\bevil", "safe⟨U+0008⟩⟨U+0008⟩⟨U+0008⟩⟨U+0008⟩evil"},
		{"zero width", "pass\u200bword\ufeff", "pass⟨U+200B⟩word⟨U+FEFF⟩"},
		{"joiner out of place", "a\u200db", "a⟨U+200D⟩b"},
		{"tags", "hi\U000E0041", "hi⟨U+E0041⟩"},
		{"spaces", "a\u00a0b\u2003c\u3000d", "a⟨U+00A0⟩b⟨U+2003⟩c⟨U+3000⟩d"},
		{"line separator", "a\u2028b", "a⟨U+2028⟩b"},
		{"flood", "a\u0300\u0300\u0300\u0300\u0300", "a\u0300\u0300\u0300\u0300⟨U+0300⟩"},
		{"sign on nothing", "\u0301x \u0301", "⟨U+0301⟩x ⟨U+0301⟩"},
		{"struck out", "a\u0336", "a⟨U+0336⟩"},
		{"Cyrillic in Latin", "pаypal", "p⟨U+0430⟩ypal"},
		{"Latin in Cyrillic", "приveт", "при⟨U+0076⟩⟨U+0065⟩т"},
		{"Greek in Latin", "gοοgle", "g⟨U+03BF⟩⟨U+03BF⟩gle"},
		{"a mark of the author's", "⟨U+202E⟩ ⟨xFF⟩", "⟨U+27E8⟩U+202E⟩ ⟨U+27E8⟩xFF⟩"},
		{"no UTF-8", "a\xff\xfeb", "a⟨xFF⟩⟨xFE⟩b"},
		{"selectors that carry data", "😀\ufe0f\ufe0f", "😀\ufe0f⟨U+FE0F⟩"},
		{"blank letters", "a\u3164\u2800", "a⟨U+3164⟩⟨U+2800⟩"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Escape(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := Unescape(Escape(c.in)); got != c.in {
				t.Errorf("not reversible: %q", got)
			}
		})
	}
	if got := Line("a\nb\tc⏎\r\n"); got != "a⏎b⇥c⟨U+23CE⟩␍⏎" {
		t.Errorf("in one line: %q", got)
	}
}

// visibleFormats are the format characters that show something themselves.
var visibleFormats = []rune{
	0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD,
}

func TestF7EveryInvisibleCharacterIsMarked(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || r == '\n' || r == '\t' || r == ' ' || slices.Contains(visibleFormats, r) {
			continue
		}
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Variation_Selector) {
			if got := Escape("a" + string(r) + "b"); strings.ContainsRune(got, r) {
				t.Errorf("U+%04X stays in %q", r, got)
			}
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{
		"plain", "a\u202eb\x1b[0m\r\n\r", "⟨U+202E⟩⟨x00⟩", "pаypal \xff\u0301", "👩‍👩‍👧\u200d\u200d", "می\u200cخواهم", "␍\r\n␍\n⏎\t",
		"a\u0300\u0301\u0302\u0303\u0304", "1️⃣\ufe0f\U000E0100", "⟨⟨U+⟩x⟨",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Escape(s)
		if back := Unescape(got); back != s {
			t.Fatalf("%q became %q and came back as %q", s, got, back)
		}
		if !utf8.ValidString(got) {
			t.Fatalf("%q is no UTF-8", got)
		}
		line := Line(s)
		if strings.ContainsAny(line, "\n\t") {
			t.Fatalf("%q is more than a line", line)
		}
		for _, r := range got + line {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r >= 0xE0000 && r < 0xE0080) {
				t.Fatalf("U+%04X stays in %q", r, got)
			}
		}
		total := 0
		for _, m := range Marks(got) {
			total += m.Count
			if MarkAt(m.Text) != len(m.Text) {
				t.Fatalf("%q is no mark", m.Text)
			}
		}
		if total == 0 && got != s && !strings.Contains(got, "␍\n") {
			t.Fatalf("%q changed to %q without a mark", s, got)
		}
	})
}
