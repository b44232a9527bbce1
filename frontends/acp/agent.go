package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Exit statuses of [Run] that are not the agent's own, as shells have them. An
// agent that a signal ended gives 128 and the signal's number.
const (
	ExitCannotRun = 126
	ExitNotFound  = 127
)

const (
	// quiet is how long the output of an agent that has exited may be silent
	// before a process that it left behind, with the pipe still open, is not
	// waited for.
	quiet = 200 * time.Millisecond
	// grace is how long an agent may take to end after it was told to.
	grace = 5 * time.Second
)

// Options says which agent to run, and what to connect it to.
type Options struct {
	Argv []string // program and arguments, required
	// In is the editor's side. Run closes it when the agent stops reading, so
	// that the editor learns of it.
	In  io.ReadCloser
	Out io.WriteCloser // to the editor; closed when the agent's output has ended
	Err *os.File       // the agent's stderr, handed to it as it is; nil discards
	// Signals are passed to the agent's process group. Nil passes none.
	Signals <-chan os.Signal
}

// Run starts the agent in a process group of its own, relays both directions
// until it has ended, and returns its exit status. The end of the editor's
// bytes is the end of the agent's input and nothing else: the agent decides
// when it is done. When ctx ends, the group is told to terminate, and killed
// five seconds later.
//
// An error means that the agent could not be run or waited for; the status then
// is [ExitNotFound] or [ExitCannotRun]. A read of In that is under way when the
// agent ends is left to In's owner; nothing else outlives Run.
func Run(ctx context.Context, o Options) (int, error) {
	agent, err := start(ctx, o)
	if err != nil {
		return statusOf(err), err
	}
	go func() {
		err := Relay(agent.stdin, o.In)
		_ = agent.stdin.Close()
		if sink := (*SinkError)(nil); errors.As(err, &sink) {
			_ = o.In.Close()
		}
	}()
	output := make(chan struct{})
	go func() {
		defer close(output)
		_ = Relay(o.Out, agent)
		_, _ = agent.stdout.Close(), o.Out.Close() // whoever is left learns of it
	}()
	err = agent.wait(o.Signals)
	<-output
	_ = agent.stdin.Close()
	if ctx.Err() != nil {
		agent.signal(syscall.SIGKILL) // what the agent left of its group
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return ExitCannotRun, fmt.Errorf("wait for %s: %w", o.Argv[0], err)
	}
	return exitStatus(agent.cmd.ProcessState), nil
}

// process is a running agent and our ends of its pipes.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
}

func start(ctx context.Context, o Options) (*process, error) {
	if len(o.Argv) == 0 {
		return nil, errors.New("no agent to run")
	}
	childIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to the agent: %w", err)
	}
	stdout, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pipe from the agent: %w", err), childIn.Close(), stdin.Close())
	}
	p := &process{cmd: exec.CommandContext(ctx, o.Argv[0], o.Argv[1:]...), stdin: stdin, stdout: stdout}
	p.cmd.Stdin, p.cmd.Stdout = childIn, childOut
	if o.Err != nil {
		p.cmd.Stderr = o.Err
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { p.signal(syscall.SIGTERM); return nil }
	p.cmd.WaitDelay = grace
	err = p.cmd.Start()
	// The agent has its own copies; ours would keep the pipes from ending.
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		_, _ = stdin.Close(), stdout.Close()
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	return p, nil
}

// wait passes signals on until the agent has exited. From then on its output
// ends at the first silence.
func (p *process) wait(signals <-chan os.Signal) error {
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s, ok := s.(syscall.Signal); ok {
				p.signal(s)
			}
		case err := <-done:
			_ = p.stdout.SetReadDeadline(time.Now().Add(quiet))
			return err
		}
	}
}

// signal reaches the agent and what it started. A group that is gone is no
// fault.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// Read reads the agent's output. There is no deadline while the agent runs. One
// strikes even where bytes are waiting (a slow editor may have held us up), so
// it only ends the output after a read that was given time of its own and found
// nothing.
func (p *process) Read(b []byte) (int, error) {
	n, err := p.stdout.Read(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if err := p.stdout.SetReadDeadline(time.Now().Add(quiet)); err != nil {
		return 0, err
	}
	n, err = p.stdout.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, io.EOF
	}
	return n, err
}

func exitStatus(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}

func statusOf(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return ExitNotFound
	}
	return ExitCannotRun
}
