package tracing

import (
	"encoding/hex"
	"strconv"
	"unicode/utf8"
)

// The line of a message that ended spans is one OTLP export request: a head,
// the spans, a tail. It is written field by field, because the projection runs
// beside calls that people are waiting for. The form is protobuf's JSON as OTLP
// has it: fields in the order of OTLP's schema, absent where they are zero, 64
// bits in quotes, enums as numbers, ids in hexadecimal.
const lineTail = `]}]}]}`

// lineHead is what every line of a projection begins with. The resource says
// which store and which core's version, and nothing of the process that exports.
func lineHead(o Options) []byte {
	resource := attrs{text("service.instance.id", o.StoreID), text("service.name", "fermata")}
	if o.Version != "" {
		resource = append(resource, text("service.version", o.Version))
	}
	b := []byte(`{"resourceSpans":[{"resource":{"attributes":`)
	b = resource.append(b)
	return append(b, `},"scopeSpans":[{"scope":{"name":"fermata"},"spans":[`...)
}

// appendLine writes the request that holds spans, without an end of the line.
func appendLine(b, head []byte, spans []*span) []byte {
	b = append(b, head...)
	for i, s := range spans {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.append(b)
	}
	return append(b, lineTail...)
}

func (s *span) append(b []byte) []byte {
	b = append(b, `{"traceId":"`...)
	b = hex.AppendEncode(b, s.trace[:])
	b = append(b, `","spanId":"`...)
	b = hex.AppendEncode(b, s.id[:])
	if s.parent.IsValid() {
		b = append(b, `","parentSpanId":"`...)
		b = hex.AppendEncode(b, s.parent[:])
	}
	b = append(b, `","flags":`...)
	b = strconv.AppendUint(b, uint64(s.flags), 10)
	b = append(b, `,"name":`...)
	b = appendText(b, s.name)
	b = append(b, `,"kind":`+spanKindInternal...)
	b = appendTime(b, `,"startTimeUnixNano":"`, s.start)
	b = appendTime(b, `,"endTimeUnixNano":"`, s.end)
	b = append(b, `,"attributes":`...)
	b = s.attrs.append(b)
	b = s.appendNotes(b)
	b = s.appendLinks(b)
	if s.failed {
		b = append(b, `,"status":{"code":`+statusError+`}`...)
	}
	return append(b, '}')
}

// The numbers of OTLP's SPAN_KIND_INTERNAL and STATUS_CODE_ERROR.
const (
	spanKindInternal = "1"
	statusError      = "2"
)

func (s *span) appendNotes(b []byte) []byte {
	for i, n := range s.notes {
		if i == 0 {
			b = append(b, `,"events":[{`...)
		} else {
			b = append(b, `,{`...)
		}
		if n.at != 0 {
			b = appendTime(b, `"timeUnixNano":"`, n.at)
			b = append(b, ',')
		}
		b = append(b, `"name":`...)
		b = appendText(b, n.name)
		if len(n.attrs) > 0 {
			b = append(b, `,"attributes":`...)
			b = n.attrs.append(b)
		}
		b = append(b, '}')
	}
	if len(s.notes) > 0 {
		b = append(b, ']')
	}
	if s.dropped > 0 {
		b = append(b, `,"droppedEventsCount":`...)
		b = strconv.AppendUint(b, uint64(s.dropped), 10)
	}
	return b
}

// appendLinks writes links, whose flags are the last field of OTLP's schema.
func (s *span) appendLinks(b []byte) []byte {
	for i, l := range s.links {
		if i == 0 {
			b = append(b, `,"links":[{"traceId":"`...)
		} else {
			b = append(b, `,{"traceId":"`...)
		}
		b = hex.AppendEncode(b, s.trace[:])
		b = append(b, `","spanId":"`...)
		b = hex.AppendEncode(b, l.span[:])
		b = append(b, `","attributes":`...)
		b = attrs{text("fermata.link.kind", l.kind)}.append(b)
		b = append(b, `,"flags":`...)
		b = strconv.AppendUint(b, flagsLocal, 10)
		b = append(b, '}')
	}
	if len(s.links) > 0 {
		b = append(b, ']')
	}
	return b
}

// appendTime writes a time of a span, nothing for 1970.
func appendTime(b []byte, before string, nanos uint64) []byte {
	if nanos == 0 {
		return b
	}
	b = append(b, before...)
	b = strconv.AppendUint(b, nanos, 10)
	return append(b, '"')
}

// append writes attributes as OTLP's list of keys and values.
func (a attrs) append(b []byte) []byte {
	for i, kv := range a {
		if i == 0 {
			b = append(b, `[{"key":"`...)
		} else {
			b = append(b, `,{"key":"`...)
		}
		b = append(b, kv.key...)
		b = append(b, `","value":{`...)
		b = kv.appendValue(b)
		b = append(b, `}}`...)
	}
	return append(b, ']')
}

func (kv attr) appendValue(b []byte) []byte {
	switch kv.kind {
	case isNumber:
		b = append(b, `"intValue":"`...)
		b = strconv.AppendInt(b, kv.number, 10)
		return append(b, '"')
	case isSeconds:
		// Microseconds are never so small or large that JSON wants an exponent.
		b = append(b, `"doubleValue":`...)
		return strconv.AppendFloat(b, float64(kv.number)/1e6, 'f', -1, 64)
	case isTruth:
		b = append(b, `"boolValue":`...)
		return strconv.AppendBool(b, kv.number != 0)
	}
	b = append(b, `"stringValue":`...)
	return appendText(b, kv.text)
}

// appendText writes a text that [clip] has made fit, escaping what JSON does
// not allow as it is and nothing else.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf || c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[done:i]...)
		b = appendEscaped(b, c)
		done = i + 1
	}
	b = append(b, s[done:]...)
	return append(b, '"')
}

func appendEscaped(b []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
}
