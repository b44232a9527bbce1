package tracing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-hitl/fermata/events"
)

// SpanKind is what a span stands for, a part of its id. It is not OTLP's span
// kind, which is always internal.
type SpanKind string

// The kinds, and the object whose id they take.
const (
	KindOperation SpanKind = "fermata.operation" // the operation
	KindHookRun   SpanKind = "hook.run"          // the hook's run
	KindSlot      SpanKind = "wait.hook_slot"    // the hook's run, which stood in line
	KindWait      SpanKind = "wait"              // the question
	KindCommit    SpanKind = "commit"            // the operation, which commits once
)

// TraceID is the id of the trace of an object: an operation, or a turn.
func TraceID(store, object string) trace.TraceID {
	var id trace.TraceID
	derive(id[:], "fermata/trace/v1\x00"+store+"\x00"+object)
	return id
}

// SpanID is the id of the one span of an object.
func SpanID(store string, kind SpanKind, object events.ID) trace.SpanID {
	var id trace.SpanID
	derive(id[:], "fermata/span/v1\x00"+store+"\x00"+string(kind)+"\x00"+string(object))
	return id
}

// derive fills id with the start of a SHA-256, and hashes again, counting,
// should that be all zero, which is no valid id.
func derive(id []byte, input string) {
	for n := 0; ; n++ {
		sum := sha256.Sum256([]byte(input))
		copy(id, sum[:])
		for _, b := range id {
			if b != 0 {
				return
			}
		}
		input += "\x00" + string(rune('0'+n))
	}
}

// Origin says where the spans of one operation belong, or those of a session
// that are about no operation.
type Origin struct {
	StoreID     string
	Session     events.Token
	Operation   events.ID // "" for a session's own
	Turn        string    // "" when the agent does not tell
	Traceparent string    // the agent's own, "" or invalid when it has none
}

// originOf is what a message says of itself.
func originOf(store string, m *events.Message) Origin {
	return Origin{
		StoreID: store, Session: m.Session, Operation: m.Operation, Turn: m.Turn, Traceparent: m.Traceparent,
	}
}

// Trace is the agent's trace when it gave one, else one trace per turn, else
// one per operation or session. Turns are named by agents, so a turn counts
// within its session.
func (o Origin) Trace() trace.TraceID {
	if sc, ok := ParseTraceparent(o.Traceparent); ok {
		return sc.TraceID()
	}
	if o.Turn != "" {
		return TraceID(o.StoreID, string(o.Session)+"/"+o.Turn)
	}
	if o.Operation == "" {
		return TraceID(o.StoreID, string(o.Session))
	}
	return TraceID(o.StoreID, string(o.Operation))
}

// Parent is the agent's span that the operation stands under, zero for none.
func (o Origin) Parent() trace.SpanID {
	sc, _ := ParseTraceparent(o.Traceparent)
	return sc.SpanID()
}

// above is the span that runs and waits stand under: the operation's own, for
// those of a session the agent's, zero for none.
func (o Origin) above() trace.SpanID {
	if o.Operation == "" {
		return o.Parent()
	}
	return o.Span(KindOperation, o.Operation)
}

// Span is the id of one of the operation's spans.
func (o Origin) Span(kind SpanKind, object events.ID) trace.SpanID {
	return SpanID(o.StoreID, kind, object)
}

// HookTraceparent is the TRACEPARENT of a hook's run: a script that exports
// spans of its own puts them under the run.
func (o Origin) HookTraceparent(run events.ID) string {
	return "00-" + o.Trace().String() + "-" + o.Span(KindHookRun, run).String() + "-01"
}

// ParseTraceparent reads a W3C traceparent of version 00, and of later ones
// what they have in common with it. False for anything else.
func ParseTraceparent(s string) (trace.SpanContext, bool) {
	const size = len("00-") + 32 + len("-") + 16 + len("-01")
	if len(s) < size || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return trace.SpanContext{}, false
	}
	version, flags := s[:2], s[53:55]
	if !lowerHex(version) || !lowerHex(flags) || version == "ff" {
		return trace.SpanContext{}, false
	}
	if len(s) > size && (version == "00" || s[size] != '-') {
		return trace.SpanContext{}, false
	}
	traceID, err := trace.TraceIDFromHex(s[3:35])
	if err != nil {
		return trace.SpanContext{}, false
	}
	spanID, err := trace.SpanIDFromHex(s[36:52])
	if err != nil {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled, Remote: true,
	}), true
}

func lowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// KeySize is the least length of a key's secret, in bytes.
const KeySize = 32

// Key makes commitments: equal things have equal ones, and without the secret
// nobody can find the thing by guessing. ID names the key, for when it changes.
type Key struct {
	ID     string
	Secret []byte
}

// Version commits to arguments or a text, through the digest of its canonical
// form. Who has the key and a value can recompute it.
func (k Key) Version(d events.Digest) string { return k.commit("version", string(d)) }

// Actor is an opaque reference to a person, through the principal.
func (k Key) Actor(principal string) string { return k.commit("actor", principal) }

func (k Key) commit(domain, value string) string {
	h := hmac.New(sha256.New, k.Secret)
	h.Write([]byte("fermata/" + domain + "/v1\x00" + value))
	return "hmac-sha256:" + k.ID + ":" + hex.EncodeToString(h.Sum(nil))
}

// Leaf is the hash of a message as a leaf of the log's Merkle tree (RFC 6962):
// over its sequence, its subject and the hash of its envelope. It leads from a
// span to the proof of what it says.
func Leaf(seq uint64, subject string, envelope events.Digest) events.Digest {
	hash, _ := hex.DecodeString(string(envelope)) // a digest that was just computed
	leaf := binary.BigEndian.AppendUint64([]byte{0}, seq)
	leaf = append(leaf, subject...)
	return events.DigestOf(append(leaf, hash...))
}
