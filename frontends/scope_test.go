package frontends

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

func TestB109ScopeOf(t *testing.T) {
	head := func(path, native string) events.SessionHead {
		return events.SessionHead{
			Project: events.ProjectToken(path), ProjectPath: path, Native: native, Session: events.SessionToken("core", "claude", path+native),
		}
	}
	one, ten, other, twin := head("/home/ana/shop", "s1"), head("/home/ana/shop", "s10"), head("/home/ana/site", "abc"), head("/srv/site", "s1")
	open := []events.SessionHead{one, ten, other, twin}
	token := func(h events.SessionHead) string { return string(h.Session) }
	project := func(h events.SessionHead) string { return string(h.Project) }
	for name, c := range map[string]struct {
		project, session, want string
		fits                   []string // of a refusal
	}{
		"nothing named":                 {"", "", events.DoorAll, nil},
		"a project's path":              {"/home/ana/shop", "", project(one), nil},
		"a path with a slash behind":    {"/home/ana/shop/", "", project(one), nil},
		"a path that nobody works in":   {"/new", "", string(events.ProjectToken("/new")), nil},
		"a directory's name":            {"shop", "", project(one), nil},
		"a project's token":             {project(other), "", project(other), nil},
		"a name that two have":          {"site", "", "", []string{"/home/ana/site", "/srv/site"}},
		"a name that nobody has":        {"shopp", "", "", []string{}},
		"a session's token":             {"", token(one), token(one), nil},
		"the agent's own id":            {"", "abc", token(other), nil},
		"the beginning of it":           {"", "ab", token(other), nil},
		"the beginning of a token":      {"", token(ten)[:20], token(ten), nil},
		"an id that two have":           {"", "s1", "", sorted(token(one), token(twin))},
		"one of a project, whole first": {"shop", "s1", token(one), nil},
		"a beginning that two have":     {"shop", "s", "", sorted(token(one), token(ten))},
		"of another project":            {"shop", "abc", "", []string{}},
	} {
		got, err := ScopeOf(open, c.project, c.session)
		var no *ScopeError
		if c.fits == nil {
			if got != c.want || err != nil {
				t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
			}
			continue
		}
		if !errors.As(err, &no) || got != "" {
			t.Errorf("%s: %q, %v; want a refusal", name, got, err)
			continue
		}
		if diff := cmp.Diff(c.fits, append([]string{}, no.Fits...)); diff != "" || no.Error() == "" {
			t.Errorf("%s: what it may be (-want +got):\n%s", name, diff)
		}
	}
	if len(open) != 4 || open[0] != one || open[3] != twin {
		t.Error("the caller's sessions were changed")
	}
}

func sorted(a, b string) []string {
	if a > b {
		a, b = b, a
	}
	return []string{a, b}
}

// A project's path is where an agent runs: its author may be anybody.
func TestB109AnErrorMovesNoCursor(t *testing.T) {
	no := &ScopeError{"project", "a\x1b[2J", []string{"/x/\x1b]0;owned\a/p", "/y/\u202e/p"}}
	if text := no.Error(); strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.Contains(text, "owned") {
		t.Errorf("%q", text)
	}
}
