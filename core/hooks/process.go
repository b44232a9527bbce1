package hooks

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// termGrace is how long a group has between TERM and KILL.
	termGrace = time.Second
	// drainGrace is how long output is still read after the process ended. A
	// child that keeps the pipe open is not waited for.
	drainGrace = 100 * time.Millisecond
)

// nonblock lets a file be opened without waiting for a pipe's other end.
const nonblock = syscall.O_NONBLOCK

// ending is how a process ended. exit is 128 + signal for one that a signal
// ended.
type ending struct {
	exit     int
	signal   syscall.Signal
	timedOut bool
	stdout   *capture
	stderr   *capture
}

// explain adds the beginning of stderr to a cause.
func (e ending) explain(cause string) string {
	const limit = 200
	text := []rune(strings.TrimSpace(e.stderr.text()))
	if len(text) == 0 {
		return cause
	}
	return cause + ": " + string(text[:min(len(text), limit)])
}

// run starts the process in a group of its own and waits for its end, for the
// limit, or for ctx. Past either the group gets TERM, and KILL a second later.
// It returns within the limit and that second, whatever the process does. The
// error says that it could not be started.
func (l launch) run(ctx context.Context, limit time.Duration) (ending, error) {
	stdin, err := os.Open(l.stdin)
	if err != nil {
		return ending{}, err
	}
	defer stdin.Close()
	stdout, err := newOutput(l.stdoutHead)
	if err != nil {
		return ending{}, err
	}
	defer stdout.close()
	stderr, err := newOutput(keptHead)
	if err != nil {
		return ending{}, err
	}
	defer stderr.close()
	cmd := &exec.Cmd{
		Path: l.path, Args: l.argv, Env: l.env, Dir: l.dir,
		Stdin: stdin, Stdout: stdout.write, Stderr: stderr.write,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := cmd.Start(); err != nil {
		return ending{}, err
	}
	stdout.start()
	stderr.start()

	p := process{cmd: cmd, ended: make(chan struct{}), outputs: []*output{stdout, stderr}}
	go p.wait()
	end := ending{stdout: &stdout.kept, stderr: &stderr.kept}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		end.timedOut = true
		p.endGroup()
	case <-ctx.Done():
		p.endGroup()
	}
	stdout.finish()
	stderr.finish()
	end.exit, end.signal = p.status()
	return end, nil
}

// process is a started process and the ends of its output.
type process struct {
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process was waited for
	outputs []*output
}

func (p process) wait() {
	_ = p.cmd.Wait() // the status is read from ProcessState
	close(p.ended)
}

// endGroup ends the whole group. Children that outlive the process have the
// rest of the second, as long as one of them holds an output.
func (p process) endGroup() {
	group := -p.cmd.Process.Pid
	deadline := time.Now().Add(termGrace)
	_ = syscall.Kill(group, syscall.SIGTERM)
	p.await(deadline)
	for _, o := range p.outputs {
		o.await(deadline)
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	// A process that the kernel cannot end is not waited for either.
	p.await(time.Now().Add(drainGrace))
}

func (p process) await(deadline time.Time) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	}
}

func (p process) status() (exit int, signal syscall.Signal) {
	select {
	case <-p.ended:
	default:
		return -1, syscall.SIGKILL // it was told to end and has not
	}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), ws.Signal()
	}
	return p.cmd.ProcessState.ExitCode(), 0
}
