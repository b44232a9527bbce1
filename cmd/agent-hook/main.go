// Command agent-hook is what an agent starts as its hook, once for each call:
//
//	agent-hook [--timeout SECONDS] AGENT EVENT
//
// It is a pipe and understands nothing: what the agent writes to its stdin goes
// to the core's agent.sock as one line, and the line that comes back says what
// to write and how to exit. The core does all translation. agent-hook stays
// connected while it waits, so its death is the withdrawal of its call.
//
// What it owes the agent is that no fault lets a call run. On a gated event it
// exits 0 or 2 and nothing else: whatever goes wrong is 2, with the reason on
// stderr and the agent's native deny on stdout. On an observed event it always
// exits 0, without a word when something fails, and within a second unless a
// core has accepted it.
//
// It starts with every call, so it is small: raw sockets instead of package
// net, and a few lines instead of encoding/json. See docs of place/run for the
// environment.
package main

import (
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	signal.Ignore(deadly[:]...)
	h := &hook{start: time.Now(), environ: os.Environ()}
	defer h.recovered()
	wrong := h.parse(os.Args[1:])
	if wrong != nil {
		h.fail(codeUnknown, wrong.Error())
	}
	h.arm()
	h.run()
}

// The signals that would end the process, which is no deny to an agent.
var deadly = [...]os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}

// mindSignals makes a deadly signal a deny, and a withdrawal. Until then they
// are ignored, which is as safe: to receive them the runtime starts three
// threads, a fifth of our time, and most calls are over before.
func (h *hook) mindSignals() {
	h.minding.Do(func() {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, deadly[:]...)
		go func() {
			<-stop
			h.fail(codeEnded, "agent-hook was stopped by a signal")
		}()
	})
}

const usage = "the command is agent-hook [--timeout SECONDS] AGENT EVENT"

// parse reads the command line. The event is looked up first, so that a deny
// about the rest is in the agent's words.
func (h *hook) parse(args []string) error {
	var words []string
	timeout, given := "", false
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--timeout" && i+1 < len(args):
			timeout, given = args[i+1], true
			i++
		case len(a) > 10 && a[:10] == "--timeout=":
			timeout, given = a[10:], true
		case a == "--help" || a == "-h": // no agent says so; exit 2 allows nothing all the same
			h.say(exitDeny, "", usage+"\n"+known("")+"\n")
		case len(a) > 0 && a[0] == '-':
			return errors.New(usage + "; " + strconv.Quote(a) + " is not understood")
		default:
			words = append(words, a)
		}
	}
	if len(words) != 2 {
		return errors.New(usage)
	}
	h.agent, h.name = words[0], words[1]
	e, ok := find(h.agent, h.name)
	if !ok {
		return errors.New("agent-hook knows no event " + strconv.Quote(h.name) + " of an agent " + strconv.Quote(h.agent) + "; " + known(h.agent))
	}
	h.event, h.limit = e, e.timeout
	if !given {
		return nil
	}
	seconds, err := strconv.ParseFloat(timeout, 64)
	if err != nil || !(seconds >= 0 && seconds <= 1e9) { // NaN is neither
		return errors.New("--timeout must be a number of seconds from 0 (none) up, it is " + strconv.Quote(timeout))
	}
	h.limit = seconds
	return nil
}

// event is what the generated table says of one native event. Timeout is in
// seconds, 0 for none. Deny is JSON with the words $code and $reason.
type event struct {
	agent, name string
	gated       bool
	timeout     float64
	deny        string
}

// known lists the events of an agent, or the agents when there is none of that
// name.
func known(agent string) string {
	var agents, events []string
	for _, e := range table {
		if e.agent == agent {
			events = append(events, e.name)
		}
		if len(agents) == 0 || agents[len(agents)-1] != e.agent {
			agents = append(agents, e.agent)
		}
	}
	if len(events) > 0 {
		return "its events: " + strings.Join(events, ", ")
	}
	return "the agents: " + strings.Join(agents, ", ")
}

func find(agent, name string) (event, bool) {
	for _, e := range table {
		if e.agent == agent && e.name == name {
			return e, true
		}
	}
	// Unknown is gated: nobody may take it for an allow.
	return event{agent: agent, name: name, gated: true}, false
}
