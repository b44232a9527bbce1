package main

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fermata-hitl/fermata/cmd/internal/place/run"
)

// Exit codes; there are no others.
const (
	exitAllow = 0
	exitDeny  = 2
)

// Codes of denies that are made here.
const (
	codeUnreachable = "core_unreachable"
	codeEnded       = "ended"
	codeTooLarge    = "too_large"
	codeUnknown     = "needs_newer_core"
)

// Times.
const (
	firstContact = 3 * time.Second        // to reach a core for the first time
	withoutCore  = time.Minute            // without any word of a core, afterwards
	margin       = 300 * time.Millisecond // before the agent's own limit
	observing    = time.Second            // for an observed event, until a core has it
	redial       = 20 * time.Millisecond
	signalsAfter = 5 * time.Millisecond
	parentCheck  = 500 * time.Millisecond
)

// hook is one run of agent-hook.
type hook struct {
	agent, name string
	event       event
	limit       float64 // the agent's limit in seconds, 0 for none
	start       time.Time
	environ     []string
	minding     sync.Once   // see mindSignals
	giveUp      *time.Timer // of an observed event that no core has accepted

	// taken is set by whoever says the last word. Everybody else is silent.
	taken atomic.Bool
	// startError is why no core could be started, for the reason of a deny.
	startError error
	coreLog    string // where a core that we started writes
}

// arm sets what ends the wait whatever the core does: the agent's limit, and
// the death of the agent. An observed event has that only once a core has
// accepted it; see accepted.
func (h *hook) arm() {
	if !h.gated() {
		h.giveUp = time.AfterFunc(observing, func() { h.fail(codeUnreachable, "") })
		return
	}
	h.bound()
	time.AfterFunc(signalsAfter, h.mindSignals)
}

// accepted gives an observed event the time of a gated one: the core has it, and
// hooks may have something to say about a tool's result.
func (h *hook) accepted() {
	if !h.gated() && h.giveUp.Stop() {
		h.bound()
	}
}

// bound ends the wait with the agent's patience, or with the agent.
func (h *hook) bound() {
	if h.limit > 0 {
		limit := time.Duration(h.limit * float64(time.Second))
		time.AfterFunc(max(limit-margin, limit/2)-time.Since(h.start), func() {
			h.fail(codeUnreachable, "the core gave no verdict within the agent's limit of "+seconds(h.limit)+" s")
		})
	}
	h.watch(os.Getppid())
}

// watch leaves when the parent is not the one that started us: then the agent
// is gone, and leaving is the withdrawal.
func (h *hook) watch(parent int) {
	time.AfterFunc(parentCheck, func() {
		if os.Getppid() != parent {
			h.fail(codeEnded, "the agent that asked has ended")
		}
		h.watch(parent)
	})
}

func (h *hook) gated() bool { return h.event.gated || h.event.name == "" }

// remaining is the agent's limit minus what has passed, 0 if it has none.
func (h *hook) remaining() float64 {
	if h.limit == 0 {
		return 0
	}
	return max(h.limit-time.Since(h.start).Seconds(), 0.001)
}

// run asks the core and does not return.
func (h *hook) run() {
	dirs, err := run.Find(os.Getenv, os.Getuid())
	if err == nil {
		if err = run.CheckPrivate(dirs.Runtime, os.Getuid()); os.IsNotExist(err) {
			err = nil // the core's start will make it
		}
	}
	if err != nil {
		h.fail(codeUnreachable, err.Error())
	}
	stdin, ok := readAll(0, maxLine)
	if !ok {
		h.fail(codeTooLarge, "the agent's payload is larger than "+strconv.Itoa(maxLine)+" bytes")
	}
	id, secret, err := identity(h.start)
	if err != nil {
		h.fail(codeUnreachable, "no randomness: "+err.Error())
	}
	c := call{operation: id, secret: secret, agent: h.agent, event: h.name, stdin: stdin, pid: os.Getpid(), ppid: os.Getppid()}
	c.cwd, _ = os.Getwd()
	c.pane = pane(os.Getenv)
	h.coreLog = dirs.Log()
	starter := run.Starter{Dirs: dirs, UID: os.Getuid(), Environ: h.environ}
	h.ask(dirs.AgentSocket(), &starter, c)
}

// ask dials until a core has given its verdict. The same operation and secret
// are the same call for every core, so asking again is safe.
func (h *hook) ask(socket string, starter *run.Starter, c call) {
	limit := firstContact // withoutCore once a core has accepted the call
	since := time.Now()   // since when no core has said a word
	for {
		fd, err := run.Dial(socket)
		if err != nil {
			if time.Since(since) > limit {
				h.unreachable(limit)
			}
			h.mindSignals() // a core that we start must not inherit that they are ignored
			h.startError = starter.Start()
			time.Sleep(redial)
			continue
		}
		starter.Done()
		c.timeout = h.remaining()
		if h.converse(fd, c, since) {
			limit, since = withoutCore, time.Now()
		}
		_ = syscall.Close(fd)
		if time.Since(since) > limit {
			h.unreachable(limit)
		}
		time.Sleep(redial)
	}
}

// converse speaks with one core. It returns when the connection is lost, and
// tells whether that core had accepted the call.
func (h *hook) converse(fd int, c call, since time.Time) (accepted bool) {
	line := c.line()
	if len(line) > maxLine {
		h.fail(codeTooLarge, "the agent's payload is larger than "+strconv.Itoa(maxLine)+" bytes")
	}
	silent := time.AfterFunc(withoutCore-time.Since(since), func() {
		h.fail(codeUnreachable, "the core said nothing for "+seconds(withoutCore.Seconds())+" s")
	})
	defer silent.Stop()
	err := writeAll(fd, line) // a core that denies without reading has still answered
	h.mindSignals()           // before anybody can see a question; the core is at work meanwhile
	in := reader{fd: fd}
	for {
		text, ok := in.line()
		if !ok && err == nil && !h.gated() {
			h.leave(exitAllow, "", "") // said once: it must not be recorded twice
		}
		if !ok {
			return accepted
		}
		r, ok := parseReply(text)
		if !ok {
			h.fail(codeUnknown, "the core's answer was not understood")
		}
		if !r.accepted {
			h.settle(fd, c, r)
			return accepted
		}
		accepted = true
		silent.Stop()
		h.accepted()
	}
}

// settle ends the run with the core's verdict. It returns only when an allow
// could not be confirmed: without a receipt nothing may run.
func (h *hook) settle(fd int, c call, r reply) {
	if !h.gated() && r.exit == exitAllow {
		h.leave(exitAllow, r.stdout, "")
	}
	if r.exit != exitAllow && r.exit != exitDeny || !h.gated() {
		h.fail(codeUnknown, "the core's answer was not understood")
	}
	if !h.taken.CompareAndSwap(false, true) {
		select {} // somebody else is saying the last word
	}
	receipt := `{"receipt":"` + c.operation + "\"}\n"
	if err := writeAll(fd, []byte(receipt)); err != nil && r.exit == exitAllow {
		h.taken.Store(false)
		return
	}
	if r.exit == exitDeny && r.stderr == "" {
		r.stderr = "The call did not run: Fermata denied it.\n"
	}
	if r.exit == exitDeny && r.stdout == "" {
		r.stdout = h.deny(codeUnreachable, strings.TrimSpace(r.stderr))
	}
	h.say(r.exit, r.stdout, r.stderr)
}

func (h *hook) unreachable(limit time.Duration) {
	detail := "no core answered for " + seconds(limit.Seconds()) + " s"
	if h.startError != nil {
		detail += ", and none could be started: " + h.startError.Error()
	} else if h.coreLog != "" {
		detail += "; what a core said is in " + h.coreLog
	}
	h.fail(codeUnreachable, detail)
}

// fail says that the call could not be checked, and ends. On an observed event
// it only ends.
func (h *hook) fail(code, detail string) {
	if !h.gated() {
		h.leave(exitAllow, "", "")
	}
	text := "The call did not run: Fermata could not check it (" + code + "): " + detail + "."
	h.leave(exitDeny, h.deny(code, text), text+"\n")
}

// leave ends with the last word, unless somebody has it: then it waits for the
// end of the process, or for the word to be given back.
func (h *hook) leave(exit int, stdout, stderr string) {
	for !h.taken.CompareAndSwap(false, true) {
		time.Sleep(redial)
	}
	h.say(exit, stdout, stderr)
}

// deny is the agent's native deny.
func (h *hook) deny(code, reason string) string {
	s := strings.ReplaceAll(h.event.deny, "$code", quote(code))
	return strings.ReplaceAll(s, "$reason", quote(reason))
}

// recovered turns a panic into a deny.
func (h *hook) recovered() {
	if p := recover(); p != nil {
		h.fail(codeUnreachable, "agent-hook is broken")
	}
}

func (h *hook) say(exit int, stdout, stderr string) {
	_ = writeAll(2, []byte(stderr))
	if err := writeAll(1, []byte(stdout)); err != nil && exit == exitAllow && stdout != "" && h.gated() {
		exit = exitDeny // changed arguments that the agent did not get must not run unchanged
	}
	syscall.Exit(exit)
}

func seconds(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
