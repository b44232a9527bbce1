package hooks

import (
	"slices"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Mode says whether an operation waits for a hook. Only a blocking hook can
// decide anything.
type Mode string

// The modes.
const (
	Blocking      Mode = "blocking"
	Async         Mode = "async"
	FireAndForget Mode = "fire_and_forget"
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

	match match
	dir   string // of the file; relative script paths start here
	home  string // what the template ${fermata_home} stands for
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

// Plan lists the blocking hooks that an operation must pass, in order. A hook
// whose match cannot be decided (a regex that does not compile or takes too
// long) is in the plan: its run then fails, and on_error rules.
func (s *Set) Plan(sub Subject) []events.Hook {
	var plan []events.Hook
	args := &arguments{raw: sub.Args}
	for _, h := range s.Hooks {
		if !h.decides(sub.Event) {
			continue
		}
		if matched, err := h.match.matches(sub, args); matched || err != nil {
			plan = append(plan, h.Ref)
		}
	}
	return plan
}

// Concerns reports whether some hook would check a call like this, whatever its
// arguments are. It is the question for arguments that can be read in more than
// one way: no condition on them can be trusted.
func (s *Set) Concerns(sub Subject) bool {
	return slices.ContainsFunc(s.Hooks, func(h Hook) bool { return h.decides(sub.Event) && h.match.concerns(sub) })
}

// Hook returns the hook with an index that a plan of this set gave out.
func (s *Set) Hook(index int) Hook { return s.Hooks[index] }

func (h Hook) decides(e events.HookEvent) bool {
	return h.Enabled && h.Mode == Blocking && h.Event == e
}
