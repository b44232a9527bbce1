package events

import (
	"fmt"
	"strings"
)

// StreamSubjects is everything that the log's stream holds.
const StreamSubjects = "fermata.ev.>"

// GenesisSubject holds the first message of a log segment.
const GenesisSubject = "fermata.ev.genesis"

// Headers of messages.
const (
	// HeaderType lists the event types of a logged message, comma separated.
	HeaderType = "Fermata-Type"
	// HeaderFeed is "<core epoch>.<n>", n consecutive per session.
	HeaderFeed = "Fermata-Feed"
	// HeaderSeq is the stream sequence behind a feed message.
	HeaderSeq = "Fermata-Seq"
)

// OperationSubject is the one subject that holds all of an operation.
func OperationSubject(project, session Token, operation ID) string {
	return "fermata.ev." + string(project) + "." + string(session) + ".op." + string(operation)
}

// SessionSubject holds a session's own events.
func SessionSubject(project, session Token) string {
	return "fermata.ev." + string(project) + "." + string(session) + ".s"
}

// GrantsSubject holds a project's remembered approvals.
func GrantsSubject(project Token) string { return "fermata.ev." + string(project) + ".grants" }

// LogSubject is a parsed subject of the log. Operation is "" for a session's
// own subject, Session "" for grants, all "" for the genesis.
type LogSubject struct {
	Project   Token
	Session   Token
	Operation ID
}

// ParseLogSubject takes a subject of the log apart.
func ParseLogSubject(s string) (LogSubject, error) {
	bad := func() error { return fmt.Errorf("%q is not a subject of the log", clip(s)) }
	if s == GenesisSubject {
		return LogSubject{}, nil
	}
	f := strings.Split(s, ".")
	if len(f) < 4 || f[0] != "fermata" || f[1] != "ev" {
		return LogSubject{}, bad()
	}
	project, err := ParseToken(f[2])
	if err != nil {
		return LogSubject{}, bad()
	}
	if len(f) == 4 && f[3] == "grants" {
		return LogSubject{Project: project}, nil
	}
	session, err := ParseToken(f[3])
	if err != nil {
		return LogSubject{}, bad()
	}
	switch {
	case len(f) == 5 && f[4] == "s":
		return LogSubject{Project: project, Session: session}, nil
	case len(f) == 6 && f[4] == "op":
		op, err := ParseID(f[5])
		if err != nil {
			return LogSubject{}, bad()
		}
		return LogSubject{Project: project, Session: session, Operation: op}, nil
	}
	return LogSubject{}, bad()
}

// LiveSubject is a session's feed.
func LiveSubject(project, session Token) string {
	return "fermata.v1." + string(project) + "." + string(session) + ".live"
}

// DoorAll is the lobby's scope that means every project.
const DoorAll = "all"

// FrontendSubject is where a frontend sends a verb about a session.
func FrontendSubject(project, session Token, frontend ID, verb string) string {
	return "fermata.v1." + string(project) + "." + string(session) + ".fe." + string(frontend) + "." + verb
}

// LobbySubject is where a frontend sends a verb about a scope: [DoorAll], a
// project's token or a session's.
func LobbySubject(scope string, frontend ID, verb string) string {
	return "fermata.lobby.v1." + scope + ".fe." + string(frontend) + "." + verb
}

// AgentSubject is where an agent's connection sends a verb about a session.
func AgentSubject(project, session Token, agent ID, verb string) string {
	return "fermata.v1." + string(project) + "." + string(session) + ".op." + string(agent) + "." + verb
}

// AgentLobbySubject is where an agent's connection sends a verb of the lobby: to
// one core by its token, or to [DoorAll].
func AgentLobbySubject(core string, agent ID, verb string) string {
	return "fermata.lobby.v1." + core + ".op." + string(agent) + "." + verb
}

// AnnounceSubject is where each core says every five seconds that it is there.
const AnnounceSubject = "fermata.lobby.v1.announce"

// InboxPrefix is where replies to one connection arrive.
func InboxPrefix(id ID) string { return "_IB." + string(id) }

// DoorSubject is a parsed command subject of a frontend.
type DoorSubject struct {
	Project  Token // "" in the lobby
	Session  Token // "" in the lobby
	Scope    string
	Frontend ID
	Verb     string
}

// AgentDoorSubject is a parsed command subject of an agent's connection.
type AgentDoorSubject struct {
	Project Token // "" in the lobby
	Session Token // "" in the lobby
	Core    string
	Agent   ID
	Verb    string
}

const verbLetters = "abcdefghijklmnopqrstuvwxyz_"

// ParseDoorSubject takes apart a subject made by [FrontendSubject] or
// [LobbySubject].
func ParseDoorSubject(s string) (DoorSubject, error) { return parseDoor(s, "fe", "a frontend's") }

// ParseAgentSubject takes apart a subject made by [AgentSubject] or
// [AgentLobbySubject].
func ParseAgentSubject(s string) (AgentDoorSubject, error) {
	d, err := parseDoor(s, "op", "an agent's")
	return AgentDoorSubject{Project: d.Project, Session: d.Session, Core: d.Scope, Agent: d.Frontend, Verb: d.Verb}, err
}

// parseDoor takes apart a command subject of one role.
func parseDoor(s, role, whose string) (DoorSubject, error) {
	bad := fmt.Errorf("%q is not %s subject", clip(s), whose)
	f := strings.Split(s, ".")
	if len(f) != 7 || f[0] != "fermata" {
		return DoorSubject{}, bad
	}
	id, err := ParseID(f[5])
	if err != nil || f[4] != role || f[6] == "" || strings.Trim(f[6], verbLetters) != "" {
		return DoorSubject{}, bad
	}
	d := DoorSubject{Frontend: id, Verb: f[6]}
	if f[1] == "lobby" && f[2] == "v1" {
		if _, err := ParseToken(f[3]); err != nil && f[3] != DoorAll {
			return DoorSubject{}, bad
		}
		d.Scope = f[3]
		return d, nil
	}
	if f[1] != "v1" {
		return DoorSubject{}, bad
	}
	if d.Project, err = ParseToken(f[2]); err != nil {
		return DoorSubject{}, bad
	}
	if d.Session, err = ParseToken(f[3]); err != nil {
		return DoorSubject{}, bad
	}
	return d, nil
}
