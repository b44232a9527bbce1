package hooks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Runner runs one hook on one event and says what it did. When ctx ends, the run
// is abandoned and never allows. Of a detached hook it awaits only the start.
type Runner func(ctx context.Context, h Hook, in Input) Result

// Input is what a run is given besides the hook.
type Input struct {
	Payload Payload
	Env     []string // further variables, such as TRACEPARENT=…
	Cwd     string   // the operation's working directory
	// Raw, when set, is the payload as it was encoded for an earlier start of
	// the same delivery; of Payload nothing is needed then.
	Raw []byte
}

// RunnerOptions configure the real runner.
type RunnerOptions struct {
	// TempDir holds a directory for each run while it lasts; the system's if "".
	// It is best one in memory. [Sweep] cleans it up.
	TempDir string
	// Environ is the core's environment. Variables of NATS and of Fermata in it
	// are not passed on.
	Environ []string
}

// NewRunner makes the runner that starts processes.
func NewRunner(o RunnerOptions) Runner {
	r := runner{tempDir: o.TempDir}
	for _, e := range o.Environ {
		if name, _, _ := strings.Cut(e, "="); !private(name) && len(e) <= maxArgument {
			r.environ = append(r.environ, e)
		}
	}
	return r.run
}

type runner struct {
	tempDir string
	environ []string
}

func (r runner) run(ctx context.Context, h Hook, in Input) Result {
	started := time.Now()
	result := r.decide(ctx, h, in)
	result.Duration = time.Since(started)
	return result
}

func (r runner) decide(ctx context.Context, h Hook, in Input) Result {
	if in.Raw != nil {
		known, err := readBack(in.Raw)
		if err != nil {
			return Failure(h, events.CodeHookFailed, "its stored payload is not readable: "+err.Error())
		}
		in.Payload = known
	}
	// A match that could not be decided put the hook into the plan; here it
	// fails the hook.
	if h.match.patterned() {
		matched, err := h.match.matchesArgs(&arguments{raw: in.Payload.Args})
		if err != nil {
			return Failure(h, events.CodeHookFailed, err.Error())
		}
		if !matched {
			return verdict{}.apply(h, in.Payload.Args)
		}
	}
	if h.Run.Type == RunVerdict {
		return verdict{action: h.Run.Action, reason: h.Run.Reason}.apply(h, in.Payload.Args)
	}
	return r.execute(ctx, h, in)
}

// execute runs the hook's process from preparation to verdict.
func (r runner) execute(ctx context.Context, h Hook, in Input) Result {
	if in.Raw == nil {
		// Nobody is asked on behalf of a run that nothing waits for.
		in.Payload.ConfirmationAvailable = in.Payload.ConfirmationAvailable && h.Mode == Blocking
		in.Raw = in.Payload.Encode()
	}
	files, err := newExchange(r.tempDir, in.Raw)
	if err != nil {
		return Failure(h, events.CodeHookFailed, "its files could not be written: "+err.Error())
	}
	start, err := r.prepare(h, in, files)
	if err != nil {
		files.remove()
		return Failure(h, startCode(err), err.Error())
	}
	if h.Detach {
		return start.detach(ctx, h, files)
	}
	defer files.remove()
	return start.attend(ctx, h, in, files)
}

// attend runs the process to its end and judges it.
func (l launch) attend(ctx context.Context, h Hook, in Input, files exchange) Result {
	end, err := l.run(ctx, h.Timeout)
	if err != nil {
		return l.notStarted(h, err)
	}
	result := l.judge(ctx, h, in, files, end)
	if err := l.script.unchanged(); err != nil && result.Outcome != events.RunAbandoned {
		result = Failure(h, events.CodeNotTrusted, err.Error())
	}
	result.Script, result.Exit = l.script.digest, end.exit
	result.Stdout, result.Stderr = end.stdout.text(), end.stderr.text()
	return result
}

// startError says why a hook could not be started and how that counts.
type startError struct {
	code events.Code
	Message
}

func missing(text sentence, args ...any) error {
	return startError{events.CodeHookMissing, tell(text, args...)}
}

func startCode(err error) events.Code {
	if s, ok := errors.AsType[startError](err); ok {
		return s.code
	}
	if errors.Is(err, fs.ErrNotExist) {
		return events.CodeHookMissing
	}
	return events.CodeHookFailed
}

func (l *launch) notStarted(h Hook, err error) Result {
	cause := err.Error()
	if errors.Is(err, syscall.E2BIG) {
		cause = "its arguments and environment together are longer than this system allows"
	} else if why := l.interpreter(); why != nil && errors.Is(err, fs.ErrNotExist) {
		cause = why.Error()
	}
	return Failure(h, startCode(err), "it could not be started: "+cause)
}

// abandoned is the result of a run that nobody waits for any more. Should it be
// acted on all the same, it refuses, whatever on_error says.
func abandoned(h Hook) Result {
	h.OnError = OnErrorBlock
	r := Failure(h, events.CodeHookFailed, "it was ended before it could decide")
	r.Outcome = events.RunAbandoned
	return r
}

// judge decides by how the process ended; only after exit 0 does it read what
// the process wrote.
func (l *launch) judge(ctx context.Context, h Hook, in Input, files exchange, end ending) Result {
	const shellFoundNothing = 127
	switch {
	case ctx.Err() != nil:
		return abandoned(h)
	case end.timedOut:
		return Failure(h, events.CodeHookTimedOut, end.explain(fmt.Sprintf("it did not end within %s", h.Timeout)))
	case end.signal != 0:
		return Failure(h, events.CodeHookFailed, end.explain(fmt.Sprintf("it was ended by signal %d (%s)", int(end.signal), end.signal)))
	case end.exit == shellFoundNothing:
		cause := "a program that it needs is not there"
		if why := l.interpreter(); why != nil {
			cause = why.Error()
		}
		return Failure(h, events.CodeHookMissing, end.explain("exit status 127: "+cause))
	case end.exit != 0:
		return Failure(h, events.CodeHookFailed, end.explain(fmt.Sprintf("exit status %d", end.exit)))
	}
	written, err := files.result()
	if h.Run.ResultFrom == FromStdout {
		written, err = end.stdout.head()
	}
	if err != nil {
		return Failure(h, events.CodeHookBadVerdict, err.Error())
	}
	v, empty, err := decodeVerdict(written)
	if err != nil {
		return Failure(h, events.CodeHookBadVerdict, err.Error())
	}
	misplaced := len(written) == 0 && h.misplaced(end.stdout)
	switch {
	case misplaced && !h.icode:
		return Failure(h, events.CodeHookBadVerdict, "it wrote its verdict to stdout; with result_from: stdout it is read from there")
	case empty && h.RequireResult:
		return Failure(h, events.CodeHookBadVerdict, "it gave no result, and require_result is set")
	}
	result := v.apply(h, in.Payload.Args)
	if misplaced {
		result.Note = tell("it wrote its verdict to stdout, where nobody looks; with result_from: stdout it is read from there")
	}
	return result
}

// misplaced reports a verdict with an action on a stdout that is not read for
// one. Passing it over would allow what the hook wanted to stop.
func (h Hook) misplaced(stdout *capture) bool {
	written, err := stdout.head()
	if err != nil || h.Mode != Blocking {
		return false
	}
	v, _, err := decodeVerdict(written)
	return err == nil && v.action != ""
}
