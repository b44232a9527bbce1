package hooks

import (
	"fmt"

	"github.com/fermata-hitl/fermata/events"
)

// TrustState says whether a hooks file counts.
type TrustState string

// The trust states. A global file always counts. A project's file that was
// never trusted is passed over; one that was trusted and is not as it was then
// stops every gated call until it is trusted again.
const (
	TrustAlways  TrustState = "always"
	TrustNone    TrustState = "none"
	TrustTrusted TrustState = "trusted"
	TrustChanged TrustState = "changed"
)

// ChangeKind says in which way a trusted file is not as it was.
type ChangeKind string

// The change kinds.
const (
	// ChangedContent: its text is another.
	ChangedContent ChangeKind = "changed"
	// ChangedGone: it is not there any more.
	ChangedGone ChangeKind = "gone"
	// ChangedUnreadable: it cannot be read, or is no plain file.
	ChangedUnreadable ChangeKind = "unreadable"
	// ChangedLink: its path leads to another place now.
	ChangedLink ChangeKind = "link"
	// ChangedShadowed: another hooks file stands before it in the order.
	ChangedShadowed ChangeKind = "shadowed"
	// ChangedUnknown: the trust file is damaged, so nobody knows what was
	// trusted.
	ChangedUnknown ChangeKind = "unknown"
)

// Change is what happened to a file since it was trusted. Path is relative to
// the project, or absolute where it lies outside.
type Change struct {
	Path string
	Kind ChangeKind
}

// String is the change in words, such as ".fermata/hooks.yaml has changed".
func (c Change) String() string { return c.In(fmt.Sprintf) }

// In gives the change in the language of say, as [Message.In] does.
func (c Change) In(say func(text string, args ...any) string) string {
	text := sentence("%s cannot be read")
	switch c.Kind {
	case ChangedContent:
		text = "%s has changed"
	case ChangedGone:
		text = "%s is gone"
	case ChangedLink:
		text = "%s leads to another place"
	case ChangedShadowed:
		text = "%s is hidden by another hooks file beside it"
	case ChangedUnknown:
		text = "nobody knows whether %s was trusted"
	case ChangedUnreadable:
	}
	return tell(text, c.Path).In(say)
}

// NotTrusted says that hooks files of a project, or scripts that they name, are
// not as they were when they were trusted. Until somebody says yes to them as
// they are now, no gated operation of the project may run.
type NotTrusted struct {
	Dir     string   // of the project, links resolved
	Changes []Change // at least one
	Hint    Message  // what to do
}

// Error implements error.
func (e *NotTrusted) Error() string { return e.In(fmt.Sprintf) }

// In gives the error in the language of say, as [Message.In] does.
func (e *NotTrusted) In(say func(text string, args ...any) string) string {
	return tell("the hooks of %s are not trusted any more: %s; %s", e.Dir, joined("%s, %s", e.Changes...), e.Hint).In(say)
}

// Code is [events.CodeNotTrusted].
func (*NotTrusted) Code() events.Code { return events.CodeNotTrusted }

// Report is what stands in the hooks files of one working directory, trusted or
// not.
type Report struct {
	Dir   string // the working directory, links resolved
	Files []FileReport
}

// FileReport is one hooks file, in the order in which they count.
type FileReport struct {
	Scope events.Scope
	Dir   string // that holds the file
	Path  string // of the file; of one that is gone, where it was
	ICode bool   // the file stands where iCode looks, so iCode's defaults hold
	Trust TrustState
	// Changes say what is not as it was trusted.
	Changes []Change
	Digest  events.Digest // of the file's bytes; "" when it cannot be read
	Scripts []ScriptReport
	// Hooks have the Index that they get in a Set in which every file counts.
	Hooks    []Hook
	Settings Settings // the file's own, with defaults filled in
	Warnings []ConfigError
	// Err is nil or a *[ConfigError]; then there are no hooks.
	Err error
}

// ScriptReport is a script that an enabled hook of a project names by a
// relative path.
type ScriptReport struct {
	Path   string        // absolute
	Digest events.Digest // "" when it cannot be read
}
