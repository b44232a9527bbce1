package frontends

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// ScopeError says that what a person named is none of the sessions or projects that
// are open, or several of them.
type ScopeError struct {
	// What is "project" or "session".
	What string
	// Given is the name.
	Given string
	// Fits are those that it may mean, sorted; none when nothing fits.
	Fits []string
}

// Error implements error.
func (e *ScopeError) Error() string {
	if len(e.Fits) == 0 {
		return fmt.Sprintf("no open %s is called %q: the command `fermata sessions` lists those that are", e.What, e.Given)
	}
	return fmt.Sprintf("%q may be several of the open %ss: %q; give one of them whole", e.Given, e.What, e.Fits)
}

// ScopeOf makes the scope that a person names. The project is its directory, as the
// absolute path of a project, or the directory's last element when no other open
// session's project has the same. The session is its token, the agent's own id of it,
// or the beginning of one of them that no other begins with; what fits whole comes
// first. Both: the session of that project. Neither: all. The error is a *[ScopeError].
func ScopeOf(sessions []events.SessionHead, project, session string) (scope string, err error) {
	if project != "" {
		token, err := projectOf(sessions, project)
		if err != nil {
			return "", err
		}
		if session == "" {
			return string(token), nil
		}
		sessions = slices.DeleteFunc(slices.Clone(sessions), func(h events.SessionHead) bool { return h.Project != token })
	}
	if session == "" {
		return events.DoorAll, nil
	}
	token, err := sessionOf(sessions, session)
	return string(token), err
}

func projectOf(sessions []events.SessionHead, given string) (events.Token, error) {
	if filepath.IsAbs(given) { // none of its sessions has to be open yet
		return events.ProjectToken(filepath.Clean(given)), nil
	}
	fits := map[events.Token]string{}
	for _, h := range sessions {
		if filepath.Base(h.ProjectPath) == given || string(h.Project) == given {
			fits[h.Project] = h.ProjectPath
		}
	}
	return theOne("project", given, fits)
}

func sessionOf(sessions []events.SessionHead, given string) (events.Token, error) {
	whole, begun := map[events.Token]string{}, map[events.Token]string{}
	for _, h := range sessions {
		switch {
		case string(h.Session) == given || h.Native == given:
			whole[h.Session] = string(h.Session)
		case strings.HasPrefix(string(h.Session), given) || strings.HasPrefix(h.Native, given):
			begun[h.Session] = string(h.Session)
		}
	}
	if len(whole) > 0 {
		return theOne("session", given, whole)
	}
	return theOne("session", given, begun)
}

func theOne(what, given string, fits map[events.Token]string) (one events.Token, _ error) {
	var names []string
	for token, name := range fits {
		one, names = token, append(names, name)
	}
	if len(names) == 1 {
		return one, nil
	}
	slices.Sort(names)
	return "", &ScopeError{what, given, names}
}
