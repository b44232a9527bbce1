package events

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// ID is a ULID in lower case, 26 characters, made by the process that begins
// the thing it names: an operation, a question, a frontend, an event.
type ID string

// NewID makes an ID for the given time from 10 bytes of entropy.
func NewID(at time.Time, entropy [10]byte) ID {
	var u ulid.ULID
	_ = u.SetTime(ulid.Timestamp(at)) // fails only after the year 10889
	_ = u.SetEntropy(entropy[:])      // fails only on another length
	return ID(strings.ToLower(u.String()))
}

// ParseID checks that s is an ID as [NewID] writes it.
func ParseID(s string) (ID, error) {
	if len(s) != 26 || strings.ToLower(s) != s {
		return "", fmt.Errorf("%q is not an id (26 characters, a ULID in lower case)", clip(s))
	}
	if _, err := ulid.ParseStrict(s); err != nil {
		return "", fmt.Errorf("%q is not an id (26 characters, a ULID in lower case)", clip(s))
	}
	return ID(s), nil
}

// Token names a project, a session or a core in subjects: 26 characters a–z2–7
// (130 bits). Native ids and paths are data and never part of a subject.
type Token string

var tokenAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func token(domain string, parts ...string) Token {
	h := sha256.New()
	h.Write([]byte("fermata/" + domain + "/v1"))
	for _, p := range parts {
		var n [8]byte
		for i, l := 0, len(p); i < 8; i++ {
			n[i] = byte(l >> (8 * i))
		}
		h.Write(n[:]) // lengths first: no two lists of parts hash alike
		h.Write([]byte(p))
	}
	return Token(tokenAlphabet.EncodeToString(h.Sum(nil))[:26])
}

// ProjectToken is the token of a project directory (absolute, links resolved).
func ProjectToken(path string) Token { return token("project", path) }

// SessionToken is the token of one agent's conversation as one core sees it.
func SessionToken(core Token, agent Agent, native string) Token {
	return token("session", string(core), string(agent), native)
}

// CoreToken is the token of a core, made once from its store's random seed.
func CoreToken(seed string) Token { return token("core", seed) }

// ParseToken checks that s is a token.
func ParseToken(s string) (Token, error) {
	if len(s) != 26 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return "", fmt.Errorf("%q is not a token (26 characters a-z2-7)", clip(s))
	}
	return Token(s), nil
}

// Digest is a SHA-256 in lower-case hexadecimal, 64 characters.
type Digest string

// DigestOf hashes bytes.
func DigestOf(b []byte) Digest {
	s := sha256.Sum256(b)
	return Digest(hex.EncodeToString(s[:]))
}

// ParseDigest checks that s is a digest.
func ParseDigest(s string) (Digest, error) {
	if len(s) != hex.EncodedLen(sha256.Size) || strings.Trim(s, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is not a digest (64 characters, hexadecimal in lower case)", clip(s))
	}
	return Digest(s), nil
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// Micros is a moment: microseconds since 1970 UTC. Zero means none.
type Micros int64

// At converts a time.
func At(t time.Time) Micros {
	if t.IsZero() {
		return 0
	}
	return Micros(t.UnixMicro())
}

// Time converts back, UTC. The zero Micros is the zero time.
func (m Micros) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}
