package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// WireVersion is the format of [Message].
const WireVersion = 1

// Message is one decision as it stands in the log: a list of events that
// happened together, and the bodies they speak of. It is written with one
// conditional append and read back whole or not at all.
type Message struct {
	ID          ID
	Project     Token
	Session     Token
	Operation   ID // "" on a session's own subject
	Turn        string
	At          Micros
	Principal   string // who caused it: "core", or a connection's principal
	Traceparent string
	Prev        Digest // hash of the message before on this subject, "" for the first
	Events      []Event
	Bodies      []Body

	// Seq and Hash are known only of a message that was read or written:
	// its place in the stream, and SHA-256 of its envelope.
	Seq  uint64
	Hash Digest
}

// Body is content that an event speaks of: arguments, a reason, a person's
// words. The envelope holds only its commitment, SHA-256 of 0x00, salt and
// data, so a log without bodies still verifies. Data is nil when the body was
// removed.
type Body struct {
	Key  string `json:"key"`
	Salt []byte `json:"salt"`
	Data []byte `json:"data"`
}

// ArgsBody is the key of a version's canonical arguments or text.
func ArgsBody(version int) string { return "args/" + strconv.Itoa(version) }

// ReasonBody is the key of a hook's reason: of a question, or of a run that
// refused.
func ReasonBody(id ID) string { return "reason/" + string(id) }

// TextBody is the key of a person's words with an answer.
func TextBody(question ID) string { return "text/" + string(question) }

// StderrBody is the key of the last lines that a hook's run wrote to stderr.
func StderrBody(run ID) string { return "stderr/" + string(run) }

// ReminderBody is the key of what a prompt hook's run wants the model to read
// beside the prompt.
func ReminderBody(run ID) string { return "reminder/" + string(run) }

// Commitment is what the envelope holds of a body.
func (b Body) Commitment() Digest {
	h := sha256.New()
	h.Write([]byte{0})
	h.Write(b.Salt)
	h.Write(b.Data)
	return Digest(hex.EncodeToString(h.Sum(nil)))
}

// SaltSize is the length of a body's salt.
const SaltSize = 32

type wireMessage struct {
	Envelope []byte `json:"e"`
	Bodies   []Body `json:"b"`
}

type wireEnvelope struct {
	V           int          `json:"v"`
	ID          ID           `json:"id"`
	Project     Token        `json:"project"`
	Session     Token        `json:"session"`
	Operation   ID           `json:"operation,omitempty"`
	Turn        string       `json:"turn,omitempty"`
	At          Micros       `json:"at"`
	Principal   string       `json:"principal"`
	Traceparent string       `json:"traceparent,omitempty"`
	Prev        Digest       `json:"prev,omitempty"`
	Events      []wireEvent  `json:"events"`
	Commits     []wireCommit `json:"commits,omitempty"`
}

type wireEvent struct {
	T Type   `json:"t"`
	B []byte `json:"b"`
}

type wireCommit struct {
	Key    string `json:"key"`
	Digest Digest `json:"digest"`
}

// EncodeMessage gives the bytes to store and the hash of the envelope. Every
// body must carry a salt of [SaltSize] bytes and a key of its own.
func EncodeMessage(m Message) ([]byte, Digest, error) {
	env := wireEnvelope{
		V: WireVersion, ID: m.ID, Project: m.Project, Session: m.Session, Operation: m.Operation,
		Turn: m.Turn, At: m.At, Principal: m.Principal, Traceparent: m.Traceparent, Prev: m.Prev,
	}
	for _, e := range m.Events {
		b, err := Encode(e)
		if err != nil {
			return nil, "", err
		}
		env.Events = append(env.Events, wireEvent{e.EventType(), b})
	}
	keys := make(map[string]bool, len(m.Bodies))
	for _, b := range m.Bodies {
		if len(b.Salt) != SaltSize {
			return nil, "", fmt.Errorf("body %q: salt of %d bytes, want %d", b.Key, len(b.Salt), SaltSize)
		}
		if keys[b.Key] {
			return nil, "", fmt.Errorf("body %q: a second one with this key", b.Key)
		}
		keys[b.Key] = true
		env.Commits = append(env.Commits, wireCommit{b.Key, b.Commitment()})
	}
	e, err := Encode(env)
	if err != nil {
		return nil, "", err
	}
	data, err := Encode(wireMessage{e, m.Bodies})
	return data, DigestOf(e), err
}

// DecodeMessage reads a stored message. It checks that each body that is there
// fits its commitment. An event type that it does not know is an error
// [ErrUnknownType]: the fold must stop, not guess.
func DecodeMessage(b []byte) (Message, error) {
	var w wireMessage
	if err := Decode(b, &w); err != nil {
		return Message{}, err
	}
	m, commits, err := openEnvelope(w.Envelope)
	if err != nil {
		return Message{}, err
	}
	m.Bodies = w.Bodies
	return m, checkBodies(w.Bodies, commits)
}

// DecodeEnvelope reads a stored message as [DecodeMessage] does, but without its
// bodies, which it neither copies nor checks: for who needs to know what
// happened and not what was said.
func DecodeEnvelope(b []byte) (Message, error) {
	var w struct {
		Envelope []byte `json:"e"`
	}
	if err := Decode(b, &w); err != nil {
		return Message{}, err
	}
	m, _, err := openEnvelope(w.Envelope)
	return m, err
}

func openEnvelope(b []byte) (Message, []wireCommit, error) {
	var env wireEnvelope
	if err := Decode(b, &env); err != nil {
		return Message{}, nil, err
	}
	if env.V != WireVersion {
		return Message{}, nil, fmt.Errorf("%w: message version %d", ErrUnknownType, env.V)
	}
	m := Message{
		ID: env.ID, Project: env.Project, Session: env.Session, Operation: env.Operation, Turn: env.Turn,
		At: env.At, Principal: env.Principal, Traceparent: env.Traceparent, Prev: env.Prev,
		Hash: DigestOf(b),
	}
	for _, e := range env.Events {
		dec, ok := decoders[e.T]
		if !ok {
			return Message{}, nil, fmt.Errorf("%w %q", ErrUnknownType, clip(string(e.T)))
		}
		event, err := dec(e.B)
		if err != nil {
			return Message{}, nil, fmt.Errorf("%s: %w", e.T, err)
		}
		m.Events = append(m.Events, event)
	}
	return m, env.Commits, nil
}

// checkBodies checks every body against the envelope. The salt's length is
// part of that: else bytes could move between salt and data and still fit.
func checkBodies(bodies []Body, commits []wireCommit) error {
	open := make(map[string]Digest, len(commits))
	for _, c := range commits {
		open[c.Key] = c.Digest
	}
	for _, b := range bodies {
		d, known := open[b.Key]
		delete(open, b.Key)
		removed := b.Data == nil
		fits := len(b.Salt) == SaltSize && d == b.Commitment()
		if !known || !removed && !fits {
			return fmt.Errorf("body %q does not fit its commitment", clip(b.Key))
		}
	}
	return nil
}

// TypeHeader is the value of [HeaderType] for a message.
func (m Message) TypeHeader() string {
	names := make([]string, len(m.Events))
	for i, e := range m.Events {
		names[i] = string(e.EventType())
	}
	return strings.Join(names, ",")
}

// Body returns the data of a body, false if the message does not carry it or
// it was removed.
func (m Message) Body(key string) ([]byte, bool) {
	for _, b := range m.Bodies {
		if b.Key == key {
			return b.Data, b.Data != nil
		}
	}
	return nil, false
}
