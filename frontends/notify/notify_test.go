package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// world is a core as a notifier sees it, and what the notifier did.
type world struct {
	mu       sync.Mutex
	open     map[events.ID]events.Question
	ended    map[events.ID]events.End
	sessions []events.SessionHead
	updates  chan frontends.Update
	rung     map[events.ID]bool // somebody else, or this one
	did      []string
}

func newWorld() *world {
	return &world{
		open: map[events.ID]events.Question{}, ended: map[events.ID]events.End{}, rung: map[events.ID]bool{},
		updates: make(chan frontends.Update, 100),
	}
}

func (w *world) note(what ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, strings.Join(what, " "))
}

func (w *world) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.did)
}

func (w *world) Updates(ctx context.Context) iter.Seq2[frontends.Update, error] {
	return func(yield func(frontends.Update, error) bool) {
		for {
			select {
			case u := <-w.updates:
				if !yield(u, nil) {
					return
				}
			case <-ctx.Done():
				yield(frontends.Update{}, context.Cause(ctx))
				return
			}
		}
	}
}

func (w *world) Ring(_ context.Context, id events.ID) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	yours := !w.rung[id]
	w.rung[id] = true
	return yours, nil
}

func (w *world) Questions() []events.Question {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []events.Question
	for _, q := range w.open {
		list = append(list, q)
	}
	return list
}

func (w *world) Question(id events.ID) (events.Question, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q, ok := w.open[id]
	return q, ok
}

func (w *world) Ended(id events.ID) (events.End, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.ended[id]
	return e, ok
}

func (w *world) Sessions() []events.SessionHead { return w.sessions }

func (w *world) ask(id events.ID) {
	w.mu.Lock()
	w.open[id] = events.Question{
		ID: id, Agent: "claude", Session: "child", Tool: events.Tool{Name: "Bash"}, Args: []byte(`{"command":"rm -r secret"}`), AskedAt: events.At(time.Now()),
	}
	w.mu.Unlock()
	w.updates <- frontends.Update{Kind: frontends.KindAsked, Question: id}
}

func (w *world) claim(id events.ID, by *events.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.open[id]
	q.ClaimedBy = by
	w.open[id] = q
}

func (w *world) end(id events.ID, reason events.EndReason) {
	w.mu.Lock()
	delete(w.open, id)
	w.ended[id] = events.End{Question: id, Reason: reason}
	w.mu.Unlock()
	w.updates <- frontends.Update{Kind: frontends.KindEnded, Question: id}
}

// Show and Close are a desktop.
func (w *world) Show(_ context.Context, title, body string) (uint32, error) {
	w.note("show", title+"|"+body)
	return 7, nil
}

func (w *world) Close(ctx context.Context, id uint32) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.note("close", string(rune('0'+id)))
	return nil
}

func (w *world) options() Options { return Options{Client: w, Inbox: w, Desktop: w} }

// run runs a notifier in the bubble until the test has ended.
func run(t *testing.T, o Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Run(ctx, o) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the notifier ended with %v", err)
		}
	})
}

func want(t *testing.T, w *world, did ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(did, w.seen()); diff != "" {
		t.Fatalf("after %v (-want +got):\n%s", time.Now(), diff)
	}
}

const shown = "show Bash · claude waits for you|Open Fermata to read it and answer."

func TestF2CallsAfterThreeSecondsAndTakesItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer run(t, w.options())()
		w.ask("a")
		<-time.After(events.RingAfter - time.Millisecond)
		want(t, w)
		<-time.After(time.Millisecond)
		want(t, w, shown)
		if strings.Contains(strings.Join(w.seen(), ""), "secret") {
			t.Error("what is asked left the screens")
		}
		w.end("a", events.EndContinue)
		want(t, w, shown, "close 7")
	})
}

func TestHAND07NoCallForWhatEndsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := w.options()
		o.Popup = func(context.Context, events.Pane, events.ID, func()) error { w.note("popup"); return nil }
		w.sessions = []events.SessionHead{{Session: "child", Pane: "tmux:%1:/t"}}
		defer run(t, o)()
		w.ask("a")
		<-time.After(settled - time.Millisecond)
		w.end("a", events.EndTurnEnded)
		<-time.After(time.Hour)
		want(t, w)
	})
}

func TestF1CallsOnceWhateverIsAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer run(t, w.options())()
		defer run(t, w.options())()
		w.updates <- frontends.Update{Kind: frontends.KindResynced}
		w.ask("a") // one of the two hears of it; the other lists it
		w.updates <- frontends.Update{Kind: frontends.KindResynced}
		w.updates <- frontends.Update{Kind: frontends.KindResynced}
		<-time.After(time.Minute)
		want(t, w, shown)
	})
}

func TestF1NoCallWhileSomebodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer run(t, w.options())()
		w.ask("a")
		w.claim("a", &events.Claim{Principal: "uid:1"})
		<-time.After(events.RingAfter * 5)
		want(t, w)
		w.claim("a", nil) // put aside
		<-time.After(events.RingAfter)
		want(t, w, shown)
	})
}

func TestF3WhatAnEarlierCoreCalledForIsNotCalledForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.ask("a")
		<-w.updates
		w.rung["a"] = true
		<-time.After(time.Hour)
		defer run(t, w.options())()
		w.updates <- frontends.Update{Kind: frontends.KindResynced}
		<-time.After(time.Hour)
		want(t, w)
	})
}

func TestB11AQuestionThatGoesWithItsSessionIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer run(t, w.options())()
		w.ask("a")
		<-time.After(events.RingAfter)
		want(t, w, shown)
		w.mu.Lock()
		delete(w.open, "a")
		w.mu.Unlock()
		w.updates <- frontends.Update{Kind: frontends.KindSession, Session: "child"}
		want(t, w, shown, "close 7")
	})
}

func TestTheEndOfTheNotifierTakesBackWhatIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		stop := run(t, w.options())
		w.ask("a")
		<-time.After(events.RingAfter)
		want(t, w, shown)
		stop()
		want(t, w, shown, "close 7")
	})
}

// deaf is a desktop that never answers.
type deaf struct{ tried chan string }

func (d deaf) Show(ctx context.Context, _, _ string) (uint32, error) {
	d.tried <- "show"
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

func (d deaf) Close(context.Context, uint32) error { return nil }

func TestADeafDesktopHoldsUpNothingAndIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var log bytes.Buffer
		o := w.options()
		d := deaf{make(chan string, 10)}
		o.Desktop, o.Log = d, slog.New(slog.NewTextHandler(&log, nil))
		stop := run(t, o)
		w.ask("a")
		<-time.After(events.RingAfter + showing)
		w.ask("b")
		<-time.After(events.RingAfter + showing)
		w.ask("c")
		<-time.After(events.RingAfter + time.Second)
		before := time.Now()
		stop()
		if held := time.Since(before); held > closing {
			t.Errorf("the end took %s", held)
		}
		if len(d.tried) != 3 || strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("tried %d times, said:\n%s", len(d.tried), log.String())
		}
	})
}

func TestNamesAreHarmlessAndShort(t *testing.T) {
	long := name(strings.Repeat("名", 100))
	if len(long) > maxName || !strings.HasSuffix(long, "名…") {
		t.Errorf("%q has %d bytes", long, len(long))
	}
	if got := name("a\nb\x1b]0;x\a\x00"); strings.ContainsAny(got, "\n\x1b\a\x00") {
		t.Errorf("%q", got)
	}
}

// slow is a desktop that takes its time to show something.
type slow struct {
	*world
	takes time.Duration
}

func (s slow) Show(ctx context.Context, title, body string) (uint32, error) {
	if !sleep(ctx, s.takes) {
		return 0, context.Cause(ctx)
	}
	return s.world.Show(ctx, title, body)
}

func TestWhatIsShownWhileTheNotifierEndsIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := w.options()
		o.Desktop = slow{w, closing / 2}
		stop := run(t, o)
		w.ask("a")
		<-time.After(events.RingAfter)
		want(t, w) // it is under way
		before := time.Now()
		stop()
		if want(t, w, shown, "close 7"); time.Since(before) > closing {
			t.Errorf("the end took %s", time.Since(before))
		}
	})
}

func TestF1EveryQuestionIsCalledForWhateverIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer run(t, w.options())()
		for i := range maxCalls + 1 {
			w.ask(events.ID(fmt.Sprint("q", i)))
			synctest.Wait()
		}
		<-time.After(events.RingAfter)
		synctest.Wait()
		if n := len(w.seen()); n != maxCalls {
			t.Fatalf("called %d times", n)
		}
		w.end("q7", events.EndContinue)
		<-time.After(events.RingAfter)
		synctest.Wait()
		if did := w.seen(); len(did) != maxCalls+2 || !slices.Contains(did, "close 7") { // one taken back, one more
			t.Errorf("%d: %q", len(did), did[maxCalls:])
		}
	})
}

func TestPaneIsThatOfTheNearestParent(t *testing.T) {
	w := newWorld()
	n := newNotifier(w.options())
	for i := range 40 {
		w.sessions = append(w.sessions, events.SessionHead{Session: events.Token(fmt.Sprint(i)), Parent: events.Token(fmt.Sprint(i + 1))})
	}
	if at, ok := n.pane("0"); ok {
		t.Errorf("%v of nobody", at)
	}
	w.sessions = append(w.sessions, events.SessionHead{Session: "40", Pane: "tmux:%3:/t", Parent: "41"}, events.SessionHead{Session: "41", Pane: "tmux:%4:/t"})
	if at, ok := n.pane("0"); !ok || at.ID != "%3" {
		t.Errorf("%v", at)
	}
	w.sessions = []events.SessionHead{{Session: "a", Parent: "b"}, {Session: "b", Parent: "a"}} // heads of two moments
	if at, ok := n.pane("a"); ok {
		t.Errorf("%v of nobody", at)
	}
}

// B125: both languages.
func TestB125TheCallSpeaksTheLanguage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := w.options()
		o.Words = words.In(words.Chinese)
		defer run(t, o)()
		w.ask("a")
		<-time.After(events.RingAfter)
		want(t, w, "show Bash · claude 在等你回答|打开 Fermata 查看并回答。")
	})
}

func TestPopupsOpenOneAtATimeForSessionsWithAPane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := w.options()
		o.Desktop = nil
		shut := make(chan error)
		o.Hold = func(ctx context.Context, q events.Question) {
			w.note("hold", string(q.ID))
			<-ctx.Done()
			w.note("release", string(q.ID))
		}
		o.Popup = func(_ context.Context, at events.Pane, id events.ID, opened func()) error {
			w.note("open", string(id), at.String())
			err := <-shut
			if err == nil {
				opened()
				err = <-shut
			}
			return err
		}
		w.sessions = []events.SessionHead{{Session: "child", Parent: "root"}, {Session: "root", Pane: "tmux:%3:/t"}, {Session: "bare", Pane: "tmux:x:/t"}}
		defer run(t, o)()
		w.ask("a")
		<-time.After(settled)
		did := []string{"open a tmux:%3:/t"}
		then := func(more ...string) {
			t.Helper()
			did = append(did, more...)
			want(t, w, did...)
		}
		then()
		shut <- nil
		then("hold a")
		for _, id := range []events.ID{"b", "c"} { // they wait, and do not end meanwhile
			w.ask(id)
			<-time.After(settled + queued)
			then("hold " + string(id))
		}
		w.claim("b", &events.Claim{}) // somebody else has it
		shut <- nil                   // a is put aside and stays
		synctest.Wait()
		for _, more := range [][]string{{"release b", "open c tmux:%3:/t"}, {"open c tmux:%3:/t", "release b"}} {
			if slices.Equal(w.seen(), append(slices.Clip(did), more...)) {
				did = append(did, more...)
				break
			}
		}
		shut <- errors.New("tmux is gone")
		then("release c")
		if len(did) != 7 {
			t.Fatalf("%q", did)
		}
		w.end("a", events.EndContinue)
		then("release a")

		w.sessions = nil // no pane, no popup
		w.ask("d")
		<-time.After(time.Minute)
		then()
	})
}

// commanded runs a notifier whose command is script, in real time.
func commanded(t *testing.T, w *world, script string) (stop func(), log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	o := w.options()
	o.Desktop, o.Command, o.Log = nil, script, slog.New(slog.NewTextHandler(log, nil))
	o.Now = func() time.Time { return time.Now().Add(time.Hour) } // the patience is over
	return run(t, o), log
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatal(what)
}

func TestTheCommandHearsOfTheQuestionInItsEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heard")
	t.Setenv("HEARD", file)
	w := newWorld()
	stop, log := commanded(t, w, `echo "$FERMATA_EVENT $FERMATA_QUESTION $FERMATA_TOOL $FERMATA_AGENT $FERMATA_END" >> "$HEARD"; env >> "$HEARD.env"`)
	defer stop()
	read := func() string { b, _ := os.ReadFile(file); return string(b) }
	w.ask("a")
	eventually(t, "nothing was heard", func() bool { return read() != "" })
	w.end("a", events.EndCancel)
	eventually(t, "the end was not heard", func() bool { return strings.Count(read(), "\n") == 2 })
	stop()
	if got := read(); got != "asked a Bash claude \nended a Bash claude cancel\n" || log.Len() > 0 {
		t.Errorf("heard %q, logged %q", got, log)
	}
	if env, err := os.ReadFile(file + ".env"); err != nil || strings.Contains(string(env), "secret") {
		t.Errorf("the command was told what is asked: %v", err)
	}
}

func TestCommandsAreFewAndEndWithTheNotifier(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RUNNING", dir)
	w := newWorld()
	stop, log := commanded(t, w, `echo $$ > "$RUNNING/$FERMATA_QUESTION.$FERMATA_EVENT"; sleep 300`)
	defer stop()
	for _, id := range []events.ID{"a", "b", "c", "d", "e", "f"} {
		w.ask(id)
	}
	started := func() int { list, _ := filepath.Glob(dir + "/*"); return len(list) }
	eventually(t, "they did not start", func() bool { return started() == maxCommands })
	<-time.After(200 * time.Millisecond)
	before := time.Now()
	stop()
	if n := started(); n != maxCommands || time.Since(before) > 5*time.Second {
		t.Errorf("%d ran at once; the end took %s", n, time.Since(before))
	}
	if log.Len() > 0 {
		t.Errorf("being stopped is no fault: %s", log)
	}
}

func TestACommandThatFailsIsSaidOnce(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RAN", dir)
	w := newWorld()
	stop, log := commanded(t, w, `touch "$RAN/$FERMATA_QUESTION"; exit 3`)
	defer stop()
	for _, id := range []events.ID{"a", "b", "c"} {
		w.ask(id)
		eventually(t, "it did not run", func() bool { _, err := os.Stat(filepath.Join(dir, string(id))); return err == nil })
	}
	stop()
	if n := strings.Count(log.String(), "notify.command did not work"); n != 1 || !strings.Contains(log.String(), "exit status 3") {
		t.Errorf("%s", log)
	}
}
