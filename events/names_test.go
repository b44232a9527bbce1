package events_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

func TestNewIDOrdersByTime(t *testing.T) {
	early := events.NewID(sampleTime, [10]byte{0: 0xff})
	late := events.NewID(sampleTime.Add(time.Millisecond), [10]byte{})
	if early >= late {
		t.Errorf("%s is not before %s", early, late)
	}
	for _, id := range []events.ID{early, late} {
		if got, err := events.ParseID(string(id)); err != nil || got != id {
			t.Errorf("ParseID(%q) = %q, %v", id, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	id, token := string(sampleID(1)), string(events.CoreToken("x"))
	for name, s := range map[string]string{
		"nothing":            "",
		"upper case":         strings.ToUpper(id),
		"too short":          id[1:],
		"too long":           id + "0",
		"beyond 128 bits":    "8" + id[1:],
		"a letter not in it": id[:25] + "u",
		"a dot":              id[:25] + ".",
		"a wildcard":         id[:25] + "*",
		"a space":            id[:25] + " ",
		"a line end":         id[:25] + "\n",
		"not UTF-8":          id[:25] + "\xff",
		"a long text":        strings.Repeat("a", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := events.ParseID(s); err == nil {
				t.Errorf("ParseID = %q", got)
			} else if len(err.Error()) > 600 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
	for name, s := range map[string]string{
		"nothing": "", "upper case": strings.ToUpper(token), "too short": token[1:], "too long": token + "a",
		"digit 0": token[:25] + "0", "a dot": token[:25] + ".", "a wildcard": token[:25] + "*", "not UTF-8": token[:25] + "\xff",
	} {
		if got, err := events.ParseToken(s); err == nil {
			t.Errorf("%s: ParseToken = %q", name, got)
		}
	}
	digest := string(events.DigestOf(nil))
	if got, err := events.ParseDigest(digest); err != nil || string(got) != digest {
		t.Errorf("ParseDigest(%q) = %q, %v", digest, got, err)
	}
	for name, s := range map[string]string{
		"nothing": "", "upper case": strings.ToUpper(digest), "too short": digest[1:], "too long": digest + "a", "no digit": digest[:63] + "g",
	} {
		if got, err := events.ParseDigest(s); err == nil {
			t.Errorf("%s: ParseDigest = %q", name, got)
		}
	}
}

func TestTokensKeepDomainsAndPartsApart(t *testing.T) {
	tokens := map[events.Token]string{}
	for name, token := range map[string]events.Token{
		"project x":        events.ProjectToken("x"),
		"core x":           events.CoreToken("x"),
		"session x, a, b":  events.SessionToken("x", "a", "b"),
		"session x, ab":    events.SessionToken("x", "ab", ""),
		"session x, , ab":  events.SessionToken("x", "", "ab"),
		"session xa, b":    events.SessionToken("xa", "b", ""),
		"project of spare": events.ProjectToken(""),
	} {
		if other, ok := tokens[token]; ok {
			t.Errorf("%s and %s have one token", name, other)
		}
		tokens[token] = name
		if got, err := events.ParseToken(string(token)); err != nil || got != token {
			t.Errorf("%s: ParseToken(%q) = %q, %v", name, token, got, err)
		}
	}
}

func TestMicros(t *testing.T) {
	if got := events.At(time.Time{}); got != 0 || !got.Time().IsZero() {
		t.Errorf("no time is %d and reads back as %v", got, got.Time())
	}
	rapid.Check(t, func(t *rapid.T) {
		m := events.Micros(rapid.Int64Range(1, 1<<52).Draw(t, "micros"))
		if got := events.At(m.Time()); got != m {
			t.Fatalf("%d reads back as %d", m, got)
		}
	})
}

func TestSubjectsAreApart(t *testing.T) {
	p, s, id := events.ProjectToken("p"), events.SessionToken("c", "generic", "n"), sampleID(1)
	for _, subject := range []string{
		events.GenesisSubject, events.GrantsSubject(p), events.SessionSubject(p, s), events.OperationSubject(p, s, id),
	} {
		if !strings.HasPrefix(subject, strings.TrimSuffix(events.StreamSubjects, ">")) {
			t.Errorf("%s is outside the stream", subject)
		}
		if _, err := events.ParseDoorSubject(subject); err == nil {
			t.Errorf("%s is taken for a frontend's command", subject)
		}
	}
	for _, subject := range []string{
		events.LiveSubject(p, s), events.AnnounceSubject, events.InboxPrefix(id),
		events.FrontendSubject(p, s, id, "claim"), events.LobbySubject(events.DoorAll, id, "hello"),
	} {
		if strings.HasPrefix(subject, strings.TrimSuffix(events.StreamSubjects, ">")) {
			t.Errorf("%s would be stored in the log", subject)
		}
		if _, err := events.ParseLogSubject(subject); err == nil {
			t.Errorf("%s is taken for a subject of the log", subject)
		}
	}
}

func TestSubjectRoundTrip(t *testing.T) {
	p, s, id := events.ProjectToken("p"), events.SessionToken("c", "generic", "n"), sampleID(1)
	for subject, want := range map[string]events.LogSubject{
		events.GenesisSubject:             {},
		events.GrantsSubject(p):           {Project: p},
		events.SessionSubject(p, s):       {Project: p, Session: s},
		events.OperationSubject(p, s, id): {Project: p, Session: s, Operation: id},
	} {
		if got, err := events.ParseLogSubject(subject); err != nil || got != want {
			t.Errorf("ParseLogSubject(%q) = %+v, %v", subject, got, err)
		}
	}
	for subject, want := range map[string]events.DoorSubject{
		events.FrontendSubject(p, s, id, events.VerbClaim):        {Project: p, Session: s, Frontend: id, Verb: events.VerbClaim},
		events.LobbySubject(events.DoorAll, id, events.VerbHello): {Scope: events.DoorAll, Frontend: id, Verb: events.VerbHello},
		events.LobbySubject(string(p), id, events.VerbRenew):      {Scope: string(p), Frontend: id, Verb: events.VerbRenew},
	} {
		if got, err := events.ParseDoorSubject(subject); err != nil || got != want {
			t.Errorf("ParseDoorSubject(%q) = %+v, %v", subject, got, err)
		}
	}
	for subject, want := range map[string]events.AgentDoorSubject{
		events.AgentSubject(p, s, id, events.VerbCommit):               {Project: p, Session: s, Agent: id, Verb: events.VerbCommit},
		events.AgentLobbySubject(events.DoorAll, id, events.VerbCores): {Core: events.DoorAll, Agent: id, Verb: events.VerbCores},
		events.AgentLobbySubject(string(p), id, "session_open"):        {Core: string(p), Agent: id, Verb: events.VerbSessionOpen},
	} {
		if got, err := events.ParseAgentSubject(subject); err != nil || got != want {
			t.Errorf("ParseAgentSubject(%q) = %+v, %v", subject, got, err)
		}
		if _, err := events.ParseDoorSubject(subject); err == nil {
			t.Errorf("%q was read as a frontend's", subject)
		}
	}
}

// FuzzParseSubjects checks that a subject has one reading and one spelling:
// what is parsed is built again as it was.
func FuzzParseSubjects(f *testing.F) {
	p, s, id := events.ProjectToken("p"), events.SessionToken("c", "generic", "n"), sampleID(1)
	for _, subject := range []string{
		events.GenesisSubject, events.GrantsSubject(p), events.SessionSubject(p, s), events.OperationSubject(p, s, id),
		events.FrontendSubject(p, s, id, "claim"), events.LobbySubject("all", id, "hello"), events.LiveSubject(p, s),
		events.AnnounceSubject, events.StreamSubjects, "", ".", "fermata.ev...op.", strings.Repeat("fermata.", 1000),
		"fermata.v1.*.*.fe." + string(id) + ".>", "fermata.lobby.v1.all.fe." + string(id) + ".a b",
		events.AgentSubject(p, s, id, "propose"), events.AgentLobbySubject("all", id, "cores"), "fermata.v1.*.*.op." + string(id) + ".>",
	} {
		f.Add(subject)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		if l, err := events.ParseLogSubject(subject); err == nil && logSubject(l) != subject {
			t.Errorf("%q was read as %+v, which is %q", subject, l, logSubject(l))
		}
		if d, err := events.ParseDoorSubject(subject); err == nil {
			if doorSubject(d) != subject {
				t.Errorf("%q was read as %+v, which is %q", subject, d, doorSubject(d))
			}
			if d.Verb == "" || strings.Trim(d.Verb, "abcdefghijklmnopqrstuvwxyz_") != "" {
				t.Errorf("%q was read with the verb %q, which is no subject token", subject, d.Verb)
			}
		}
		if d, err := events.ParseAgentSubject(subject); err == nil && agentSubject(d) != subject {
			t.Errorf("%q was read as %+v, which is %q", subject, d, agentSubject(d))
		}
	})
}

func agentSubject(d events.AgentDoorSubject) string {
	if d.Core != "" {
		return events.AgentLobbySubject(d.Core, d.Agent, d.Verb)
	}
	return events.AgentSubject(d.Project, d.Session, d.Agent, d.Verb)
}

func logSubject(l events.LogSubject) string {
	switch {
	case l.Operation != "":
		return events.OperationSubject(l.Project, l.Session, l.Operation)
	case l.Session != "":
		return events.SessionSubject(l.Project, l.Session)
	case l.Project != "":
		return events.GrantsSubject(l.Project)
	}
	return events.GenesisSubject
}

func doorSubject(d events.DoorSubject) string {
	if d.Scope != "" {
		return events.LobbySubject(d.Scope, d.Frontend, d.Verb)
	}
	return events.FrontendSubject(d.Project, d.Session, d.Frontend, d.Verb)
}

// FuzzParseID checks ids and tokens: what is accepted is fit for a subject,
// and an id is the one spelling of its 16 bytes.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{
		string(sampleID(1)), strings.ToUpper(string(sampleID(1))), string(events.CoreToken("x")),
		"7zzzzzzzzzzzzzzzzzzzzzzzzz", "80000000000000000000000000", "00000000000000000000000000", "iiiiiiiiiiiiiiiiiiiiiiiiii",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := events.ParseID(s)
		if err == nil && (string(id) != s || strings.Trim(s, "0123456789abcdefghjkmnpqrstvwxyz") != "" || len(s) != 26 || s[0] > '7') {
			t.Errorf("ParseID(%q) = %q", s, id)
		}
		token, err := events.ParseToken(s)
		if err == nil && (string(token) != s || strings.ContainsAny(s, ".*> ")) {
			t.Errorf("ParseToken(%q) = %q", s, token)
		}
	})
}

// FuzzParseDigest: what is taken for a digest is 32 bytes in lower-case hexadecimal,
// and is kept as it is.
func FuzzParseDigest(f *testing.F) {
	for _, s := range []string{"", "00", string(events.DigestOf([]byte("x"))), strings.Repeat("A", 64), strings.Repeat("é", 32)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := events.ParseDigest(s)
		b, bad := hex.DecodeString(s)
		is := bad == nil && len(b) == sha256.Size && s == strings.ToLower(s)
		if (err == nil) != is || err == nil && string(d) != s {
			t.Errorf("%q: %q, %v", s, d, err)
		}
	})
}
