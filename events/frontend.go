package events

import (
	"encoding/json"
	"time"
)

// The frontends' door: what a frontend sends, and what it hears. Verbs of a
// session go to [FrontendSubject], verbs of the lobby to [LobbySubject]. Every
// reply holds either its own fields or Refused.

// The verbs of the lobby.
const (
	VerbHello    = "hello"
	VerbRenew    = "renew"
	VerbBye      = "bye"
	VerbSessions = "sessions"
	VerbFind     = "find"
	VerbHistory  = "history"
)

// The verbs of a session.
const (
	VerbSync      = "sync"
	VerbShow      = "show"
	VerbReceived  = "received"
	VerbPresented = "presented"
	VerbClaim     = "claim"
	VerbRelease   = "release"
	VerbRespond   = "respond"
	VerbRing      = "ring"
	VerbRun       = "run"
)

// Refused is a typed no. Who, Answer and When are set when the question was
// settled by somebody; EndReason when it was withdrawn. Hint is one sentence of
// what to do.
type Refused struct {
	Code      Reject    `json:"code"`
	Who       string    `json:"who,omitempty"`
	Answer    Answer    `json:"answer,omitempty"`
	When      Micros    `json:"when,omitempty"`
	EndReason EndReason `json:"end_reason,omitempty"`
	Hint      string    `json:"hint,omitempty"`
}

// Error implements error.
func (r *Refused) Error() string {
	s := string(r.Code)
	if r.EndReason != "" {
		s += " (" + string(r.EndReason) + ")"
	}
	if r.Who != "" {
		s += " by " + r.Who
	}
	if r.Hint != "" {
		s += ": " + r.Hint
	}
	return s
}

// Hello attaches a frontend to the scope of its subject, or changes what it
// is. Capable = can show questions and carry answers. Panes narrows that to the
// sessions whose agent stands in a terminal's pane ([SessionHead.Pane]). Name is
// what others see, such as "tui on pts/3".
type Hello struct {
	Kind    FrontendKind `json:"kind"`
	Capable bool         `json:"capable"`
	Panes   bool         `json:"panes,omitempty"`
	Name    string       `json:"name,omitempty"`
}

// HelloReply tells the lease and the sessions in scope. Epoch changes with
// each start of the core. Alone says that no other core answers here, so that
// nobody needs to wait for more replies, of this verb or another. Principal is
// who the frontend is to the core: the name that its answers are recorded under.
type HelloReply struct {
	Core      Token         `json:"core"`
	Epoch     ID            `json:"epoch"`
	LeaseMS   int64         `json:"lease_ms"`
	Alone     bool          `json:"alone,omitempty"`
	Principal string        `json:"principal,omitempty"`
	Sessions  []SessionHead `json:"sessions,omitempty"`
	Refused   *Refused      `json:"refused,omitempty"`
}

// SessionHead is one session in a list. Native is cut where it is longer than
// 256 bytes, with … at its end. Feed is the number of its newest feed message in
// this epoch, or, before there is one, the number behind which they begin: 0, and
// more for a session that was closed and is open again. Closed says that it has
// ended and leaves the list. Opened is when it began, 0 if that is not known. Pane
// is where its agent was last heard of, as in [ParsePane]; it is said by the agent's
// side and proves nothing.
type SessionHead struct {
	Project     Token  `json:"project"`
	Session     Token  `json:"session"`
	Agent       Agent  `json:"agent"`
	Native      string `json:"native"`
	ProjectPath string `json:"project_path"`
	Parent      Token  `json:"parent,omitempty"`
	Open        int    `json:"open"`
	Feed        uint64 `json:"feed"`
	Opened      Micros `json:"opened,omitempty"`
	Pane        string `json:"pane,omitempty"`
	Closed      bool   `json:"closed,omitempty"`
}

// Renew keeps the lease. Input is true when a person typed or clicked within
// the last 30 s: only then does it renew the claims that the frontend holds.
type Renew struct {
	Input bool `json:"input,omitempty"`
}

// RenewReply holds the newest feed number of every session in scope.
type RenewReply struct {
	Epoch    ID            `json:"epoch"`
	Sessions []SessionHead `json:"sessions,omitempty"`
	Refused  *Refused      `json:"refused,omitempty"`
}

// Bye detaches.
type Bye struct{}

// ByeReply confirms.
type ByeReply struct {
	Refused *Refused `json:"refused,omitempty"`
}

// Find looks up where a question or an operation is. One of the two is set.
type Find struct {
	Question  ID `json:"question,omitempty"`
	Operation ID `json:"operation,omitempty"`
}

// FindReply is where it is. State is open, ended or, of an operation,
// committed; the rest as in [Refused].
type FindReply struct {
	Project   Token    `json:"project,omitempty"`
	Session   Token    `json:"session,omitempty"`
	Operation ID       `json:"operation,omitempty"`
	Question  ID       `json:"question,omitempty"`
	State     string   `json:"state,omitempty"`
	End       *End     `json:"end,omitempty"`
	Refused   *Refused `json:"refused,omitempty"`
}

// History asks for what happened of late in the scope: at most so many operations
// and as many runs of hooks, the newest; 0 and more than [MaxHistory] mean MaxHistory.
type History struct {
	Limit int `json:"limit,omitempty"`
}

// RingAfter is how long a question waits, unanswered and unclaimed, before a frontend
// asks to ring for it.
const RingAfter = 3 * time.Second

// MaxHistory is how many operations and how many runs a core tells of at most.
const MaxHistory = 200

// HistoryReply is at most 256 KiB: the oldest are left out where more do not fit.
// Both lists begin with the oldest.
type HistoryReply struct {
	Epoch   ID        `json:"epoch"`
	Lines   []Line    `json:"lines,omitempty"`
	Runs    []RunLine `json:"runs,omitempty"`
	Refused *Refused  `json:"refused,omitempty"`
}

// Sync asks for the open questions of a session, page by page. Cursor is ""
// or the reply's Next.
type Sync struct {
	Cursor ID `json:"cursor,omitempty"`
}

// SyncReply is one page, at most 256 KiB: arguments longer than fit are left
// out and fetched with show. Feed is the number of the newest feed message
// that the list already contains.
type SyncReply struct {
	Epoch     ID         `json:"epoch"`
	Feed      uint64     `json:"feed"`
	Questions []Question `json:"questions,omitempty"`
	Next      ID         `json:"next,omitempty"`
	Refused   *Refused   `json:"refused,omitempty"`
}

// Show asks for the bytes of one version of a question's arguments from an
// offset. Version counts as in [Version].
type Show struct {
	Question ID    `json:"question"`
	Version  int   `json:"version"`
	Offset   int64 `json:"offset,omitempty"`
}

// ShowReply is a chunk, at most 256 KiB of data; Total is the whole length.
type ShowReply struct {
	Data    []byte   `json:"data,omitempty"`
	Total   int64    `json:"total"`
	Refused *Refused `json:"refused,omitempty"`
}

// Received says that the questions are in the frontend's list. At most 256 ids.
type Received struct {
	Questions []ID `json:"questions"`
}

// Drawn says that a question is on the screen, and the digest that was drawn.
type Drawn struct {
	Question ID     `json:"question"`
	Digest   Digest `json:"digest"`
}

// ClaimCommand asks for the right to answer.
type ClaimCommand struct {
	Question ID `json:"question"`
}

// ClaimReply grants it: Claim is the fencing token that the answer names.
type ClaimReply struct {
	Claim   uint64   `json:"claim,omitempty"`
	LeaseMS int64    `json:"lease_ms,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
}

// Ring asks whether this frontend may call the person to a question outside its own
// terminal or window, such as by a desktop's message.
type Ring struct {
	Question ID `json:"question"`
}

// RingReply says yes to the first who asks and to nobody else, so that a person is
// called once whatever is attached. After a restart of the core a question that was
// already three seconds old counts as rung.
type RingReply struct {
	Yours   bool     `json:"yours,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
}

// RunCommand asks what one run of a hook said. Operation is "" for a run on a
// session's own event.
type RunCommand struct {
	Operation ID `json:"operation,omitempty"`
	Run       ID `json:"run"`
}

// RunReply has the last lines that the run wrote to stderr, as far as the log keeps
// them, and the reason that it gave.
type RunReply struct {
	Stderr  string   `json:"stderr,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
}

// ReleaseCommand gives the right back.
type ReleaseCommand struct {
	Question ID     `json:"question"`
	Claim    uint64 `json:"claim"`
}

// Respond answers. Digest is what was drawn. Claim is the fencing token, or 0
// to claim together with the answer. Human says that a person gave it; an
// answer without it is refused. Text is passed on to the model, at most 16 KiB.
type Respond struct {
	Question ID     `json:"question"`
	Digest   Digest `json:"digest"`
	Claim    uint64 `json:"claim,omitempty"`
	Answer   Answer `json:"answer"`
	Text     string `json:"text,omitempty"`
	Human    bool   `json:"human"`
}

// Ack is the reply to received, presented, release and respond. Seq is the
// stream sequence of what was written, 0 if nothing had to be.
type Ack struct {
	Seq     uint64   `json:"seq,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
}

// Question is an open question as a frontend sees it. Args is canonical JSON,
// whole, or absent when it did not fit the page (Version.Bytes tells its
// length). Changed names what differs from the version that the person last said
// yes to (Previous); in a first question (Previous -1), what hooks made of the
// version that the agent proposed. ChangedBy are the hooks that did, in order. Seq is
// the stream sequence up to which this view is true.
type Question struct {
	ID           ID              `json:"id"`
	Gate         Gate            `json:"gate"`
	Operation    ID              `json:"operation"`
	Project      Token           `json:"project"`
	Session      Token           `json:"session"`
	Agent        Agent           `json:"agent"`
	ProjectPath  string          `json:"project_path"`
	Cwd          string          `json:"cwd"`
	Kind         Kind            `json:"kind"`
	Path         string          `json:"path"`
	Tool         Tool            `json:"tool"`
	Hook         Hook            `json:"hook"`
	Reason       string          `json:"reason,omitempty"`
	Version      Version         `json:"version"`
	Args         json.RawMessage `json:"args,omitempty"`
	Attempt      int             `json:"attempt"`
	Previous     int             `json:"previous"`
	Changed      []Change        `json:"changed,omitempty"`
	ChangedBy    []Hook          `json:"changed_by,omitempty"`
	AskedAt      Micros          `json:"asked_at"`
	Deadline     Micros          `json:"deadline,omitempty"`
	DeadlineFrom string          `json:"deadline_from,omitempty"`
	ClaimedBy    *Claim          `json:"claimed_by,omitempty"`
	ReceivedBy   int             `json:"received_by"`
	Seq          uint64          `json:"seq"`
}

// Change is one top-level argument that differs from what the person last said
// yes to. Old is absent for an added argument, New for a removed one; both are
// absent when they did not fit a page.
type Change struct {
	Name string          `json:"name"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// Claim says who is answering.
type Claim struct {
	Frontend  ID           `json:"frontend"`
	Kind      FrontendKind `json:"kind"`
	Name      string       `json:"name,omitempty"`
	Principal string       `json:"principal"`
	Since     Micros       `json:"since"`
	Claim     uint64       `json:"claim"`
}

// End says how a question ended.
type End struct {
	Question ID           `json:"question"`
	Result   Result       `json:"result"`
	Reason   EndReason    `json:"end_reason"`
	Who      string       `json:"who,omitempty"`
	Kind     FrontendKind `json:"kind,omitempty"`
	Answer   Answer       `json:"answer,omitempty"`
	At       Micros       `json:"at"`
}

// Line is one operation in a frontend's history: what was wanted and what
// became of it. About is [About] of its arguments. Hook is the rule that decided, or
// that asked last, nil when no rule was about it. Who is set when a
// person decided, and Text has their words to the model, cut where they are longer
// than 256 bytes. Bytes is the size of the committed version. Took is how long the
// run took from the commit to its report, in microseconds.
type Line struct {
	Operation   ID        `json:"operation"`
	Project     Token     `json:"project"`
	Session     Token     `json:"session"`
	ProjectPath string    `json:"project_path,omitempty"`
	Agent       Agent     `json:"agent"`
	Kind        Kind      `json:"kind,omitempty"`
	Path        string    `json:"path"`
	Tool        Tool      `json:"tool"`
	About       string    `json:"about,omitempty"`
	State       LineState `json:"state"`
	Code        Code      `json:"code,omitempty"`
	EndReason   EndReason `json:"end_reason,omitempty"`
	Hook        *Hook     `json:"hook,omitempty"`
	Question    ID        `json:"question,omitempty"`
	AskedAt     Micros    `json:"asked_at,omitempty"`
	EndedAt     Micros    `json:"ended_at,omitempty"`
	Who         string    `json:"who,omitempty"`
	Text        string    `json:"text,omitempty"`
	Outcome     Outcome   `json:"outcome,omitempty"`
	Ran         Digest    `json:"ran,omitempty"`
	Committed   Digest    `json:"committed,omitempty"`
	Bytes       int       `json:"bytes,omitempty"`
	Took        int64     `json:"took,omitempty"`
	At          Micros    `json:"at"`
}

// LineState is where an operation stands, as its [Line] says.
type LineState string

// The states of a line.
const (
	LineCommitted LineState = "committed"
	LineDelivered LineState = "delivered"
	LineRefused   LineState = "refused"
	LineAborted   LineState = "aborted"
	LineFinished  LineState = "finished"
)

// RunLine is one run of a hook, as far as it has come. Operation is "" for a run on
// a session's own event. Event is what it ran for, at a gate too. State is running,
// asking or ended; EndReason is how its question ended, while State is ended. Rejected
// says that what this run did made the call be refused.
type RunLine struct {
	Run         ID         `json:"run"`
	Operation   ID         `json:"operation,omitempty"`
	Project     Token      `json:"project"`
	Session     Token      `json:"session"`
	ProjectPath string     `json:"project_path,omitempty"`
	Agent       Agent      `json:"agent"`
	Tool        Tool       `json:"tool"`
	Hook        Hook       `json:"hook"`
	Event       HookEvent  `json:"event"`
	Mode        HookMode   `json:"mode"`
	Attempt     int        `json:"attempt,omitempty"`
	Start       int        `json:"start,omitempty"`
	State       RunState   `json:"state"`
	Effect      Effect     `json:"effect,omitempty"`
	Outcome     RunOutcome `json:"outcome,omitempty"`
	EndReason   EndReason  `json:"end_reason,omitempty"`
	Code        Code       `json:"code,omitempty"`
	Rejected    bool       `json:"rejected,omitempty"`
	FailedOpen  bool       `json:"failed_open,omitempty"`
	NotApplied  string     `json:"not_applied,omitempty"`
	Exit        int        `json:"exit,omitempty"`
	Micros      int64      `json:"micros,omitempty"`
	Waited      int64      `json:"waited,omitempty"`
	At          Micros     `json:"at"`
}

// RunState is where a run stands, as its [RunLine] says.
type RunState string

// The states of a run.
const (
	RunRunning RunState = "running"
	RunAsking  RunState = "asking"
	RunEnded   RunState = "ended"
)

// Live is a message of a session's feed; one or more fields are set. Seq is
// the stream sequence of the log message behind it, 0 for what is not logged
// (who received, session heads).
type Live struct {
	Seq      uint64       `json:"seq,omitempty"`
	Asked    *Question    `json:"asked,omitempty"`
	Claimed  *LiveClaim   `json:"claimed,omitempty"`
	Released ID           `json:"released,omitempty"`
	Ended    *End         `json:"ended,omitempty"`
	Line     *Line        `json:"line,omitempty"`
	Runs     []RunLine    `json:"runs,omitempty"`
	Session  *SessionHead `json:"session,omitempty"`
}

// LiveClaim says that a question has been claimed.
type LiveClaim struct {
	Question ID    `json:"question"`
	By       Claim `json:"by"`
}

// Announce is said by each core every five seconds, and once when a session
// opens (Opened), so that frontends subscribe to its feed.
type Announce struct {
	Core   Token        `json:"core"`
	Epoch  ID           `json:"epoch"`
	Opened *SessionHead `json:"opened,omitempty"`
}

// HookCall is the one line that agent-hook sends over agent.sock. Stdin holds
// the agent's payload, in base64 when StdinB64 is set instead. Timeout is in
// seconds, 0 when the agent has none or it is unknown. Pane is the terminal's pane
// that the agent stands in, "" for none.
type HookCall struct {
	V         int     `json:"v"`
	Operation ID      `json:"operation"`
	Secret    string  `json:"secret"`
	Agent     string  `json:"agent"`
	Event     string  `json:"event"`
	Stdin     string  `json:"stdin,omitempty"`
	StdinB64  []byte  `json:"stdin_b64,omitempty"`
	PID       int     `json:"pid"`
	PPID      int     `json:"ppid"`
	Cwd       string  `json:"cwd"`
	Timeout   float64 `json:"timeout,omitempty"`
	Pane      string  `json:"pane,omitempty"`
}

// HookLine is a line that the core sends back: first Accepted (the call is in
// the log), then the verdict, which ends the exchange from the core's side. The
// verdict's fields are in this order on the wire: exit, stdout, stderr.
type HookLine struct {
	Accepted bool   `json:"accepted,omitempty"`
	Exit     int    `json:"exit"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// HookReceipt is the last line that agent-hook sends, before it writes its
// stdout: no receipt, no run.
type HookReceipt struct {
	Receipt ID `json:"receipt"`
}
