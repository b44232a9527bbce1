package agents_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

const (
	ids    = `"operation":"01jq0000000000000000000000","secret":"0123456789abcdef"`
	shell  = `"kind":"tool_call","tool":{"name":"bash","kind":"shell"},"args":{"command":"a < b"}`
	nobody = "01jq0000000000000000000009"
)

var digestOf = map[string]events.Digest{"shell": events.DigestOf([]byte(`{"command":"a < b"}`))}

func TestDoorAnswersEachVerb(t *testing.T) {
	inPlace(t, func(p *place) {
		w := p.wire(1)
		p.expect(w.raw(events.AgentLobbySubject(events.DoorAll, w.id, "cores"), []byte("{}")), `{"core":"`+string(coreToken)+`","epoch":"`)
		w.begin("s1")
		p.expect(w.say("propose", `{`+ids+`,`+shell+`,"path":"main > a#1","turn":"t1","profile":"p","timeout_ms":5000}`), `{}`)
		got := p.office.first().p
		want := core.Proposal{
			Operation: op, Secret: secret, Agent: "generic", Native: "s1", Cwd: "/w", Pane: "zellij:5:calm", Profile: "p", Turn: "t1", Path: "main > a#1",
			Kind: events.KindToolCall, Tool: events.Tool{Name: "bash", Kind: "shell"},
			Args: []byte(`{"command":"a < b"}`), Deadline: time.Now().Add(5 * time.Second), Leased: true,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("proposed (-want +got):\n%s", diff)
		}
		began := time.Now()
		p.expect(w.say("await", `{`+ids+`}`), `{}`)
		if took := time.Since(began); took != 25*time.Second {
			t.Errorf("an await took %v", took)
		}
		p.office.rule(yes)
		p.expect(w.say("await", `{`+ids+`}`), `{"verdict":{"allow":true,"code":"checked","version":{"n":0,"digest":"`+
			string(digestOf["shell"])+`","bytes":19},"args":{"command":"a < b"}}}`)
		p.expect(w.say("commit", `{`+ids+`,"digest":"`+string(digestOf["shell"])+`"}`), `{}`)
		if n := p.office.first().askers; n != 0 {
			t.Errorf("%d askers wait while the tool runs", n)
		}
		p.office.heard.Context = "look <here>"
		p.expect(w.say("finish", `{`+ids+`,"outcome":"ok","ran":"`+string(digestOf["shell"])+`","result":{"text":"x","duration_ms":7}}`),
			`{"extra_context":"look <here>"}`)
		done := p.office.first().finished
		if done.Ran != digestOf["shell"] || done.Result.Text != "x" || done.Result.Duration != 7*time.Millisecond {
			t.Errorf("finished %+v", done)
		}
		p.expect(w.say("check", `{`+shell+`}`), `{"would":"ask","hooks":[{"id":"h","scope":"global","file":"f","line":3,"index":0}],"confirmation_available":true}`)
		p.told("proposed", "committed", "finished ok")
	})
}

func TestB71B72B73B74B76SignalsReachTheDesk(t *testing.T) {
	inPlace(t, func(p *place) {
		w := p.wire(1).begin("s1")
		for _, c := range []struct {
			verb, command string
			want          core.Observation
		}{
			{"turn_started", `{"turn":"t1"}`, core.Observation{Signal: "before_turn", Turn: "t1"}},
			{"turn_ended", `{"turn":"t1"}`, core.Observation{Signal: "after_turn", Turn: "t1"}},
			{"interrupt", `{}`, core.Observation{Signal: "user_interrupt"}},
			{"build_changed", `{}`, core.Observation{Signal: core.SignalBuildChanged}},
			{"message_withdrawn", `{"operation":"` + string(op) + `"}`, core.Observation{Signal: core.SignalMessageWithdrawn, Operation: op}},
			{"observe", `{"event":"sub_agent_end","path":"main > a#1"}`, core.Observation{Signal: "sub_agent_end", Path: "main > a#1"}},
			{"session_close", `{"changed":true}`, core.Observation{Signal: core.SignalSessionChanged}},
		} {
			p.expect(w.say(c.verb, c.command), `{}`)
			c.want.Agent, c.want.Native, c.want.Session, c.want.Cwd = "generic", "s1", w.open.Session, "/w"
			list := p.office.signal
			if diff := cmp.Diff(c.want, list[len(list)-1]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.verb, diff)
			}
		}
		p.expect(w.say("turn_started", `{}`), nats.ErrNoResponders.Error()) // nobody has it open any more
		w.begin("s1")
		p.expect(w.say("session_close", `{}`), `{}`)
		if last := p.office.signal[len(p.office.signal)-1]; last.Signal != "session_end" {
			t.Errorf("a close was observed as %s", last.Signal)
		}
	})
}

// An input goes back whole when it is refused, with what it was.
func TestB90B91InputsAtTheDoor(t *testing.T) {
	for kind, word := range map[string]string{"user_prompt": "prompt", "injection": "injection", "retry_note": "retry_note"} {
		inPlace(t, func(p *place) {
			w := p.wire(1).begin("s1")
			propose := `{` + ids + `,"kind":"` + kind + `","text":"say <b>\t日本 \\/"}`
			p.office.decide = declined
			p.expect(w.say("propose", propose), `"message":"The user said no."`)
			reply := w.say("await", `{`+ids+`}`)
			p.expect(reply, `"text":"say <b>\t日本 \\/"`)
			p.expect(reply, `"input":"`+word+`"`)
			if got := p.office.first().p; got.Kind != events.Kind(kind) {
				t.Errorf("proposed %+v", got)
			}
		})
	}
}

// TestB20LeaseKeepsAnOperation: an asker keeps its operation by asking, whatever
// happens to its connection, and loses it a minute after its last word.
func TestB20LeaseKeepsAnOperation(t *testing.T) {
	inPlace(t, func(p *place) {
		w := p.wire(1).begin("s1")
		p.expect(w.say("propose", `{`+ids+`,`+shell+`}`), `{}`)
		for range 4 {
			p.expect(w.say("await", `{`+ids+`}`), `{}`)
			<-time.After(59 * time.Second) // of the bubble's clock
		}
		p.told("proposed")
		p.expect(w.say("await", `{`+ids+`}`), `{}`)
		w.nc.Close()
		<-time.After(59 * time.Second)
		p.told("proposed")
		<-time.After(3 * time.Second)
		p.told("proposed", "gone agent_gone")

		other := p.wire(2).begin("s1")
		p.expect(other.say("await", `{`+ids+`}`), "unknown_operation")
		p.expect(other.say("propose", `{`+ids+`,`+shell+`}`), `"end_reason":"agent_gone"`)
		if n := p.office.first().askers; n != 1 {
			t.Errorf("%d askers, want the one that hears the end", n)
		}
		<-time.After(7 * time.Second) // who has heard a no needs nothing more
		if n := p.office.first().askers; n != 0 {
			t.Errorf("%d askers wait for what has ended", n)
		}
	})
}

// The same id and secret are one operation however often they come, and count
// as one asker of the connection.
func TestC13ProposingTwiceIsOnce(t *testing.T) {
	inPlace(t, func(p *place) {
		w, other := p.wire(1).begin("s1"), p.wire(2).begin("s1")
		for range 3 {
			p.expect(w.say("propose", `{`+ids+`,`+shell+`}`), `{}`)
		}
		p.expect(other.say("propose", `{`+ids+`,`+shell+`}`), `{}`)
		if n := p.office.first().askers; n != 2 {
			t.Errorf("%d askers, want one of each connection", n)
		}
		stolen := strings.Replace(ids, "0123456789abcdef", "fedcba9876543210", 1)
		for _, verb := range []string{"propose", "await", "commit", "receipt", "finish", "withdraw"} {
			command := `{` + stolen + map[string]string{
				"propose": "," + shell, "commit": `,"digest":"` + string(digestOf["shell"]) + `"`, "finish": `,"outcome":"ok"`,
			}[verb] + `}`
			if reply := other.say(verb, command); !strings.Contains(reply, "not_yours") && !strings.Contains(reply, "unknown_operation") {
				t.Errorf("%s with another secret: %s", verb, reply)
			}
		}
		// a newer await ends the one before
		var first string
		var wait sync.WaitGroup
		began := time.Now()
		wait.Go(func() { first = w.say("await", `{`+ids+`}`) })
		synctest.Wait()
		wait.Go(func() { p.expect(w.say("await", `{`+ids+`}`), `"allow":true`) })
		<-time.After(time.Second)
		p.office.rule(yes)
		wait.Wait()
		if first != "{}" || time.Since(began) > 2*time.Second {
			t.Errorf("the older await got %s after %v", first, time.Since(began))
		}
		p.told("proposed", "joined", "joined", "joined")
	})
}

// TestC13ForeignSessions: a connection speaks only of sessions that it has
// opened, and only in the agents' words.
func TestC13ForeignSessions(t *testing.T) {
	inPlace(t, func(p *place) {
		w, other := p.wire(1).begin("s1"), p.wire(2)
		other.open = w.open
		for _, verb := range []string{"propose", "await", "commit", "interrupt", "session_close", "check"} {
			command := map[string]string{
				"propose": `{` + ids + `,` + shell + `}`, "await": `{` + ids + `}`, "check": `{` + shell + `}`,
				"commit": `{` + ids + `,"digest":"` + string(digestOf["shell"]) + `"}`,
			}[verb]
			if command == "" {
				command = "{}"
			}
			p.expect(other.say(verb, command), "not_attached")
		}
		p.told()

		// What the server does not let through is answered by nobody.
		for _, subject := range []string{
			events.FrontendSubject(w.open.Project, w.open.Session, other.id, "claim"),
			events.LobbySubject(events.DoorAll, other.id, "hello"),
			events.AgentSubject(w.open.Project, w.open.Session, w.id, "interrupt"), // with another's id
			"fermata.ev.x", "$JS.API.INFO",
		} {
			if _, err := other.nc.RequestMsgWithContext(timeout(t, p.ctx), &nats.Msg{Subject: subject, Data: []byte("{}")}); err == nil {
				t.Errorf("an agent spoke to %s", subject)
			}
		}
		feed, err := other.nc.SubscribeSync(events.LiveSubject(w.open.Project, w.open.Session))
		must(t, err)
		if _, err := feed.NextMsgWithContext(timeout(t, p.ctx)); err == nil {
			t.Error("an agent reads a feed")
		}
		p.told()
	})
}

// Whatever arrives, a typed no goes back, and the next command is served.
func TestC1GarbageIsRefused(t *testing.T) {
	inPlace(t, func(p *place) {
		w := p.wire(1).begin("s1")
		digest := string(digestOf["shell"])
		for _, c := range []struct{ verb, command, word string }{
			{"propose", ``, "malformed"},
			{"propose", `[]`, "malformed"},
			{"propose", "\x81\xa1x", "malformed"},
			{"propose", `{` + ids + `,` + shell + `,"sudo":true}`, "malformed"},
			{"propose", `{` + ids + `,` + shell + `} {}`, "malformed"},
			{"propose", `{` + ids + `,"kind":"tool_call","tool":{"name":"x","kind":"shell"},"args":{"a":1,"a":2}}`, "twice"},
			{"propose", `{` + strings.Replace(ids, "0123456789abcdef", "short", 1) + `,` + shell + `}`, "16 to 128"},
			{"propose", `{"operation":"x","secret":"0123456789abcdef",` + shell + `}`, "malformed"},
			{"propose", `{` + ids + `,"kind":"dream","text":"x"}`, "no kind"},
			{"propose", `{` + ids + `,"kind":"tool_call","text":"x"}`, "malformed"},
			{"propose", `{` + ids + `,"kind":"user_prompt"}`, "malformed"},
			{"propose", `{` + ids + `,` + shell + `,"text":"x"}`, "malformed"},
			{"propose", `{` + ids + `,"kind":"tool_call","tool":{"name":"x","kind":"Shell"},"args":{}}`, "must be one of"},
			{"propose", `{` + ids + `,"kind":"tool_call","tool":{"name":"","kind":"shell"},"args":{}}`, "is missing"},
			{"propose", `{` + ids + `,` + shell + `,"cwd":"here"}`, "absolute"},
			{"propose", `{` + ids + `,` + shell + `,"traceparent":"00-0-0-0"}`, "traceparent"},
			{"propose", `{` + ids + `,` + shell + `,"timeout_ms":-1}`, "not possible"},
			{"await", `{"operation":"` + nobody + `","secret":"0123456789abcdef"}`, "unknown_operation"},
			{"commit", `{` + ids + `,"digest":""}`, "malformed"},
			{"commit", `{` + ids + `,"digest":"` + strings.ToUpper(digest) + `"}`, "malformed"},
			{"finish", `{` + ids + `,"outcome":"fine"}`, "no outcome"},
			{"finish", `{` + ids + `,"outcome":"ok","result":{"duration_ms":-1}}`, "not possible"},
			{"observe", `{"event":"session_end"}`, "not observed here"},
			{"message_withdrawn", `{}`, "malformed"},
			{"dance", `{}`, "no verb"},
			{"session_open", `{}`, "no verb"},
			{"await", `{"x":"` + strings.Repeat("x", 64<<10) + `"}`, "takes 65536"},
		} {
			reply := w.say(c.verb, c.command)
			p.expect(reply, "refused")
			p.expect(reply, c.word)
		}
		open := events.AgentLobbySubject(string(coreToken), w.id, events.VerbSessionOpen)
		for command, word := range map[string]string{
			`{"agent":"mybot","native":"x","cwd":"/w"}`: "generic", `{"agent":"generic","native":"","cwd":"/w"}`: "native",
			`{"agent":"generic","native":"x","cwd":"w"}`: "absolute", `{"agent":"generic","native":"x","cwd":"/w","parent":"y"}`: "malformed",
		} {
			p.expect(w.raw(open, []byte(command)), word)
		}
		p.told()
		p.expect(w.say("propose", `{`+ids+`,`+shell+`}`), `{}`)
	})
}

// A command whose reply would go anywhere but to its sender is not carried out,
// nor one without.
func TestC2RepliesGoToTheSenderAlone(t *testing.T) {
	inPlace(t, func(p *place) {
		w := p.wire(1).begin("s1")
		to := events.AgentSubject(w.open.Project, w.open.Session, w.id, "interrupt")
		for _, reply := range []string{"", "fermata.ev.x", "_IB." + nobody + ".x", "_IB." + string(w.id) + ".>"} {
			must(t, w.nc.PublishMsg(&nats.Msg{Subject: to, Reply: reply, Data: []byte("{}")}))
		}
		must(t, w.nc.FlushWithContext(timeout(t, p.ctx)))
		p.told()
	})
}

func timeout(t *testing.T, ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Faults inside end one command each.
func TestC15FaultsEndOneCommand(t *testing.T) {
	inPlace(t, func(p *place) {
		w := p.wire(1).begin("s1")
		p.office.before = func(what string) error {
			switch what {
			case "check":
				return errors.New("a panic")
			case "observe":
				return errors.New("the disk is gone")
			case "propose":
				return &events.Refused{Code: events.RejectLogUnavailable, Hint: "full"}
			}
			return nil
		}
		p.expect(w.say("check", `{`+shell+`}`), `"code":"internal"`)
		p.expect(w.say("interrupt", `{}`), "the disk is gone")
		p.expect(w.say("propose", `{`+ids+`,`+shell+`}`), `{"refused":{"code":"log_unavailable","hint":"full"}}`)
		p.office.before = nil
		p.office.decide = func(q core.Proposal) *core.Verdict {
			v := yes(q)
			v.Args = []byte("no JSON") // which arguments that no rule concerns may be, in msgpack
			return v
		}
		p.expect(w.say("propose", `{`+ids+`,`+shell+`}`), "cannot be said")
	})
}

// A flood of one connection costs the others nothing, and is answered.
func TestC15FloodsAreBounded(t *testing.T) {
	inPlace(t, func(p *place) {
		flood, w := p.wire(1).begin("s1"), p.wire(2).begin("s2")
		hold := make(chan struct{})
		p.office.before = func(what string) error {
			if what == "observe" {
				<-hold
			}
			return nil
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		replies := map[string]int{}
		for range 600 {
			all.Go(func() {
				r := flood.say("interrupt", `{}`)
				mu.Lock()
				defer mu.Unlock()
				replies[strings.Split(r, ",")[0]]++
			})
		}
		synctest.Wait()
		p.expect(flood.say("propose", `{`+ids+`,`+shell+`}`), "too_many")
		p.expect(w.say("propose", `{`+ids+`,`+shell+`}`), `{}`)
		close(hold)
		all.Wait()
		want := map[string]int{`{}`: 512, `{"refused":{"code":"too_many"`: 88}
		if diff := cmp.Diff(want, replies); diff != "" {
			t.Errorf("replies (-want +got):\n%s", diff)
		}
		// what was opened longest ago makes room for what is new
		first := flood.open
		<-time.After(time.Second)
		for i := range 1024 {
			flood.begin(fmt.Sprint("more ", i))
		}
		p.expect(flood.say("interrupt", "{}"), "{}")
		flood.open = first
		p.expect(flood.say("interrupt", "{}"), nats.ErrNoResponders.Error())
		p.expect(w.say("await", `{`+ids+`}`), "{}")
	})
}

// What one connection has under way is bounded in bytes too; a command by itself
// is never too much.
func TestC15LargeCommandsAreBoundedTogether(t *testing.T) {
	inPlace(t, func(p *place) {
		w := p.wire(1).begin("s1")
		hold := make(chan struct{})
		p.office.before = func(string) error { <-hold; return nil }
		large := `{` + ids + `,"kind":"user_prompt","text":"` + strings.Repeat("x", 7<<20) + `"}`
		replies := make(chan string, 5)
		for range cap(replies) {
			go func() { replies <- w.say("propose", large) }()
		}
		synctest.Wait()
		p.expect(<-replies, "too_many") // four of them are 28 MiB
		close(hold)
		for range cap(replies) - 1 {
			p.expect(<-replies, `{}`)
		}
	})
}

// TestF3StoppingDoorSendsToTheNextCore: the end of a core ends no operation, and
// everybody who asks is told to come again.
func TestF3StoppingDoorSendsToTheNextCore(t *testing.T) {
	inPlace(t, func(p *place) {
		w := p.wire(1).begin("s1")
		p.expect(w.say("propose", `{`+ids+`,`+shell+`}`), `{}`)
		var reply string
		var wait sync.WaitGroup
		wait.Go(func() { reply = w.say("await", `{`+ids+`}`) })
		synctest.Wait()
		p.office.stop()
		wait.Wait()
		if reply != "{}" {
			t.Errorf("an await heard %s", reply)
		}
		p.expect(w.say("propose", `{`+ids+`,`+shell+`}`), "not_attached")
		p.told("proposed")
	})
}
