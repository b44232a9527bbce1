package core

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/fermata-hitl/fermata/events"
)

// Phase is where an operation stands.
type Phase uint8

// The phases. An operation leaves PhaseHook, PhaseAsking and PhaseCommitted
// only by a command; PhaseEnded only its trailing records may follow.
const (
	PhaseNone      Phase = iota // nothing is known
	PhaseHook                   // a hook runs (State.Run)
	PhaseAsking                 // a person is asked (State.Question)
	PhaseCommitted              // the asker may run State.End.Committed, once
	PhaseEnded                  // refused, aborted or finished
)

// State is all that the log says of one operation: the fold of its subject.
// It is a value; the fold never changes what another State shares with it. There
// may be 100,000 of them: small counts lie beside the flags to keep it small.
type State struct {
	Phase       Phase
	RunOpen     bool  // Run has started and not ended; may outlive the operation's end
	Delivered   bool  // the asker has confirmed that it has the verdict
	Leased      bool  // the asker keeps it by asking again, and not by a connection
	Outsiders   int32 // events that frontends caused and that ended nothing, bounded
	Proposed    Proposed
	ID          events.ID
	Project     events.Token
	Session     events.Token
	Turn        string
	Traceparent string
	ProposedAt  events.Micros

	Config   events.Digest // the configuration that holds now
	Versions []Version     // every version, in order; the last is current
	Bodies   []Body        // without stderr; see Body
	Run      Run           // the open run at the gate, or the last one
	Cursor   int           // index of the next hook to consider
	Attempt  int           // rechecks so far, 0–3
	Yes      int           // version last answered with continue, -1 none
	YesHook  int           // lowest index of a hook whose question was continued, -1 none

	Question Question // the open question, or the last one
	Settled  []Settled

	End *Ending // nil before a commit or an end; see Ending

	Seq  uint64        // stream sequence of the last message
	Hash Sum           // hash of the last message
	At   events.Micros // time of the last message
}

// Proposed is what was proposed; its arguments are version 0.
type Proposed struct {
	Kind          events.Kind
	Agent         events.Agent
	Path          string
	Tool          events.Tool
	Cwd           string
	Profile       string
	Secret        Sum // of the asker's secret
	AgentDeadline events.Micros
}

// Body is content that a message carried.
type Body struct {
	Key  string
	Data []byte
}

// Version is a version of the arguments. By is the hook that made it, nil for what
// was proposed.
type Version struct {
	events.Version
	By *events.Hook
}

// Run is a run of a hook at the gate, as its HookStarted says.
type Run struct {
	Run       events.ID
	Hook      events.Hook
	Version   int
	Attempt   int
	Available bool
}

// Ending is how an operation came to its commit and to its end, and which runs
// that decide nothing have begun and not ended.
type Ending struct {
	Committed   events.Version
	CommittedAt events.Micros
	Code        events.Code      // why it was refused; ended when it was aborted
	CodeRun     events.ID        // the run that refused it
	Taker       events.ID        // the connection that the right to run went to, "" for one without a name
	Question    events.ID        // the question whose no refused it, maybe an earlier operation's
	EndReason   events.EndReason // why it was aborted, or how the question that ended it ended
	Outcome     events.Outcome
	Ran         events.Digest
	Watch       []events.HookStarted // each with an Event or a Mode
}

// Question is the open question of an operation. It is asked by the run State.Run
// about the current version, in attempt State.Attempt, and what changed did so
// since version State.Yes.
type Question struct {
	Gate         events.Gate
	ID           events.ID
	Changed      []string
	Deadline     events.Micros
	DeadlineFrom string
	WhenNobody   events.WhenNobody
	AskedAt      events.Micros
	Open         bool
	Claims       *Claims // nil = nobody has claimed it
	Rejected     int     // answers rejected so far, as far as they are logged
}

// Claim is who may answer, the zero Claim if nobody has it.
func (q *Question) Claim() Claim {
	if q.Claims == nil {
		return Claim{}
	}
	return q.Claims.Holder
}

// Claims are who has a question now, the zero Claim for nobody, and who has had it
// how often. It is never changed once it is there.
type Claims struct {
	Holder Claim
	Had    []Claimant
}

// Claimant is a frontend that has had a question so many times.
type Claimant struct {
	Frontend  events.ID
	Principal string
	Times     int
}

// held is what becomes of claims by one more.
func (c *Claims) held(by Claim) *Claims {
	next := &Claims{Holder: by}
	if c != nil {
		next.Had = slices.Clone(c.Had)
	}
	i := slices.IndexFunc(next.Had, func(o Claimant) bool { return o.Frontend == by.Frontend && o.Principal == by.Principal })
	if i < 0 {
		i = len(next.Had)
		next.Had = append(next.Had, Claimant{Frontend: by.Frontend, Principal: by.Principal})
	}
	next.Had[i].Times++
	return next
}

// let is what becomes of claims when the holder lets go.
func (c *Claims) let() *Claims { return &Claims{Had: c.Had} }

// times counts the claims so far: all, those of a principal, and of its frontend.
func (c *Claims) times(frontend events.ID, principal string) (all, theirs, own int) {
	if c == nil {
		return 0, 0, 0
	}
	for _, o := range c.Had {
		all += o.Times
		if o.Principal == principal {
			theirs += o.Times
			if o.Frontend == frontend {
				own += o.Times
			}
		}
	}
	return all, theirs, own
}

// Claim is the right to answer the open question; Seq 0 means that nobody has
// it.
type Claim struct {
	Frontend  events.ID
	Kind      events.FrontendKind
	Name      string
	Principal string
	Since     events.Micros
	Seq       uint64
}

// Settled is how a question ended. Run is the one that asked it.
type Settled struct {
	ID       events.ID
	Run      Run
	Result   events.Result
	Reason   events.EndReason
	Answer   events.Answer
	Digest   events.Digest
	Frontend events.ID
	Kind     events.FrontendKind
	Who      string
	At       events.Micros
	Seq      uint64
}

// Ending is how the operation ended, as far as it has.
func (s *State) Ending() Ending {
	if s.End == nil {
		return Ending{}
	}
	return *s.End
}

// Over reports whether the operation may leave memory: nothing can happen to it
// by itself any more, and none of its runs is open. A report may still come.
func (s *State) Over() bool {
	decided := s.Phase == PhaseEnded || s.Phase == PhaseCommitted && s.Delivered
	return decided && !s.RunOpen && (s.End == nil || len(s.End.Watch) == 0)
}

// toEnd is an Ending to write to, which no other State shares.
func (s *State) toEnd() *Ending {
	end := s.Ending()
	s.End = &end
	return s.End
}

// Current is the newest version.
func (s *State) Current() events.Version {
	if len(s.Versions) == 0 {
		return events.Version{}
	}
	return s.Versions[len(s.Versions)-1].Version
}

// ChangedBy lists the hooks that made the current version of an earlier one, each
// once, in order.
func (s *State) ChangedBy(since int) (list []events.Hook) {
	for _, v := range s.Versions {
		if v.N > since && v.By != nil && !slices.Contains(list, *v.By) {
			list = append(list, *v.By)
		}
	}
	return list
}

// Body returns the data of a body, nil if there is none.
func (s *State) Body(key string) []byte {
	for _, v := range slices.Backward(s.Bodies) {
		if v.Key == key {
			return v.Data
		}
	}
	return nil
}

// Args returns the canonical arguments of the current version.
func (s *State) Args() []byte { return s.Body(events.ArgsBody(s.Current().N)) }

// Sum is a SHA-256 as memory keeps it; the zero Sum is none.
type Sum [sha256.Size]byte

// sumOf reads a digest; what is no digest is the zero Sum, which is nobody's.
func sumOf(d events.Digest) Sum {
	var s Sum
	if b, err := hex.DecodeString(string(d)); err == nil && len(b) == len(s) {
		copy(s[:], b)
	}
	return s
}

// Digest is the sum as it is written, "" for the zero Sum.
func (s Sum) Digest() events.Digest {
	if s == (Sum{}) {
		return ""
	}
	return events.Digest(hex.EncodeToString(s[:]))
}
