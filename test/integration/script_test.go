package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fermata-hitl/fermata/events"
)

// TestScript runs the stories in testdata/script: real programs, real sockets,
// real signals. Each file begins with what it proves. When a story has come to
// its end, what the cores left behind in log and spans is held against the
// behaviours of the story (see proofs).
func TestScript(t *testing.T) {
	testscript.RunT(&stage{T: t}, testscript.Params{
		Dir:                 "testdata/script",
		WorkdirRoot:         t.TempDir(), // stays until the proofs have been made
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start-core": startCore, "kill-core": killCore, "await-core": awaitCore, "stop-core": stopCore,
			"watch": watch, "await": awaitEvent, "answer": answer, "aged": aged, "mark": mark,
			"node-modules": nodeModules, "expand": expand,
		},
	})
}

// stage is one story, as the test that it is.
type stage struct {
	*testing.T
	home  *home
	work  string
	watch *process  // the frontend that the story looks through
	read  int       // bytes of its output that the story has seen
	mark  time.Time // from when `await -within` counts
	pid   int       // of the core that was last seen
}

// Run implements testscript.T.
func (s *stage) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) {
		story := &stage{T: t}
		f(story)
		e := story.home.evidence(t)
		t.Run("B95 B96 B99 each question is one span with result and end_reason", func(t *testing.T) { e.checkSpans(t) })
		t.Run("B58 only a version checked to its end was committed and once", func(t *testing.T) { e.checkRuns(t) })
		if len(proofs[name]) == 0 {
			t.Errorf("nothing is proved from what %s leaves behind", name)
		}
		for _, p := range proofs[name] {
			t.Run(p.name, func(t *testing.T) { p.check(t, e, story.work) })
		}
	})
}

// Verbose implements testscript.T.
func (s *stage) Verbose() bool { return testing.Verbose() }

// setup gives each story a home of its own; its rules and scripts are the files
// in the story's config/.
func setup(env *testscript.Env) error {
	s := env.T().(*stage)
	s.home, s.work = emptyHome(s.T), env.WorkDir
	s.home.dirs.Config = filepath.Join(env.WorkDir, "config")
	s.home.setenv("FERMATA_CONFIG_DIR", s.home.dirs.Config)
	testdata, err := filepath.Abs(root + "/test/testdata")
	if err != nil {
		return err
	}
	env.Vars = append(append(env.Vars, s.home.env...), "TESTDATA="+testdata)
	env.Values[stageKey{}] = s
	s.home.write("config.yaml", "mode: process\n")
	return nil
}

// stageKey is where a story finds its stage.
type stageKey struct{}

func stageOf(ts *testscript.TestScript) *stage { return ts.Value(stageKey{}).(*stage) }

func (h *home) setenv(name, value string) { h.env = append(h.env, name+"="+value) }

// startCore starts a core by hand: start-core [FLAG...]
func startCore(ts *testscript.TestScript, _ bool, args []string) {
	s := stageOf(ts)
	s.pid = s.home.startCore(args...).pid()
}

// killCore ends it with SIGKILL, and marks the moment: kill-core
func killCore(ts *testscript.TestScript, _ bool, _ []string) {
	s := stageOf(ts)
	s.mark = time.Now()
	if pid := s.home.killCore(); pid == 0 {
		ts.Fatalf("no core was up")
	}
}

// awaitCore waits for another core than the last one: await-core
func awaitCore(ts *testscript.TestScript, _ bool, _ []string) {
	s := stageOf(ts)
	ts.Check(await("another core", func() error {
		now, err := s.home.status()
		if err != nil || now.PID == s.pid {
			return errNotYet
		}
		s.pid = now.PID
		return nil
	}))
}

// stopCore ends it in order: stop-core
func stopCore(ts *testscript.TestScript, _ bool, _ []string) { stageOf(ts).home.stopCore() }

// mark begins the time that `await -within` measures: mark
func mark(ts *testscript.TestScript, _ bool, _ []string) { stageOf(ts).mark = time.Now() }

// watch attaches `core questions --watch`, the frontend that the story looks
// through, and waits until the core knows it: watch
func watch(ts *testscript.TestScript, _ bool, _ []string) {
	s := stageOf(ts)
	s.watch, s.read = s.home.start("", "core", "questions", "--watch"), 0
	ts.Check(await("attachment of core questions --watch", func() error {
		if now, err := s.home.status(); err == nil && now.Frontends > 0 {
			return nil
		}
		return still(s.watch)
	}))
}

// change is a line of `core questions --watch`, as far as stories need it.
type change struct {
	Event    string    `json:"event"`
	Question events.ID `json:"question"`
	End      struct {
		Reason events.EndReason `json:"end_reason"`
	} `json:"end"`
}

// next is the next change that the watching frontend has printed.
func (s *stage) next() (change, error) {
	line, _, whole := strings.Cut(s.watch.stdout.String()[s.read:], "\n")
	if !whole {
		return change{}, still(s.watch)
	}
	s.read += len(line) + 1
	var c change
	return c, json.Unmarshal([]byte(line), &c)
}

// awaitEvent waits for the next change, and sets $question:
//
//	await [-within DURATION] open|claimed|released|closed [END_REASON]
//
// Only before closed may others come. The time is that since the last mark.
func awaitEvent(ts *testscript.TestScript, _ bool, args []string) {
	s := stageOf(ts)
	var within time.Duration
	if args[0] == "-within" {
		var err error
		within, err = time.ParseDuration(args[1])
		ts.Check(err)
		args = args[2:]
	}
	var seen change
	ts.Check(await("event "+args[0], func() error {
		c, err := s.next()
		if seen = c; err != nil {
			return err
		}
		switch {
		case c.Event == args[0]:
			return nil
		case args[0] == "closed" && c.Event != "open":
			return errNotYet
		}
		return fmt.Errorf("%s came instead: %+v", c.Event, c)
	}))
	took := time.Since(s.mark)
	if len(args) > 1 && string(seen.End.Reason) != args[1] {
		ts.Fatalf("the question ended with %q, want %q", seen.End.Reason, args[1])
	}
	if within > 0 && took > within {
		ts.Fatalf("%s came after %v, want at most %v", args[0], took, within)
	}
	if within > 0 {
		ts.Logf("%s after %v", seen.Event, took.Round(time.Millisecond))
	}
	ts.Setenv("question", string(seen.Question))
}

// answer waits for the next question and answers it: answer OUTCOME [ARG...]
func answer(ts *testscript.TestScript, neg bool, args []string) {
	s := stageOf(ts)
	awaitEvent(ts, neg, []string{"open"})
	r := s.home.run("", "core", append([]string{"answer", ts.Getenv("question")}, args...)...)
	if r.Exit != 0 {
		ts.Fatalf("core answer: %+v", r)
	}
	awaitEvent(ts, neg, []string{"closed", args[0]})
}

// aged waits until the only open question is so old, without attaching as a
// frontend that could be asked: aged DURATION
func aged(ts *testscript.TestScript, _ bool, args []string) {
	age, err := time.ParseDuration(args[0])
	ts.Check(err)
	ts.Check(await("question that is "+args[0]+" old", func() error {
		r := stageOf(ts).home.run("", "core", "questions", "--json")
		if r.Exit != 0 || r.Stdout == "" {
			return errNotYet
		}
		var q struct {
			Question events.ID `json:"question"`
			AskedAt  time.Time `json:"asked_at"`
		}
		if err := json.Unmarshal([]byte(r.Stdout), &q); err != nil {
			return err
		}
		ts.Setenv("question", string(q.Question))
		if time.Since(q.AskedAt) < age {
			return errNotYet
		}
		return nil
	}))
}

// readFile reads what a story left in its directory; ok is false when it did
// not.
func readFile(t *testing.T, work, name string) (data []byte, ok bool) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(work, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return b, err == nil
}
