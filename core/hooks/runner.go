package hooks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Runner runs one hook on one operation and says what it did. When ctx ends,
// the run is abandoned and never allows.
type Runner func(ctx context.Context, h Hook, in Input) Result

// Input is what a run is given besides the hook.
type Input struct {
	Payload Payload
	Env     []string // further variables, such as TRACEPARENT=…
	Cwd     string   // the operation's working directory
}

// RunnerOptions configure the real runner.
type RunnerOptions struct {
	// TempDir holds a directory for each run while it lasts; the system's if "".
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
	files, err := newExchange(r.tempDir, in.Payload.Encode())
	if err != nil {
		return Failure(h, events.CodeHookFailed, "its files could not be written: "+err.Error())
	}
	defer files.remove()
	start, err := r.prepare(h, in, files)
	if err != nil {
		return Failure(h, startCode(err), err.Error())
	}
	end, err := start.run(ctx, h.Timeout)
	if err != nil {
		return Failure(h, startCode(err), "it could not be started: "+err.Error())
	}
	result := r.judge(ctx, h, in, files, end)
	result.Script, result.Exit = start.script, end.exit
	result.Stdout, result.Stderr = end.stdout.text(), end.stderr.text()
	return result
}

// missingError says that something which a hook needs is not there.
type missingError string

func (e missingError) Error() string { return string(e) }

func missing(format string, args ...any) error { return missingError(fmt.Sprintf(format, args...)) }

func startCode(err error) events.Code {
	var m missingError
	if errors.As(err, &m) || errors.Is(err, fs.ErrNotExist) {
		return events.CodeHookMissing
	}
	return events.CodeHookFailed
}

// judge decides by how the process ended; only after exit 0 does it read what
// the process wrote.
func (r runner) judge(ctx context.Context, h Hook, in Input, files exchange, end ending) Result {
	const shellFoundNothing = 127
	switch {
	case ctx.Err() != nil:
		// Nobody waits for this run any more. Should its result be acted on all
		// the same, it refuses, whatever on_error says.
		h.OnError = OnErrorBlock
		abandoned := Failure(h, events.CodeHookFailed, "it was ended before it could decide")
		abandoned.Outcome = events.RunAbandoned
		return abandoned
	case end.timedOut:
		return Failure(h, events.CodeHookTimedOut, end.explain(fmt.Sprintf("it did not end within %s", h.Timeout)))
	case end.signal != 0:
		return Failure(h, events.CodeHookFailed, end.explain(fmt.Sprintf("it was ended by signal %d (%s)", int(end.signal), end.signal)))
	case end.exit == shellFoundNothing:
		return Failure(h, events.CodeHookMissing, end.explain("exit status 127: a program that it needs is not there"))
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
	if empty && h.RequireResult {
		return Failure(h, events.CodeHookBadVerdict, "it gave no result, and require_result is set")
	}
	return v.apply(h, in.Payload.Args)
}

// exchange is the pair of files through which core and process talk, in a
// directory that only their owner can enter.
type exchange struct {
	dir, payload, verdict string
}

func newExchange(tempDir string, payload []byte) (exchange, error) {
	dir, err := os.MkdirTemp(tempDir, "fermata-hook-")
	if err != nil {
		return exchange{}, err
	}
	x := exchange{dir, dir + "/payload.json", dir + "/result.json"}
	if err = os.WriteFile(x.payload, payload, 0o600); err == nil {
		err = os.WriteFile(x.verdict, nil, 0o600)
	}
	if err != nil {
		x.remove()
	}
	return x, err
}

func (x exchange) remove() { _ = os.RemoveAll(x.dir) }

// result reads what the process left; a file that it removed is an empty one.
func (x exchange) result() ([]byte, error) {
	data, err := readRegular(x.verdict, maxVerdict+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the result file is not readable: %w", err)
	}
	return data, nil
}
