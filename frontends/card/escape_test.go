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
		{"a whole word in Cyrillic", "git рора -f", "git ⟨U+0440⟩⟨U+043E⟩⟨U+0440⟩⟨U+0430⟩ -f"},
		{"one letter in Cyrillic", "cat а.txt", "cat ⟨U+0430⟩.txt"},
		{"a host in Cyrillic", "https://аррӏе.com", "https://⟨U+0430⟩⟨U+0440⟩⟨U+0440⟩⟨U+04CF⟩⟨U+0435⟩.com"},
		{"a word in Greek capitals", "rm ΚΟΡΕ", "rm ⟨U+039A⟩⟨U+039F⟩⟨U+03A1⟩⟨U+0395⟩"},
		{"Greek that resembles", "pαypal", "p⟨U+03B1⟩ypal"},
		{"Armenian in Latin", "gօօgle", "g⟨U+0585⟩⟨U+0585⟩gle"},
		{"Cherokee in Latin", "ᏟAT", "⟨U+13DF⟩AT"},
		{"a whole word in Cherokee", "ᏟᎪᎢ /etc/passwd", "⟨U+13DF⟩⟨U+13AA⟩⟨U+13A2⟩ /etc/passwd"},
		{"a whole word in Lisu", "ꓐꓲꓠ x", "⟨U+A4D0⟩⟨U+A4F2⟩⟨U+A4E0⟩ x"},
		{"Coptic", "sudⲟ", "sud⟨U+2C9F⟩"},
		{"Myanmar in Latin", "gooဝgle", "goo⟨U+101D⟩gle"},
		{"Hebrew in Latin", "ןs", "⟨U+05DF⟩s"},
		{"phonetic letters", "ɡit push", "⟨U+0261⟩it push"},
		{"small capitals", "ᴄᴀᴛ /etc", "⟨U+1D04⟩⟨U+1D00⟩⟨U+1D1B⟩ /etc"},
		{"bold letters of formulas", "𝗰𝗮𝘁 x", "⟨U+1D5F0⟩⟨U+1D5EE⟩⟨U+1D601⟩ x"},
		{"one of them in a word", "c𝖺t", "c⟨U+1D5BA⟩t"},
		{"digits of formulas", "port 𝟖𝟎", "port ⟨U+1D7D6⟩⟨U+1D7CE⟩"},
		{"the Kelvin sign", "300 \u212a", "300 ⟨U+212A⟩"},
		{"small Roman numerals", "ⅽⅾ /tmp", "⟨U+217D⟩⟨U+217E⟩ /tmp"},
		{"a Roman numeral in a word", "ⅽat", "⟨U+217D⟩at"},
		{"digits of another script", "port 8٠ g००gle", "port 8⟨U+0660⟩ g⟨U+0966⟩०gle"},
		{"full-width command", "ｃａｔ /etc/passwd", "⟨U+FF43⟩⟨U+FF41⟩⟨U+FF54⟩ /etc/passwd"},
		{"full-width command, Chinese behind it", "ｃａｔ /etc/passwd # 看一下", "⟨U+FF43⟩⟨U+FF41⟩⟨U+FF54⟩ /etc/passwd # 看一下"},
		{"full-width signs", "ls；rm ～/x", "ls⟨U+FF1B⟩rm ⟨U+FF5E⟩/x"},
		{"full-width slash, Chinese around", "cat a／b # 读 https：//x", "cat a⟨U+FF0F⟩b # 读 https⟨U+FF1A⟩//x"},
		{"division slash", "https://good.com\u2215.evil.com", "https://good.com⟨U+2215⟩.evil.com"},
		{"fraction slash", "a\u2044b 1\u20442", "a⟨U+2044⟩b 1\u20442"},
		{"big slash", "/home\u29f8ana", "/home⟨U+29F8⟩ana"},
		{"Katakana as a slash", "goodノevil", "good⟨U+30CE⟩evil"},
		{"one-dot leader", "passwd\u2024txt", "passwd⟨U+2024⟩txt"},
		{"two-dot leader", "\u2025/x", "⟨U+2025⟩/x"},
		{"ideographic stop in a host", "good。com", "good⟨U+3002⟩com"},
		{"modifier colon", "C\ua789\\x https\ua789//y", "C⟨U+A789⟩\\x https⟨U+A789⟩//y"},
		{"ratio", "host\u223680", "host⟨U+2236⟩80"},
		{"Greek question mark", "ls\u037e rm", "ls⟨U+037E⟩ rm"},
		{"Greek varia as a grave accent", "echo \u1fefid\u1fef", "echo ⟨U+1FEF⟩id⟨U+1FEF⟩"},
		{"hyphens", "rm \u2010rf left\u2011pad \u2212x", "rm ⟨U+2010⟩rf left⟨U+2011⟩pad ⟨U+2212⟩x"},
		{"set minus as a backslash", "C:\u2216x", "C:⟨U+2216⟩x"},
		{"small forms", "a\ufe64b\ufe69c", "a⟨U+FE64⟩b⟨U+FE69⟩c"},
		{"primes as quotes", "echo \u2032rm\u2032 \u02bcx", "echo ⟨U+2032⟩rm\u2032 ⟨U+02BC⟩x"},
		{"bars", "ls\u2223sh ls\u01c0 sh", "ls⟨U+2223⟩sh ls⟨U+01C0⟩ sh"},
		{"selector on a digit", "rm 1\ufe0f2", "rm 1⟨U+FE0F⟩2"},
		{"tags behind a flag", "🏴\U000E0067\U000E0062\U000E0041", "🏴⟨U+E0067⟩⟨U+E0062⟩⟨U+E0041⟩"},
		{"tags without a flag", "a\U000E0067\U000E007F", "a⟨U+E0067⟩⟨U+E007F⟩"},
		{
			"too many tags", "🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F\U000E007F",
			"🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F⟨U+E007F⟩",
		},
		{"non-joiner in a path", "/tmp/a\u200cb", "/tmp/a⟨U+200C⟩b"},
		{"non-joiner twice", "می\u200c\u200cخواهم", "می⟨U+200C⟩⟨U+200C⟩خواهم"},
		{"non-joiner at the end", "می\u200c /x", "می⟨U+200C⟩ /x"},
		{"joiners between pictures", "👩\u200d\u200d👧", "👩⟨U+200D⟩⟨U+200D⟩👧"},
		{"variation of an ideograph", "葛\U000E0100", "葛⟨U+E0100⟩"},
		{"Mongolian selector elsewhere", "a\u180bb\u180e", "a⟨U+180B⟩b⟨U+180E⟩"},
		{"no-break space in a command", "rm -rf /\u00a0x \u202f;x", "rm -rf /⟨U+00A0⟩x ⟨U+202F⟩;x"},
		{"another script's sign", "gooംgle x\u0c02", "goo⟨U+0D02⟩gle x⟨U+0C02⟩"},
		{"symbols as letters", "goo⍳gle ⍴wd 𝈖m", "goo⟨U+2373⟩gle ⟨U+2374⟩wd ⟨U+1D216⟩m"},
		{"a line of its own", "привет\ncat а.txt\nпривет", "привет\ncat ⟨U+0430⟩.txt\nпривет"},
		{"full-width words of their own", "看 ｒｍ ＄ x", "看 ⟨U+FF52⟩⟨U+FF4D⟩ ⟨U+FF04⟩ x"},
		{"each line by itself", "cat а\nа привет x", "cat ⟨U+0430⟩\nа привет x"},
		{"each run by itself", "Ｔ恤 ｒｍ 看", "Ｔ恤 ⟨U+FF52⟩⟨U+FF4D⟩ 看"},
		{"a no-break space before a separator", "a\u00a0;x", "a⟨U+00A0⟩;x"},
		{"two joiners behind a killed vowel", "क्\u200d\u200dष", "क्\u200d⟨U+200D⟩ष"},
		{"private use", "\ue0b0\U000F0001", "⟨U+E0B0⟩⟨U+F0001⟩"},
		{"no characters", "\U0001FFFE\U0002FFFF", "⟨U+1FFFE⟩⟨U+2FFFF⟩"},
		{"not assigned", "\u0378\U0001CCD6", "⟨U+0378⟩⟨U+1CCD6⟩"},
		{"an object's place", "\ufffc", "⟨U+FFFC⟩"},
		{"OSC 8 and 52", "\x1b]8;;http://x\x07y\x1b\\", "⟨U+001B⟩]8;;http://x⟨U+0007⟩y⟨U+001B⟩\\"},
		{"what we leave out", "a ⋯ 12 bytes ⋯ b", "a ⟨U+22EF⟩ 12 bytes ⋯ b"},
		{"a mark in other brackets", "〈U+202E〉 ❬U+202E❭", "⟨U+3008⟩U+202E〉 ⟨U+276C⟩U+202E❭"},
		{"stacks", "न\u093c\u093c\u093c\u093c\u093c\u093c\u093c\u093c\u093c", "न\u093c\u093c\u093c\u093c\u093c\u093c\u093c\u093c⟨U+093C⟩"},
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
	for in, want := range map[string]string{
		"echo ‘a; rm -rf ~’":            "echo ⟨U+2018⟩a; rm -rf ~⟨U+2019⟩",
		"git commit -m \"don’t – now\"": "git commit -m \"don’t – now\"",
		"git push —force":               "git push ⟨U+2014⟩force",
		"ls │ sh":                       "ls ⟨U+2502⟩ sh",
	} {
		if got := escape(in, command); got != want || Unescape(got) != in {
			t.Errorf("as a command: %q, want %q", got, want)
		}
		if got := Escape(in); got != in {
			t.Errorf("as prose: %q", got)
		}
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
		if back := Unescape(escape(s, command)); back != s {
			t.Fatalf("%q came back from a command as %q", s, back)
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
