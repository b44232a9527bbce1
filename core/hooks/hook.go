package hooks

import (
	"iter"
	"slices"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Mode says whether an operation waits for a hook. Only a blocking hook can
// decide anything.
type Mode = events.HookMode

// The modes.
const (
	Blocking      = events.ModeBlocking
	Async         = events.ModeAsync
	FireAndForget = events.ModeFireAndForget
)

// OnError says what a hook's failure does to a gated operation.
type OnError string

// The choices of on_error. Anything but warn and ignore blocks.
const (
	OnErrorBlock  OnError = "block"
	OnErrorWarn   OnError = "warn"
	OnErrorIgnore OnError = "ignore"
)

// RunType is how a hook decides.
type RunType string

// The run types. A verdict starts no process: its match is the rule.
const (
	RunVerdict RunType = "verdict"
	RunScript  RunType = "script"
	RunCommand RunType = "command"
	RunShell   RunType = "shell"
)

// ResultFrom says where a process leaves its verdict.
type ResultFrom string

// The places of a verdict.
const (
	FromFile   ResultFrom = "file"
	FromStdout ResultFrom = "stdout"
)

// Delivery says whether an unfinished run of a hook that does not block is
// started again by a later core.
type Delivery string

// The deliveries.
const (
	BestEffort Delivery = "best_effort"
	Durable    Delivery = "durable"
)

// Hook is one entry of a hooks file, with its defaults filled in.
type Hook struct {
	// Ref names the hook in events. Its Index is the place in [Set.Hooks].
	Ref         events.Hook
	Event       events.HookEvent
	Description string
	Enabled     bool
	Run         Run
	Mode        Mode
	Timeout     time.Duration // of the process; a person's time never counts
	OnError     OnError
	Detach      bool
	Delivery    Delivery
	// RequireResult makes an absent or empty verdict a failure.
	RequireResult bool
	Confirmation  Confirmation
	// Pinned is the digest of the script that was trusted; another must not run.
	// "" for a hook without such a script.
	Pinned events.Digest

	match match
	dir   string // of the file; relative script paths start here
	home  string // what the template ${fermata_home} stands for
	icode bool   // the file stands where iCode looks
}

// Run says what a hook runs; which fields are set depends on Type.
type Run struct {
	Type       RunType
	Action     string // verdict: allow, block or ask
	Reason     string // verdict
	Path       string // script: as written, relative to the file's directory
	Argv       []string
	Shell      string
	Args       []string // script and command: appended
	Env        map[string]string
	Cwd        string // "" is the operation's working directory
	ResultFrom ResultFrom
}

// Confirmation is how this hook's questions differ from the configured ones.
type Confirmation struct {
	// Timeout is nil for the configured one; 0 waits without end.
	Timeout    *time.Duration
	WhenNobody events.WhenNobody // "" is the configured choice
}

// Settings are a file's own, with defaults filled in.
type Settings struct {
	ShutdownGrace    time.Duration
	MaxParallel      int // per session
	OutboxRetryAge   time.Duration
	OutboxMaxRetries int // starts in all
}

// DefaultSettings holds where a file says nothing.
func DefaultSettings() Settings {
	return Settings{ShutdownGrace: 5 * time.Second, MaxParallel: 4, OutboxRetryAge: time.Minute, OutboxMaxRetries: 3}
}

// Set is the hooks in force for one working directory. It never changes.
type Set struct {
	// Digest changes whenever a file that the set was made from changes.
	Digest   events.Digest
	Hooks    []Hook // all of them, in order
	Settings Settings
	// Warnings name what is legal and likely a mistake.
	Warnings []ConfigError
	// Notices say which files are there and not in force, and why.
	Notices []Message
}

// Subject is what hooks match on. Args is JSON, the canonical form where there
// is one.
type Subject struct {
	Event   events.HookEvent
	Agent   events.Agent
	Profile string
	Cwd     string
	Tool    events.Tool
	Args    []byte
}

// Plan lists the blocking hooks of an event that match, in order: those that an
// operation must pass, or that see what is only observed one after the other. A
// hook whose match cannot be decided (a regex that does not compile or takes too
// long) is in the plan: its run then fails, and on_error rules.
func (s *Set) Plan(sub Subject) []events.Hook {
	return slices.Collect(s.blocking(sub, 0))
}

// Next is the first hook of the plan at or behind an index, false when there is
// none. It asks no hook further: an operation that passes one hook after the
// other asks each of them once.
func (s *Set) Next(sub Subject, from int) (events.Hook, bool) {
	for h := range s.blocking(sub, from) {
		return h, true
	}
	return events.Hook{}, false
}

// blocking goes through the plan from an index on.
func (s *Set) blocking(sub Subject, from int) iter.Seq[events.Hook] {
	return func(yield func(events.Hook) bool) {
		args := &arguments{raw: sub.Args}
		for i := from; i < len(s.Hooks); i++ {
			h := &s.Hooks[i]
			if !h.blocks(sub.Event) {
				continue
			}
			if matched, err := h.match.matches(sub, args); (matched || err != nil) && !yield(h.Ref) {
				return
			}
		}
	}
}

// Watcher is a hook that watches an event without holding it up.
type Watcher struct {
	Hook events.Hook
	Mode Mode // async or fire_and_forget
	// Durable says that a run which did not end is started again later.
	Durable bool
}

// Watchers lists the hooks that do not block and match an event, in order. One
// whose match cannot be decided is listed: its run then fails.
func (s *Set) Watchers(sub Subject) []Watcher {
	var watchers []Watcher
	args := &arguments{raw: sub.Args}
	for i := range s.Hooks {
		h := &s.Hooks[i]
		if !h.Enabled || h.Mode == Blocking || h.Event != sub.Event {
			continue
		}
		if matched, err := h.match.matches(sub, args); matched || err != nil {
			watchers = append(watchers, Watcher{h.Ref, h.Mode, h.Delivery == Durable})
		}
	}
	return watchers
}

// Concerns reports whether some hook would check a call like this, whatever its
// arguments are. It is the question for arguments that can be read in more than
// one way: no condition on them can be trusted.
func (s *Set) Concerns(sub Subject) bool {
	return slices.ContainsFunc(s.Hooks, func(h Hook) bool { return h.blocks(sub.Event) && h.match.concerns(sub) })
}

// Hook returns the hook with an index that a plan of this set gave out.
func (s *Set) Hook(index int) Hook { return s.Hooks[index] }

func (h *Hook) blocks(e events.HookEvent) bool {
	return h.Enabled && h.Mode == Blocking && h.Event == e
}

// decides reports whether an operation goes on or not by what the hook says.
func (h *Hook) decides() bool { return h.Mode == Blocking && h.Event.Gated() }
