package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// The programs in this file are commands of the test binary: processes of
// their own, that can be killed.

// agentMain is an agent with one call:
//
//	agent CALL RAN
//
// It asks agent-hook about the payload in the file CALL. Allowed, its tool
// writes the arguments that it was given to the file RAN, byte for byte, and it
// exits 0. Denied, nothing runs: it prints the reason, which is what a model
// would read, and exits 3.
func agentMain() {
	payload, err := os.ReadFile(os.Args[1])
	fatal(err)
	hook := exec.Command("agent-hook", "generic", "before_tool_call")
	hook.Stdin, hook.Stderr = bytes.NewReader(payload), os.Stderr
	out, err := hook.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fatal(err)
	}
	var decision struct {
		Decision, Code, Reason string
		Args                   json.RawMessage
	}
	fatal(json.Unmarshal(out, &decision))
	switch {
	case hook.ProcessState.ExitCode() == 0 && decision.Decision == "allow":
		fatal(os.WriteFile(os.Args[2], decision.Args, 0o600))
		fmt.Println("ran")
	case hook.ProcessState.ExitCode() == 2 && decision.Decision == "deny":
		fmt.Println(decision.Code)
		fmt.Println(decision.Reason)
		os.Exit(3)
	default:
		fatal(fmt.Errorf("agent-hook said %s and ended with %v", out, hook.ProcessState))
	}
}

// claimerMain is a person's screen that claims the first question it sees, says
// so, and then does nothing until it is killed.
func claimerMain() {
	c := attachMain(dialMain)
	q := firstMain(c)
	claim, err := c.Claim(context.Background(), q)
	fatal(err)
	fmt.Println("claimed", claim)
	select {}
}

// answererMain is a screen that is told what to do on stdin, a word at the
// beginning of each line, and says on stdout what it did:
//
//	list QUESTION                   ► listed QUESTION    when it has it
//	answer QUESTION DIGEST ANSWER   ► sent QUESTION      when the answer is in the socket
//	                                ► reply QUESTION JSON when the core's reply is there
func answererMain() {
	var now events.ID
	c := attachMain(func(ctx context.Context) (net.Conn, error) {
		conn, err := dialMain(ctx)
		return &tap{conn, func() { fmt.Println("sent", now) }}, err
	})
	fmt.Println("attached")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		f := strings.Fields(in.Text())
		now = events.ID(f[1])
		if f[0] == "list" {
			fatal(await("question "+f[1], func() error {
				if _, ok := c.Inbox().Question(now); !ok {
					return errNotYet
				}
				return nil
			}))
			fmt.Println("listed", now)
			continue
		}
		ack, err := c.Answer(context.Background(), events.Respond{
			Question: now, Digest: events.Digest(f[2]), Answer: events.Answer(f[3]), Human: true,
		})
		if refused, ok := errors.AsType[*events.Refused](err); ok {
			ack = events.Ack{Refused: refused}
		} else {
			fatal(err)
		}
		b, err := json.Marshal(ack)
		fatal(err)
		fmt.Println("reply", now, string(b))
	}
}

// tap tells when an answer has been written to the socket.
type tap struct {
	net.Conn
	sent func()
}

// Write implements net.Conn.
func (t *tap) Write(b []byte) (int, error) {
	n, err := t.Conn.Write(b)
	if err == nil && bytes.Contains(b, []byte("."+events.VerbRespond+" ")) {
		t.sent()
	}
	return n, err
}

func dialMain(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", dirs{Runtime: os.Getenv("FERMATA_RUNTIME_DIR")}.natsSocket())
}

func attachMain(dial func(context.Context) (net.Conn, error)) *frontends.Client {
	c, err := frontends.New(frontends.Options{
		Dial: dial, ID: engine.NewID(time.Now()), Kind: events.FrontendTUI, Capable: true, Name: "test",
	})
	fatal(err)
	go func() { fatal(c.Run(context.Background())) }()
	fatal(await("list of questions", func() error {
		if !c.Inbox().Complete() {
			return errNotYet
		}
		return nil
	}))
	return c
}

func firstMain(c *frontends.Client) events.ID {
	var id events.ID
	fatal(await("question", func() error {
		if list := c.Inbox().Questions(); len(list) > 0 {
			id = list[0].ID
			return nil
		}
		return errNotYet
	}))
	return id
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
