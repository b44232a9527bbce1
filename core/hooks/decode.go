package hooks

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// byteOrderMark begins a text in UTF-8 whose writer wanted to say so.
const byteOrderMark = "\ufeff"

// marks are the byte order marks of other encodings. The longer ones come
// first: that of UTF-32 begins with that of UTF-16.
var marks = []struct {
	mark, name string
	encoding   encoding.Encoding
}{
	{"\xff\xfe\x00\x00", "UTF-32", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
	{"\x00\x00\xfe\xff", "UTF-32", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
	{"\xff\xfe", "UTF-16", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	{"\xfe\xff", "UTF-16", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
}

// decode gives a file's text in UTF-8, without a byte order mark. Fermata's own
// files are UTF-8; a file where iCode looks may also be UTF-16 or UTF-32 with a
// mark, or GB18030, which contains GBK. Without a text, wrong says why; at is then the place in the text as far as it was understood.
func decode(data []byte, icode bool) (text []byte, at int, wrong Message) {
	if !icode {
		return bytes.TrimPrefix(data, []byte(byteOrderMark)), 0, Message{}
	}
	for _, m := range marks {
		if body, ok := bytes.CutPrefix(data, []byte(m.mark)); ok {
			return decodeStrictly(m.encoding, m.name, body)
		}
	}
	if body := bytes.TrimPrefix(data, []byte(byteOrderMark)); utf8.Valid(body) {
		return body, 0, Message{}
	}
	return decodeStrictly(simplifiedchinese.GB18030, joined("%s or %s", "UTF-8", "GB18030"), data)
}

const notEncoded sentence = "invalid %s; save the file as UTF-8"

// decodeStrictly reads only what writes back to the same bytes. The decoders
// put a substitute for what they do not understand, and a rule with a
// substitute in it is another rule.
func decodeStrictly(e encoding.Encoding, name any, data []byte) (text []byte, at int, wrong Message) {
	text, err := e.NewDecoder().Bytes(data)
	if err == nil {
		var back []byte
		if back, err = e.NewEncoder().Bytes(text); err == nil && bytes.Equal(back, data) {
			return text, 0, Message{}
		}
	}
	return text, max(bytes.IndexRune(text, utf8.RuneError), 0), tell(notEncoded, name)
}
