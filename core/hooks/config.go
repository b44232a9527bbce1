package hooks

import (
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-hitl/fermata/events"
)

const (
	defaultTimeout = 30 * time.Second
	maxID          = 512
	// maxArgument bounds each word that a hook puts into argv or environment:
	// systems refuse longer ones in ways that are hard to tell from a fault of
	// the program.
	maxArgument = 32 << 10
)

// origin is where a hooks file stands and how it is to be read.
type origin struct {
	scope events.Scope
	file  string
	home  string // what the templates for the home stand for
	icode bool   // the file stands where iCode looks: its encodings and defaults hold
}

// contents is what one hooks file says. Its hooks have no Index yet.
type contents struct {
	hooks    []Hook
	settings given
	warnings []ConfigError
}

// fileReader reads one hooks file.
type fileReader struct {
	origin
	doc *document
}

// readFile turns a file's bytes into what they say. The error is a
// *[ConfigError].
func readFile(o origin, data []byte) (contents, error) {
	root, bad := parse(o.file, o.icode, data)
	if bad != nil {
		return contents{}, bad
	}
	f := fileReader{o, &document{file: o.file}}
	top := f.doc.value(root, "").object("version", "settings", "hooks")
	if v := top.field("version"); v.count(1, 1) != 1 {
		v.fail("this core reads version 1 only")
	}
	settings := f.settings(top.field("settings"))
	hooks := f.hooks(top.field("hooks"))
	if f.doc.err != nil {
		return contents{}, f.doc.err
	}
	return contents{hooks, settings, f.doc.warnings}, nil
}

// given are the settings that a file writes down; nil where it says nothing.
type given struct {
	shutdownGrace    *time.Duration
	maxParallel      *int
	outboxRetryAge   *time.Duration
	outboxMaxRetries *int
}

// over puts what is given in the place of what was there before.
func (g given) over(s Settings) Settings {
	replace(&s.ShutdownGrace, g.shutdownGrace)
	replace(&s.MaxParallel, g.maxParallel)
	replace(&s.OutboxRetryAge, g.outboxRetryAge)
	replace(&s.OutboxMaxRetries, g.outboxMaxRetries)
	return s
}

func replace[T any](old, by *T) {
	if by != nil {
		*old = *by
	}
}

func (f fileReader) settings(v value) given {
	if v.isNull() {
		return given{} // the key with all its lines commented out
	}
	o := v.object("shutdown_grace_seconds", "max_parallel_hooks", "outbox_retry_age_seconds", "outbox_max_retries")
	seconds := func(v value) *time.Duration { return written(v, v.seconds(0)) }
	count := func(v value, least int) *int { return written(v, v.count(0, least)) }
	return given{
		shutdownGrace:    seconds(o.field("shutdown_grace_seconds")),
		maxParallel:      count(o.field("max_parallel_hooks"), 1),
		outboxRetryAge:   seconds(o.field("outbox_retry_age_seconds")),
		outboxMaxRetries: count(o.field("outbox_max_retries"), 0),
	}
}

// written is what was read at v, nil when nothing stands there.
func written[T any](v value, read T) *T {
	if !v.present() {
		return nil
	}
	return &read
}

func (f fileReader) hooks(v value) []Hook {
	if v.isNull() {
		v.fail("has no entries; write [] if none is wanted")
		return nil
	}
	var hooks []Hook
	lines := map[string]int{}
	for _, e := range v.list() {
		h := f.hook(e)
		if line, ok := lines[h.Ref.ID]; ok {
			e.fail("the id %q is already used in line %d", clip(h.Ref.ID), line)
		}
		if f.doc.err != nil {
			return nil
		}
		lines[h.Ref.ID] = h.Ref.Line
		hooks = append(hooks, h)
	}
	return hooks
}

func (f fileReader) hook(v value) Hook {
	f.doc.hook = ""
	o := v.object("id", "event", "run", "execution", "match", "enabled", "description")
	id := f.id(o.field("id").required())
	f.doc.hook = id
	h := Hook{
		Ref:         events.Hook{ID: id, Scope: f.scope, File: f.file, Line: v.at.Line},
		Event:       f.event(o.field("event").required()),
		Enabled:     o.field("enabled").flag(true),
		Description: o.field("description").text(""),
		dir:         filepath.Dir(f.file),
		home:        f.home,
		icode:       f.icode,
	}
	f.execution(o.field("execution"), &h)
	h.Run = f.run(o.field("run").required(), h)
	h.match = f.match(o.field("match"), h)
	if h.OnError == "" {
		h.OnError = f.onError(h)
	}
	return h
}

// onError is what a failure of a hook does that does not say so itself. iCode
// lets the operation on. A hook whose own regex cannot be read is no hook of
// iCode's any more; nobody knows what it guards, so it blocks.
func (f fileReader) onError(h Hook) OnError {
	if h.decides() && (!f.icode || h.match.broken()) {
		return OnErrorBlock
	}
	return OnErrorWarn
}

func (f fileReader) id(v value) string {
	id := strings.TrimSpace(v.text(""))
	n := utf8.RuneCountInString(id)
	unprintable := strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) })
	if v.present() && (n < 1 || n > maxID || unprintable) {
		v.fail("must have 1 to %d printable characters", maxID)
	}
	return id
}

func (f fileReader) event(v value) events.HookEvent {
	known := []string{string(events.BeforeToolCall), string(events.UserPromptSubmit)}
	for _, e := range events.ObservedEvents() {
		known = append(known, string(e))
	}
	return events.HookEvent(v.choice("", known...))
}

// execution reads how a hook runs. On a gated event the mode must be written
// down, because the default would quietly decide nothing; a file written for
// iCode may lack it and is told so.
func (f fileReader) execution(v value, h *Hook) {
	o := v.object("mode", "timeout_seconds", "on_error", "detach", "delivery", "require_result", "confirmation")
	mode := o.field("mode")
	switch {
	case !h.Event.Gated() || mode.present():
	case f.icode:
		mode.warn(FindingNeverBlocks, "is not written, so the hook only watches %s and never blocks; write blocking if it is to decide", h.Event)
	default:
		mode.fail("must be written for a hook on %s: blocking decides, async and fire_and_forget only watch", h.Event)
	}
	h.Mode = Mode(mode.choice(string(FireAndForget), string(Blocking), string(Async), string(FireAndForget)))
	limit := o.field("timeout_seconds")
	if h.Timeout = limit.seconds(defaultTimeout); h.Timeout == 0 {
		limit.fail("must be more than 0")
	}
	h.OnError = OnError(o.field("on_error").choice("", string(OnErrorBlock), string(OnErrorWarn), string(OnErrorIgnore)))
	detach := o.field("detach")
	if h.Detach = detach.flag(false); h.Detach && h.Mode != FireAndForget {
		detach.fail("works with mode fire_and_forget only")
	}
	delivery := o.field("delivery")
	h.Delivery = Delivery(delivery.choice(string(BestEffort), string(BestEffort), string(Durable)))
	if h.Delivery == Durable && h.Mode == Blocking {
		delivery.warn(FindingBlockingDurable, "a blocking hook is never started again later")
	}
	h.RequireResult = o.field("require_result").flag(false)
	h.Confirmation = f.confirmation(o.field("confirmation"))
}

func (f fileReader) confirmation(v value) Confirmation {
	o := v.object("timeout_seconds", "when_nobody")
	var c Confirmation
	if limit := o.field("timeout_seconds"); limit.present() {
		d := limit.seconds(0)
		c.Timeout = &d
	}
	nobody := o.field("when_nobody").choice("", string(events.NobodyReject), string(events.NobodyWait))
	c.WhenNobody = events.WhenNobody(nobody)
	return c
}
