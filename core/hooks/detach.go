package hooks

import (
	"context"
	"os"
	"os/exec"
	"syscall"

	"github.com/fermata-hitl/fermata/events"
)

// detach starts the process in a session of its own, without a limit, and waits
// only for its start. From then on the run's files are the process's: it holds
// their lock, at its stdin and at descriptor 3, and so do its children. They are
// removed when it ends, or by [Sweep] should it outlive this core or leave
// children behind. Nobody reads what it writes.
func (l launch) detach(ctx context.Context, h Hook, files exchange) Result {
	if ctx.Err() != nil {
		files.remove()
		return abandoned(h)
	}
	cmd := &exec.Cmd{
		Path: l.path, Args: l.argv, Env: l.env, Dir: l.dir,
		Stdin: files.lock, ExtraFiles: []*os.File{files.lock},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		files.remove()
		return l.notStarted(h, err)
	}
	files.lock.Close()
	go func() {
		_ = cmd.Wait() // how it ended is nobody's affair
		_ = removeUnused(files.dir)
	}()
	return Result{Effect: events.EffectAllow, Outcome: events.RunDetached, Script: l.script.digest}
}
