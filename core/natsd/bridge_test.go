package natsd_test

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

func TestF4WhatAConnectionMayDo(t *testing.T) {
	own := func(role, id string) string {
		return fmt.Sprintf("fermata.v1.%s.%s.%s.%s.", project, session, role, id)
	}
	lobby := func(role, id string) string { return "fermata.lobby.v1.all." + role + "." + id + "." }
	cases := []struct {
		name, who, verb, subject string
		allowed                  bool
	}{
		{"its own command", "fe." + alice, "pub", own("fe", alice) + "respond", true},
		{"its own lobby command", "fe." + alice, "pub", lobby("fe", alice) + "hello", true},
		{"the live feed", "fe." + alice, "sub", "fermata.v1." + project + "." + session + ".live", true},
		{"all live feeds", "fe." + alice, "sub", "fermata.v1.*.*.live", true},
		{"announcements", "fe." + alice, "sub", "fermata.lobby.v1.announce", true},
		{"its own inbox", "fe." + alice, "sub", "_IB." + alice + ".x", true},
		{"an agent's own command", "op." + agent, "pub", own("op", agent) + "propose", true},
		{"an agent's own lobby command", "op." + agent, "pub", lobby("op", agent) + "session_open", true},

		{"the log", "fe." + alice, "pub", "fermata.ev." + project + "." + session + ".op." + agent, false},
		{"the JetStream API", "fe." + alice, "pub", "$JS.API.STREAM.NAMES", false},
		{"a consumer", "fe." + alice, "pub", "$JS.API.CONSUMER.CREATE.FERMATA_0001", false},
		{"an acknowledgement", "fe." + alice, "pub", "$JS.ACK.FERMATA_0001.c.1.1.1.1.0", false},
		{"the system account", "fe." + alice, "pub", "$SYS.REQ.SERVER.PING", false},
		{"another frontend's command", "fe." + alice, "pub", own("fe", bob) + "respond", false},
		{"another's inbox", "fe." + alice, "pub", "_IB." + bob + ".x", false},
		{"its own inbox by hand", "fe." + alice, "pub", "_IB." + alice + ".x", false},
		{"the live feed as a writer", "fe." + alice, "pub", "fermata.v1." + project + "." + session + ".live", false},
		{"an announcement as a writer", "fe." + alice, "pub", "fermata.lobby.v1.announce", false},
		{"an operation's door", "fe." + alice, "pub", own("op", alice) + "propose", false},
		{"a claim by an agent", "op." + agent, "pub", own("fe", agent) + "claim", false},
		{"an answer by an agent as a frontend", "op." + agent, "pub", own("fe", alice) + "respond", false},
		{"an agent's claim in its own room", "op." + agent, "pub", lobby("fe", agent) + "hello", false},

		{"everything", "fe." + alice, "sub", ">", false},
		{"all of the doors", "fe." + alice, "sub", "fermata.>", false},
		{"commands of others", "fe." + alice, "sub", "fermata.v1.*.*.fe.*.*", false},
		{"another's inbox as a reader", "fe." + alice, "sub", "_IB." + bob + ".>", false},
		{"all inboxes", "fe." + alice, "sub", "_IB.>", false},
		{"the log as a reader", "fe." + alice, "sub", "fermata.ev.>", false},
		{"an agent on the live feed", "op." + agent, "sub", "fermata.v1.*.*.live", false},
		{"an agent on a frontend's inbox", "op." + agent, "sub", "_IB." + alice + ".>", false},
	}
	bubble(t, func(h *house) {
		h.echo()
		heard := 0
		watch := h.doors()
		if _, err := watch.Subscribe(">", func(*nats.Msg) { heard++ }); err != nil {
			h.Fatal(err)
		}
		h.flush(watch)
		for _, c := range cases {
			nc, errs := h.connect(c.who)
			var err error
			heard = 0
			if c.verb == "pub" {
				err = nc.Publish(c.subject, []byte("x"))
			} else {
				_, err = nc.SubscribeSync(c.subject)
			}
			if err != nil {
				h.Fatalf("%s: %v", c.name, err)
			}
			begin := time.Now()
			h.flush(nc)
			synctest.Wait()
			refused := len(errs) > 0
			if refused == c.allowed {
				h.Errorf("%s: refused %v, want %v", c.name, refused, !c.allowed)
			}
			if refused && !errors.Is(<-errs, nats.ErrPermissionViolation) {
				h.Errorf("%s: refused without saying so", c.name)
			}
			if !c.allowed && heard > 0 {
				h.Errorf("%s: somebody heard it", c.name)
			}
			if waited := time.Since(begin); waited > 0 {
				h.Errorf("%s: the answer took %s", c.name, waited)
			}
			nc.Close()
			synctest.Wait()
		}
	})
}

func TestCommandsAreAnsweredThroughTheBridge(t *testing.T) {
	bubble(t, func(h *house) {
		h.echo()
		fe, _ := h.connect("fe." + alice)
		op, _ := h.connect("op." + agent)
		h.ask(fe, "fermata.v1."+project+"."+session+".fe."+alice+".claim")
		h.ask(op, "fermata.v1."+project+"."+session+".op."+agent+".propose")
		big := make([]byte, 4<<20)
		if err := fe.Publish("fermata.v1."+project+"."+session+".fe."+alice+".respond", big); err != nil {
			h.Fatal(err)
		}
		h.flush(fe)
	})
}

func TestF4PrincipalIsThePeer(t *testing.T) {
	bubble(t, func(h *house) {
		if _, ok := h.Principal(alice); ok {
			h.Fatal("a principal before the connection")
		}
		nc, _ := h.connect("fe." + alice)
		for id, want := range map[string]bool{alice: true, "fe." + alice: true, "op." + alice: false, bob: false, "": false} {
			p, ok := h.Principal(id)
			if ok != want || ok && (p != me || p.String() != "uid:1000") {
				h.Errorf("Principal(%q) = %v %v", id, p, ok)
			}
		}
		nc.Close()
		synctest.Wait()
		if _, ok := h.Principal(alice); ok {
			h.Error("a principal after the connection")
		}
	})
}

func TestF4SecondConnectionWithAnIDIsRefused(t *testing.T) {
	bubble(t, func(h *house) {
		h.echo()
		first, _ := h.connect("fe." + alice)
		for _, name := range []string{"fe." + alice, "op." + alice} {
			if _, _, err := h.tryConnect(name); err == nil || !strings.Contains(strings.ToLower(err.Error()), "in use") {
				h.Errorf("second connection %s: %v", name, err)
			}
		}
		h.ask(first, "fermata.v1."+project+"."+session+".fe."+alice+".claim")
		first.Close()
		synctest.Wait()
		h.connect("fe." + alice)
	})
}

func TestF4CredentialsInConnectAreDropped(t *testing.T) {
	bubble(t, func(h *house) {
		h.echo()
		nc, _, err := h.tryConnect("fe."+alice, nats.UserInfo("core", "guess"))
		if err != nil {
			h.Fatal(err)
		}
		h.ask(nc, "fermata.v1."+project+"."+session+".fe."+alice+".claim")
		nc.Close()
		synctest.Wait()
		if _, _, err := h.tryConnect("fe."+alice, nats.Token("guess")); err != nil {
			h.Fatal(err)
		}
	})
}

// A client that sends a second CONNECT wants to be somebody else.
func TestF4SecondConnectEndsTheConnection(t *testing.T) {
	for _, second := range []string{
		`{"name":"fe.` + bob + `","verbose":false}`,
		`{"auth_token":"guess"}`,
		`{"user":"core","pass":"x","auth_token":""}`,
	} {
		bubble(t, func(h *house) {
			r := h.raw()
			r.send("CONNECT {\"verbose\":false,\"name\":\"fe.%s\"}\r\nPING\r\n", alice)
			if line := r.line(); line != "PONG" {
				h.Fatalf("after CONNECT: %q", line)
			}
			r.send("CONNECT %s\r\nSUB > 1\r\nPING\r\n", second)
			if text := r.refusal(); !strings.Contains(text, "Authorization Violation") {
				h.Errorf("second CONNECT %s: %q", second, text)
			}
		})
	}
}

func TestPipelinedBytesAreKept(t *testing.T) {
	bubble(t, func(h *house) {
		h.echo()
		r := h.raw()
		subject := "fermata.v1." + project + "." + session + ".fe." + alice + ".claim"
		r.send("connect\t{\"verbose\":false,\"pedantic\":false,\"name\":\"fe.%s\"}\nSUB _IB.%s.* 1\r\nPUB %s _IB.%s.a 2\r\nhi\r\nPING\r\n",
			alice, alice, subject, alice)
		got := r.line() + "\n" + r.line() + "\n" + r.line()
		want := fmt.Sprintf("PONG\nMSG _IB.%s.a 1 %d\n%s", alice, len(subject), subject)
		if got != want {
			h.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestBadBeginningsAreRefusedAtOnceAndHurtNobody(t *testing.T) {
	cases := []struct{ name, send, want string }{
		{"garbage", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT Expected First"},
		{"another verb", "PING\r\n", "CONNECT Expected First"},
		{"an empty line", "\r\n", "CONNECT Expected First"},
		{"no JSON", "CONNECT hello\r\n", "Not A JSON Object"},
		{"an array", "CONNECT []\r\n", "Not A JSON Object"},
		{"two objects", `CONNECT {"name":"fe.` + alice + `"} {}` + "\r\n", "Not One JSON Object"},
		{"no name", "CONNECT {}\r\n", "Name Must Be"},
		{"a name without an id", `CONNECT {"name":"fe"}` + "\r\n", "Name Must Be"},
		{"another role", `CONNECT {"name":"core.` + alice + `"}` + "\r\n", "Name Must Be"},
		{"upper case", `CONNECT {"name":"fe.` + strings.ToUpper(alice) + `"}` + "\r\n", "Name Must Be"},
		{"a wildcard", `CONNECT {"name":"fe.*"}` + "\r\n", "Name Must Be"},
		{"two tokens", `CONNECT {"name":"fe.` + alice + `.x"}` + "\r\n", "Name Must Be"},
		{"a megabyte", "CONNECT {\"name\":\"" + strings.Repeat("x", 1<<20) + "\"}\r\n", "Line Longer Than 4096"},
		{"a megabyte without an end", strings.Repeat("x", 1<<20), "Line Longer Than 4096"},
	}
	bubble(t, func(h *house) {
		h.echo()
		other, _ := h.connect("fe." + bob)
		for _, c := range cases {
			begin := time.Now()
			r := h.raw()
			r.send("%s", c.send)
			if text := r.refusal(); !strings.Contains(text, c.want) {
				h.Errorf("%s: refused with %q, want %q", c.name, text, c.want)
			}
			if waited := time.Since(begin); waited > 0 {
				h.Errorf("%s: the refusal took %s", c.name, waited)
			}
			h.ask(other, "fermata.v1."+project+"."+session+".fe."+bob+".claim")
		}
	})
}

func TestSlowLorisIsEnded(t *testing.T) {
	bubble(t, func(h *house) {
		h.echo()
		silent, drip := h.raw(), h.raw()
		begin := time.Now()
		var dripping sync.WaitGroup
		defer dripping.Wait()
		dripping.Go(func() {
			for _, b := range []byte("CONNECT {" + strings.Repeat(" ", 100)) {
				<-time.After(time.Second) // fake time
				if _, err := drip.Write([]byte{b}); err != nil {
					return
				}
			}
		})
		other, _ := h.connect("fe." + bob)
		h.ask(other, "fermata.v1."+project+"."+session+".fe."+bob+".claim")
		for _, r := range []*raw{silent, drip} {
			if text := r.refusal(); !strings.Contains(text, "No CONNECT Within 5s") {
				h.Errorf("refused with %q", text)
			}
		}
		if took := time.Since(begin); took > 6*time.Second {
			h.Errorf("took %s", took)
		}
	})
}

// A frontend that does not read is closed; what others hear is not delayed.
func TestSlowReaderIsClosed(t *testing.T) {
	bubble(t, func(h *house) {
		live := "fermata.v1." + project + "." + session + ".live"
		slow := h.raw()
		slow.send("CONNECT {\"verbose\":false,\"name\":\"fe.%s\"}\r\nSUB %s 1\r\nPING\r\n", alice, live)
		if line := slow.line(); line != "PONG" {
			h.Fatalf("after CONNECT: %q", line)
		}
		quick, _ := h.connect("fe." + bob)
		heard := make(chan struct{}, 64)
		if _, err := quick.Subscribe(live, func(*nats.Msg) { heard <- struct{}{} }); err != nil {
			h.Fatal(err)
		}
		h.flush(quick)
		core := h.doors()
		begin := time.Now()
		for range 20 {
			if err := core.Publish(live, make([]byte, 1<<20)); err != nil {
				h.Fatal(err)
			}
			h.flush(core)
			<-heard
		}
		if took := time.Since(begin); took > 0 {
			h.Errorf("the other frontend waited %s", took)
		}
		<-time.After(30 * time.Second) // fake time
		synctest.Wait()
		if _, ok := h.Principal(alice); ok {
			h.Error("the frontend that does not read is still there")
		}
		if _, ok := h.Principal(bob); !ok {
			h.Error("the frontend that reads was closed")
		}
	})
}

func TestConnectionsOfOneProcessAreLimited(t *testing.T) {
	bubble(t, func(h *house) {
		h.echo()
		for range 4096 {
			h.dial()
		}
		synctest.Wait()
		c := h.dial()
		text := (&raw{h: h, Conn: c, r: bufio.NewReader(c)}).refusal()
		if !strings.Contains(text, "4096 Connections Already") {
			h.Errorf("refused with %q", text)
		}
	})
}
