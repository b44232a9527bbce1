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
	// FindingForeignName: a condition names an argument as only some agents do.
	FindingForeignName FindingCode = "foreign_name"
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
	// FindingNotRead: another hooks file of the directory counts instead.
	FindingNotRead FindingCode = "not_read"
)

// Finding is something to know about hooks files. Line counts from 1, 0 when
// the finding is about no line. Hook is an id, "" when it is about no hook.
type Finding struct {
	Severity Severity
	Code     FindingCode
	File     string
	Line     int
	Hook     string
	Message  Message
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
		l.findings = append(l.findings, Finding{SeverityError, bad.Finding, f.Path, bad.Line, bad.Hook, bad.about()})
	}
	if f.Trust == TrustNone {
		l.findings = append(l.findings, Finding{
			SeverityWarning, FindingNotTrusted, f.Path, 0, "",
			tell("is not trusted, so its hooks are not in force; look at it, then run: fermata hooks trust"),
		})
	}
	for _, c := range f.Changes {
		l.findings = append(l.findings, Finding{
			SeverityError, FindingChanged, f.Path, 0, "", tell("%s; until it is trusted again, every gated call is refused", c),
		})
	}
	for _, path := range beside(f) {
		l.findings = append(l.findings, Finding{
			SeverityWarning, FindingNotRead, path, 0, "", tell("is not read, because %s stands beside it and counts", filepath.Base(f.Path)),
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

// beside lists further hooks files in the directory of one.
func beside(f FileReport) []string {
	var paths []string
	counts := noteAt(f.Path)
	for _, name := range fileNames {
		path := filepath.Join(f.Dir, name)
		if n := noteAt(path); path != f.Path && n.there && !n.same(counts) {
			paths = append(paths, path)
		}
	}
	return paths
}

func (l *linter) warning(w ConfigError) {
	severity := SeverityWarning
	if w.Finding == FindingBadRegex {
		severity = SeverityError
	}
	l.findings = append(l.findings, Finding{severity, w.Finding, w.File, w.Line, w.Hook, w.about()})
}

func (l *linter) hook(f FileReport, h Hook) {
	find := func(s Severity, code FindingCode, text sentence, args ...any) {
		l.findings = append(l.findings, Finding{s, code, f.Path, h.Ref.Line, h.Ref.ID, tell(text, args...)})
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
	start, err := l.start.prepare(h, Input{Payload: Payload{Event: h.Event, Cwd: l.dir}, Cwd: l.dir}, exchange{})
	if err == nil {
		err = start.interpreter()
	}
	if err != nil {
		find(SeverityError, FindingCannotStart, "%s", err)
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
