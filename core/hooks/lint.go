package hooks

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// Severity says how much a finding matters.
type Severity string

// The severities. An error stops operations or keeps a hook from working; a
// warning is legal and likely a mistake.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// FindingCode says what a finding is about.
type FindingCode string

// The finding codes.
const (
	// FindingInvalid: the file cannot be used.
	FindingInvalid FindingCode = "config_invalid"
	// FindingNotTrusted: the project's file is passed over.
	FindingNotTrusted FindingCode = "not_trusted"
	// FindingChanged: the project's file or a script of it is not as it was
	// trusted.
	FindingChanged FindingCode = "changed_since_trust"
	// FindingFailsOpen: when the hook fails, the operation goes on.
	FindingFailsOpen FindingCode = "fails_open"
	// FindingNeverBlocks: the mode is missing, so the hook decides nothing.
	FindingNeverBlocks FindingCode = "never_blocks"
	// FindingMatchesNothing: no operation can match.
	FindingMatchesNothing FindingCode = "matches_nothing"
	// FindingPythonText: a condition looks like Python's text of a list.
	FindingPythonText FindingCode = "python_text"
	// FindingBadRegex: a regex does not compile.
	FindingBadRegex FindingCode = "bad_regex"
	// FindingCannotStart: what the hook runs is not there.
	FindingCannotStart FindingCode = "cannot_start"
	// FindingNotPinned: trust does not cover the program that the hook runs.
	FindingNotPinned FindingCode = "not_pinned"
	// FindingNoFilter: the hook runs for every tool call.
	FindingNoFilter FindingCode = "no_filter"
	// FindingSameID: another file has a hook with this id.
	FindingSameID FindingCode = "same_id"
	// FindingBlockingDurable: a blocking hook cannot be durable.
	FindingBlockingDurable FindingCode = "blocking_durable"
)

// Finding is something to know about hooks files. Line counts from 1, 0 when
// the finding is about no line. Hook is an id, "" when it is about no hook.
type Finding struct {
	Severity Severity
	Code     FindingCode
	File     string
	Line     int
	Hook     string
	Message  string // one sentence in English
}

// Lint says what a person should know about the files of a report, in their
// order. The environment is the one that hooks will start in, as
// [RunnerOptions] want it.
func Lint(r Report, environ []string) []Finding {
	var all []Hook
	for _, f := range r.Files {
		all = append(all, f.Hooks...)
	}
	twice := sameIDs(all)
	l := linter{dir: r.Dir, start: runner{environ: environ}}
	for _, f := range r.Files {
		begin := len(l.findings)
		l.file(f)
		for _, w := range twice {
			if w.File == f.Path {
				l.warning(w)
			}
		}
		slices.SortStableFunc(l.findings[begin:], func(a, b Finding) int { return a.Line - b.Line })
	}
	return l.findings
}

type linter struct {
	dir      string // the working directory
	start    runner
	findings []Finding
}

func (l *linter) file(f FileReport) {
	if bad, ok := errors.AsType[*ConfigError](f.Err); ok {
		l.findings = append(l.findings, Finding{SeverityError, bad.Finding, f.Path, bad.Line, bad.Hook, at(bad)})
	}
	if f.Trust == TrustNone {
		l.findings = append(l.findings, Finding{
			SeverityWarning, FindingNotTrusted, f.Path, 0, "", "is not trusted, so its hooks are not in force; look at it, then run: fermata hooks trust",
		})
	}
	for _, c := range f.Changes {
		l.findings = append(l.findings, Finding{
			SeverityError, FindingChanged, f.Path, 0, "", c.String() + "; until it is trusted again, every gated call is refused",
		})
	}
	for _, w := range f.Warnings {
		l.warning(w)
	}
	for _, h := range f.Hooks {
		if h.Enabled {
			l.hook(f, h)
		}
	}
}

func (l *linter) warning(w ConfigError) {
	severity := SeverityWarning
	if w.Finding == FindingBadRegex {
		severity = SeverityError
	}
	l.findings = append(l.findings, Finding{severity, w.Finding, w.File, w.Line, w.Hook, at(&w)})
}

// at is a message with the field that it is about.
func at(e *ConfigError) string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

func (l *linter) hook(f FileReport, h Hook) {
	find := func(s Severity, code FindingCode, message string) {
		l.findings = append(l.findings, Finding{s, code, f.Path, h.Ref.Line, h.Ref.ID, message})
	}
	if h.failsOpen() {
		find(SeverityWarning, FindingFailsOpen, "when it fails, the operation goes on unchecked; write execution.on_error: block to stop it")
	}
	if h.Event == events.BeforeToolCall && h.match.anything() {
		find(SeverityWarning, FindingNoFilter, "has no match, so it runs for every tool call")
	}
	if f.Scope == events.ScopeProject && l.unpinned(h) {
		find(SeverityWarning, FindingNotPinned, "runs a program of the project that trust does not cover; name it as a script with a path relative to the hooks file")
	}
	if h.Run.Type == RunVerdict {
		return
	}
	if _, err := l.start.prepare(h, Input{Payload: Payload{Event: h.Event, Cwd: l.dir}, Cwd: l.dir}, exchange{}); err != nil {
		find(SeverityError, FindingCannotStart, err.Error())
	}
}

// failsOpen reports a hook that decides, can fail, and then lets the operation
// on. A rule without a regex cannot fail.
func (h Hook) failsOpen() bool {
	canFail := h.Run.Type != RunVerdict || h.match.patterned()
	return h.decides() && canFail && h.OnError != OnErrorBlock
}

// unpinned reports a hook that starts a file of the project by a path that
// trust does not cover.
func (l *linter) unpinned(h Hook) bool {
	switch h.Run.Type {
	case RunCommand:
		return strings.Contains(h.Run.Argv[0], "/") && l.inProject(h.Run.Argv[0])
	case RunScript:
		return filepath.IsAbs(h.Run.Path) && l.inProject(h.Run.Path)
	}
	return false
}

func (l *linter) inProject(path string) bool {
	if !filepath.IsAbs(path) {
		return true
	}
	inside, err := filepath.Rel(l.dir, path)
	return err == nil && filepath.IsLocal(inside)
}
