package hooks

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

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

// fileReader reads one hooks file.
type fileReader struct {
	doc   *document
	scope events.Scope
	file  string
	home  string
}

// readFile turns a file's text into hooks and settings. Hooks have no Index
// yet.
func readFile(scope events.Scope, file, home string, data []byte) ([]Hook, Settings, []ConfigError, error) {
	root, bad := parse(file, data)
	if bad != nil {
		return nil, Settings{}, nil, bad
	}
	f := fileReader{doc: &document{file: file}, scope: scope, file: file, home: home}
	top := f.doc.value(root, "").object("version", "settings", "hooks")
	if v := top.field("version"); v.count(1, 1) != 1 {
		v.fail("this core reads version 1 only")
	}
	settings := f.settings(top.field("settings"))
	hooks := f.hooks(top.field("hooks"))
	if f.doc.err != nil {
		return nil, Settings{}, nil, f.doc.err
	}
	return hooks, settings, f.doc.warnings, nil
}

func (f fileReader) settings(v value) Settings {
	s := DefaultSettings()
	if v.isNull() {
		return s // the key with all its lines commented out
	}
	o := v.object("shutdown_grace_seconds", "max_parallel_hooks", "outbox_retry_age_seconds", "outbox_max_retries")
	s.ShutdownGrace = o.field("shutdown_grace_seconds").seconds(s.ShutdownGrace)
	s.MaxParallel = o.field("max_parallel_hooks").count(s.MaxParallel, 1)
	s.OutboxRetryAge = o.field("outbox_retry_age_seconds").seconds(s.OutboxRetryAge)
	s.OutboxMaxRetries = o.field("outbox_max_retries").count(s.OutboxMaxRetries, 0)
	return s
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
	o := v.object("id", "event", "run", "execution", "match", "enabled", "description")
	h := Hook{
		Ref:         events.Hook{ID: f.id(o.field("id").required()), Scope: f.scope, File: f.file, Line: v.at.Line},
		Event:       f.event(o.field("event").required()),
		Enabled:     o.field("enabled").flag(true),
		Description: o.field("description").text(""),
		dir:         filepath.Dir(f.file),
		home:        f.home,
	}
	f.execution(o.field("execution"), &h)
	h.Run = f.run(o.field("run").required(), h)
	h.match = f.match(o.field("match"), h)
	return h
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

// execution fills in the defaults: a blocking hook on a gated event blocks when
// it fails, and on a gated event the mode must be written down, because the
// default would quietly decide nothing.
func (f fileReader) execution(v value, h *Hook) {
	o := v.object("mode", "timeout_seconds", "on_error", "detach", "delivery", "require_result", "confirmation")
	mode := o.field("mode")
	if h.Event.Gated() && !mode.present() {
		mode.fail("must be written for a hook on %s: blocking decides, async and fire_and_forget only watch", h.Event)
	}
	h.Mode = Mode(mode.choice(string(FireAndForget), string(Blocking), string(Async), string(FireAndForget)))
	limit := o.field("timeout_seconds")
	if h.Timeout = limit.seconds(defaultTimeout); h.Timeout == 0 {
		limit.fail("must be more than 0")
	}
	failing := OnErrorWarn
	if h.Mode == Blocking && h.Event.Gated() {
		failing = OnErrorBlock
	}
	h.OnError = OnError(o.field("on_error").choice(string(failing), string(OnErrorBlock), string(OnErrorWarn), string(OnErrorIgnore)))
	detach := o.field("detach")
	if h.Detach = detach.flag(false); h.Detach && h.Mode != FireAndForget {
		detach.fail("works with mode fire_and_forget only")
	}
	delivery := o.field("delivery")
	h.Delivery = Delivery(delivery.choice(string(BestEffort), string(BestEffort), string(Durable)))
	if h.Delivery == Durable && h.Mode == Blocking {
		delivery.warn("a blocking hook is never started again later")
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

func (f fileReader) run(v value, h Hook) Run {
	if !v.present() {
		return Run{}
	}
	// Which keys are known depends on the type, so it is read first.
	kind := ""
	for _, e := range v.entries() {
		if e.key == "type" {
			kind = e.value.choice("", string(RunVerdict), string(RunScript), string(RunCommand), string(RunShell))
		}
	}
	common := []string{"type", "env", "cwd", "result_from"}
	r := Run{Type: RunType(kind)}
	var o object
	switch r.Type {
	case RunVerdict:
		o = v.object("type", "action", "reason")
		r.Action = o.field("action").required().choice("", "allow", "block", "ask")
		r.Reason = o.field("reason").text("")
		if h.Mode != Blocking || !h.Event.Gated() {
			o.fail("a verdict decides only with mode blocking on before_tool_call or user_prompt_submit")
		}
		return r
	case RunScript:
		o = v.object(append(common, "path", "args")...)
		r.Path = o.field("path").required().name()
	case RunCommand:
		o = v.object(append(common, "argv", "args")...)
		argv := o.field("argv").required()
		if r.Argv = words(argv); argv.present() && (len(r.Argv) == 0 || r.Argv[0] == "") {
			argv.fail("must begin with the program")
		}
	case RunShell:
		o = v.object(append(common, "shell")...)
		shell := o.field("shell").required()
		r.Shell = shell.name()
		fits(shell, r.Shell)
	default:
		v.object(append(common, "action", "reason", "path", "argv", "args", "shell")...).field("type").required()
		return r
	}
	r.Args = words(o.field("args"))
	r.Env = environment(o.field("env"))
	r.Cwd = o.field("cwd").text("")
	r.ResultFrom = ResultFrom(o.field("result_from").choice(string(FromFile), string(FromFile), string(FromStdout)))
	return r
}

func words(v value) []string {
	var out []string
	for _, e := range v.list() {
		s := e.text("")
		fits(e, s)
		out = append(out, s)
	}
	return out
}

// fits refuses what the system could not pass to a process.
func fits(v value, s string) {
	if len(s) > maxArgument {
		v.fail("is longer than 32 KiB; put it into a file")
	}
	if strings.ContainsRune(s, 0) {
		v.fail("contains a zero byte")
	}
}

func environment(v value) map[string]string {
	env := map[string]string{}
	for _, e := range v.entries() {
		s := e.value.text("")
		fits(e.value, s)
		switch {
		case e.key == "" || strings.ContainsAny(e.key, "=\x00"):
			e.value.fail("is no name for a variable")
		case ownVariable(e.key):
			// A hook whose result file is another than the one that is read
			// would have no opinion, which allows.
			e.value.fail("is set by Fermata for each run")
		}
		env[e.key] = s
	}
	return env
}

func (f fileReader) match(v value, h Hook) match {
	o := v.object("profile", "profiles", "tool_kind", "tool_name", "args", "agent", "cwd")
	m := match{
		profile:  o.field("profile").name(),
		profiles: o.field("profiles").texts(),
		toolKind: strings.TrimPrefix(o.field("tool_kind").name(), "chrys."),
		toolName: o.field("tool_name").name(),
		agent:    f.agent(o.field("agent")),
		cwd:      o.field("cwd").name(),
	}
	if m.cwd != "" && !doublestar.ValidatePattern(m.cwd) {
		o.field("cwd").fail("is no valid pattern for a path")
	}
	if kind := o.field("tool_kind"); m.toolKind != "" && !slices.Contains(events.ToolKinds(), m.toolKind) {
		kind.fail("%q is no kind of tool, so the rule would never hold; known: %s", m.toolKind, strings.Join(events.ToolKinds(), ", "))
	}
	for _, e := range o.field("args").entries() {
		m.args = append(m.args, f.condition(e, h))
	}
	for _, key := range []string{"tool_kind", "tool_name", "args"} {
		if c := o.field(key); c.present() && !toolEvent(h.Event) {
			c.warn("%s is not about a tool, so the hook never runs", h.Event)
		}
	}
	return m
}

func (f fileReader) agent(v value) events.Agent {
	var known []string
	for _, a := range events.Agents() {
		known = append(known, string(a))
	}
	return events.Agent(v.choice("", known...))
}

// toolEvents carry a tool that can be matched.
func toolEvent(e events.HookEvent) bool {
	switch e {
	case events.BeforeToolCall, "after_tool_call", "tool_error", "approval_requested", "approval_resolved":
		return true
	}
	return false
}

func (f fileReader) condition(e entry, h Hook) condition {
	o := e.value.object("equals", "contains", "regex")
	c := condition{name: e.key}
	if v := o.field("equals"); v.present() {
		s := v.text("")
		c.equals = &s
	}
	c.contains = o.field("contains").text("")
	if v := o.field("regex"); v.present() {
		c.pattern = newPattern(v.text(""))
		if c.pattern.err != nil && h.Enabled {
			v.warn("%s; the hook fails whenever everything else matches", c.pattern.err)
		}
	}
	return c
}
