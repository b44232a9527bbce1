package integration_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/fermata-hitl/fermata/events"
)

func TestBlackboxFrontends(t *testing.T) {
	play(t, "",
		behaviour{
			name:  "F1 several screens show, one claims, all close together",
			rules: []rule{ask("f1")},
			live: func(b *box) {
				one, two, three := b.screen(), b.screen(), b.screen()
				c := b.call("f1", `{}`)
				q := one.question("f1")
				two.question("f1")
				three.question("f1")
				token, err := one.Claim(b.t.Context(), q.ID)
				if err != nil {
					b.t.Fatal(err)
				}
				for _, s := range []*screen{two, three} {
					must(b.t, "claim on the other screens", func() error {
						if q, _ := s.Inbox().Question(q.ID); q.ClaimedBy == nil {
							return errNotYet
						}
						return nil
					})
					seen, _ := s.Inbox().Question(q.ID)
					if by := seen.ClaimedBy; by.Frontend != one.id || by.Principal != principal() || by.Name != "a screen" {
						b.t.Errorf("another screen sees the claim of %+v", by)
					}
				}
				r := reply(q, events.AnswerContinue)
				r.Claim = token
				if _, err := one.Answer(b.t.Context(), r); err != nil {
					b.t.Fatal(err)
				}
				for _, s := range []*screen{one, two, three} {
					must(b.t, "who answered", func() error { // a screen's own answer is there before its echo
						if end := s.end(q); end.Answer != events.AnswerContinue || end.Who != principal() {
							return errNotYet
						}
						return nil
					})
				}
				lost := two.no(reply(q, events.AnswerCancel), events.RejectAlreadyAnswered)
				if lost.Who != principal() || lost.When == 0 || lost.Answer != events.AnswerContinue {
					b.t.Errorf("the loser is told %+v", lost)
				}
				c.wantRan(`{}`)
			},
		},
		behaviour{
			name:  "F2 a late screen sees every open question within a second, and a closed one frees its claim",
			rules: []rule{ask("f2")},
			live: func(b *box) {
				one := b.screen()
				calls := []*call{b.wish(wish{tool: "f2", session: "f2a", args: `{"n":1}`}), b.wish(wish{tool: "f2", session: "f2b", args: `{"n":1}`})}
				q := one.question("f2")
				one.question("f2")
				if _, err := one.Claim(b.t.Context(), q.ID); err != nil {
					b.t.Fatal(err)
				}
				began := time.Now()
				late := b.screen()
				a, z := late.question("f2"), late.question("f2")
				if took := time.Since(began); took > time.Second {
					b.t.Errorf("it took %v", took)
				}
				one.close()
				must(b.t, "free question", func() error {
					if q, _ := late.Inbox().Question(q.ID); q.ClaimedBy != nil {
						return errNotYet
					}
					return nil
				})
				late.says(a, events.AnswerContinue)
				late.says(z, events.AnswerContinue)
				for _, c := range calls {
					c.wantRan(`{"n":1}`)
				}
			},
		},
		behaviour{
			name:  "F4 a forged name changes nothing",
			rules: []rule{ask("f4")},
			live: func(b *box) {
				s := b.screen()
				forger := b.attach(true, "uid:4242")
				c := b.call("f4", `{}`)
				q := forger.question("f4")
				o := b.connect(b.t, "fe")
				if r := o.ask(events.LobbySubject(events.DoorAll, o.id, events.VerbHello), []byte(`{"kind":"web","capable":true,"name":"uid:0","principal":"uid:4242"}`)); r == nil || r.Code != events.RejectMalformed {
					b.t.Errorf("a hello that names a principal: %v, want malformed", r)
				}
				if r := o.ask(events.LobbySubject(events.DoorAll, o.id, events.VerbHello), []byte(`{"kind":"web","capable":true}`)); r != nil {
					b.t.Errorf("hello: %v", r)
				}
				forged := `{"question":"` + string(q.ID) + `","digest":"` + string(q.Version.Digest) + `","answer":"continue","human":true,"who":"uid:4242"}`
				if r := o.ask(events.FrontendSubject(q.Project, q.Session, o.id, events.VerbRespond), []byte(forged)); r == nil || r.Code != events.RejectMalformed {
					b.t.Errorf("an answer that names a person: %v, want malformed", r)
				}
				o.refused("an answer in another frontend's name", func() error {
					return o.nc.Publish(events.FrontendSubject(q.Project, q.Session, s.id, events.VerbRespond), []byte(forged))
				})
				if !c.running() {
					b.t.Error("the call has ended")
				}
				forger.says(q, events.AnswerContinue)
				if end := s.end(q); end.Who != principal() {
					b.t.Errorf("it was answered by %q", end.Who)
				}
				c.wantRan(`{}`)
			},
			log: func(t *testing.T, e evidence) {
				op := e.call(t, "f4")
				for _, f := range of(facts[events.Response](e), op) {
					if f.Event.Principal != principal() {
						t.Errorf("response of %q", f.Event.Principal)
					}
				}
				for _, f := range of(facts[events.Claimed](e), op) {
					if f.Event.Principal != principal() {
						t.Errorf("claim of %q", f.Event.Principal)
					}
				}
			},
		},
		behaviour{
			name: "B39 B47 a terminal shows a default reason, what could deceive, and the change",
			rules: []rule{
				{id: "b39-the-hook", tool: "b39", run: "{type: verdict, action: ask}"},
				{id: "b39set", tool: "b39", sh: `say "{\"action\":\"modify\",\"args_override\":{\"text\":\"$(head -c 3000 /dev/zero | tr '\0' a)NEWPART$(head -c 3000 /dev/zero | tr '\0' z)\"}}"`},
			},
			live: func(b *box) {
				cmd := b.command("", "fermata")
				cmd.Stdin, cmd.Env = nil, append(cmd.Env, "TERM=xterm-256color", "LANG=en_US.UTF-8", "LC_ALL=en_US.UTF-8")
				terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 160})
				if err != nil {
					b.t.Fatal(err)
				}
				screen := new(safeBuffer)
				read := make(chan struct{})
				go func() {
					defer close(read)
					buf := make([]byte, 64<<10)
					for {
						n, err := terminal.Read(buf)
						_, _ = screen.Write(buf[:n])
						if err != nil {
							return
						}
					}
				}()
				b.t.Cleanup(func() {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
					_ = terminal.Close()
					<-read
				})
				shows := func(text string) {
					b.t.Helper()
					if err := await(text+" in the terminal", func() error {
						if !strings.Contains(screen.String(), text) {
							return errNotYet
						}
						return nil
					}); err != nil {
						b.t.Fatalf("%v; it shows %q", err, screen.String())
					}
				}
				s := b.screen()
				text := strings.Repeat("a", 3000) + "OLDPART" + strings.Repeat("z", 3000)
				c := b.call("b39", `{"deceive":"rm \u202e\u200b x","text":"`+text+`"}`)
				q := s.question("b39")
				if q.Reason != "" {
					b.t.Errorf("a reason that nobody gave: %q", q.Reason)
				}
				shows("b39-the-hook")
				shows("U+202E")
				if strings.Contains(screen.String(), "\u202e") {
					b.t.Error("the terminal got a raw U+202E")
				}
				s.says(q, events.AnswerContinue)
				again := s.question("b39")
				shows("NEWPART")
				shows("OLDPART")
				s.says(again, events.AnswerCancel)
				c.wantRefused(events.CodeDeclined)
			},
		},
	)
}

// TestBlackboxCrash kills the core while a question is open, a hook runs and a
// limit counts.
func TestBlackboxCrash(t *testing.T) {
	t.Parallel()
	b := newBox(t, "confirmation: {timeout_seconds: 300}\n", ask("open"),
		rule{id: "limited", tool: "limited", run: "{type: verdict, action: ask}", more: ", confirmation: {timeout_seconds: 4}"},
		rule{id: "slow", tool: "slow", sh: `[ -e "$DIR/go" ] || { : > "$DIR/started"; exec sleep 300; }`, more: ", timeout_seconds: 600"})
	s := b.screen()
	open := b.call("open", `{"n":1}`)
	q := s.question("open")
	limited := b.call("limited", `{}`)
	l := s.question("limited")
	gone := b.call("open", `{"gone":true}`)
	g := s.question("open")
	slow := b.call("slow", `{}`)
	must(t, "running hook", func() error {
		if !exists(b.dir + "/started") {
			return errNotYet
		}
		return nil
	})
	b.killCore()
	b.write("../go", "")
	gone.signal(syscall.SIGKILL)
	b.startCore("--confirmation-timeout-seconds", "7")
	again := b.screen()
	var q2 events.Question
	must(t, "the same question from the next core", func() error {
		var ok bool
		if q2, ok = again.Inbox().Question(q.ID); !ok {
			return errNotYet
		}
		return nil
	})
	t.Run("B8 F3 the question and its limit are those of before", func(t *testing.T) {
		if q2.Deadline != q.Deadline || q2.DeadlineFrom != "config" || q2.AskedAt != q.AskedAt || string(q2.Args) != string(q.Args) {
			t.Errorf("before %+v, after %+v", q, q2)
		}
		if wait := q.Deadline - q.AskedAt; wait < 299_000_000 || wait > 301_000_000 {
			t.Errorf("the limit is %d µs", wait)
		}
	})
	t.Run("F3 the same call gets its answer from the next core, and runs once", func(t *testing.T) {
		s := again
		s.asked[q.ID] = true
		s.says(q2, events.AnswerContinue)
		open.wantRan(`{"n":1}`)
		slow.wantRan(`{}`)
		b.in(t).wantRuns("slow", 2)
	})
	t.Run("F3 B10 the limit counts from the question, not from the restart", func(t *testing.T) {
		end := again.end(l)
		if end.Reason != events.EndDeadline || end.At < l.Deadline || end.At > l.Deadline+2_000_000 {
			t.Errorf("deadline %d, end %+v", l.Deadline, end)
		}
		limited.wantRefused(events.CodeTimedOut)
	})
	t.Run("B11 B99 an asker that does not come back ends its question", func(t *testing.T) {
		again.wantEnd(g, events.EndAgentGone)
	})
	b.stopCore()
	e := b.evidence(t)
	t.Run("B99 every wait closed once, and the run that the crash cut off is abandoned", func(t *testing.T) {
		e.checkSpans(t)
		e.checkRuns(t)
		var outcomes []events.RunOutcome
		for _, f := range of(facts[events.HookRan](e), e.call(t, "slow")) {
			outcomes = append(outcomes, f.Event.Outcome)
		}
		if len(outcomes) != 2 || outcomes[0] != events.RunAbandoned || outcomes[1] != events.RunOK {
			t.Errorf("runs ended %v, want abandoned, ok", outcomes)
		}
		if len(e.calls("open")) != 2 || len(e.calls("slow")) != 1 || len(e.calls("limited")) != 1 {
			t.Error("a call was proposed twice")
		}
		if n := len(of(facts[events.Request](e), q.Operation)); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestBlackboxF3KilledAtAnyPoint kills the core again and again around one
// answer; however it falls, the call runs exactly once.
func TestBlackboxF3KilledAtAnyPoint(t *testing.T) {
	t.Parallel()
	b := newBox(t, "", rule{id: "asks", tool: "asks", sh: `say '{"action":"ask"}'`}, rule{id: "then", tool: "asks", sh: ""})
	b.setenvAutostart()
	s := b.screen()
	for range 4 {
		b.call("free", `{}`).wantRan(`{}`) // starts a core if the last kill came late
		must(t, "screen that the new core knows", func() error {
			if st, err := b.status(); err != nil || st.Frontends == 0 {
				return errNotYet
			}
			return nil
		})
		c := b.call("asks", `{"n":1}`)
		q := s.question("asks")
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			if st, err := b.status(); err == nil {
				_ = syscall.Kill(st.PID, syscall.SIGKILL)
			}
		}()
		_, err := s.Answer(t.Context(), reply(q, events.AnswerContinue))
		<-killed
		must(t, "acceptance of the answer", func() error {
			if err == nil {
				return nil
			}
			if _, over := s.Inbox().Ended(q.ID); over {
				return nil
			}
			if !c.running() {
				return nil
			}
			_, err = s.Answer(t.Context(), reply(q, events.AnswerContinue))
			if err != nil {
				return errNotYet
			}
			return nil
		})
		c.wantRan(`{"n":1}`)
	}
	b.call("free", `{}`).wantRan(`{}`)
	b.stopCore()
	e := b.evidence(t)
	if n := len(e.calls("asks")); n != 4 {
		t.Errorf("%d operations, want 4", n)
	}
	e.checkSpans(t)
	e.checkRuns(t)
}

// setenvAutostart lets agent-hook start the core that is missing.
func (b *box) setenvAutostart() {
	for i, v := range b.env {
		if strings.HasPrefix(v, "FERMATA_AUTOSTART=") {
			b.env[i] = "FERMATA_AUTOSTART=1"
		}
	}
}
