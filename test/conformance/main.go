// Command conformance checks a frontend against the numbered MUSTs of the
// frontends' door in docs/protocol.md, as far as they can be seen from outside:
//
//	go run ./test/conformance [--driver CMD] [--core PATH] -- PROGRAM [ARG…]
//
// It starts a core of its own and the program, with FERMATA_RUNTIME_DIR saying where
// nats.sock is, and stands between the two. Agents ask; what a person would do, the
// program is told in lines on its stdin, as `tui-frontend --plain` takes them:
//
//	c 3    continue question 3        x 3    cancel it
//	l 3    turn away from it          an empty line, y, yes: answers nothing
//
// Questions are numbered 1, 2, 3 … in the order in which the program hears of them.
// With --driver, CMD is run in their place, as in `CMD c 3 QUESTION-ID`, or
// `CMD enter 3 QUESTION-ID` for a key that answers nothing; then what the program
// prints is not looked at, which leaves F3, F15 and the second half of F12 open.
//
// Each MUST is printed as pass, FAIL with what was seen, or not seen. The exit is 0
// when none failed, 1 when one did, 2 when nothing could be checked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
)

func main() {
	driver := flag.String("driver", "", "a program that does what a person would do, instead of lines on stdin")
	core := flag.String("core", "", "the core's binary (default: built from this module)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	r, err := check(ctx, *core, *driver, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance: "+err.Error())
		os.Exit(2)
	}
	r.print(os.Stdout)
	if r.failed() {
		os.Exit(1)
	}
}

// check runs a program through all scenes.
func check(ctx context.Context, core, driver string, argv []string) (*report, error) {
	if len(argv) == 0 {
		return nil, errors.New("name the program to check behind --")
	}
	dir, err := os.MkdirTemp("/tmp", "fc") // short, because of the sockets' paths
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	if core == "" {
		core = filepath.Join(dir, "core.bin")
		build := exec.CommandContext(ctx, "go", "build", "-o", core, "github.com/fermata-hitl/fermata/cmd/core")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the core: %w: %s", err, out)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	s := &stage{dir: dir, relay: &relay{core: dir + "/core/nats.sock", more: make(chan struct{})}}
	if err := s.startCore(ctx, core); err != nil {
		return nil, err
	}
	if s.rival, err = s.attach(ctx); err != nil {
		return nil, err
	}
	if err := s.standIns(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir+"/relay", 0o700); err != nil {
		return nil, err
	}
	if err := os.Symlink(dir+"/core/agent.sock", dir+"/relay/agent.sock"); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", dir+"/relay/nats.sock")
	if err != nil {
		return nil, err
	}
	var served error
	tasks.Go(func() { served = s.relay.serve(ctx, l) })
	if err := s.startProgram(ctx, driver, argv); err != nil {
		cancel()
		return nil, err
	}
	r, err := s.play(ctx)
	cancel()
	<-s.program.ended
	tasks.Wait()
	return r, errors.Join(err, served)
}

// musts are how many there are.
const musts = 17

// report is what was seen of each MUST, by its number.
type report struct {
	passed [musts + 1]bool
	broken [musts + 1]string // what was seen, the first time
	unseen [musts + 1]string // why nothing was
}

func (r *report) pass(n int) { r.passed[n] = true }

func (r *report) fail(n int, format string, args ...any) {
	if r.broken[n] == "" {
		r.broken[n] = fmt.Sprintf(format, args...)
	}
}

func (r *report) skip(n int, why string) { r.unseen[n] = why }

func (r *report) failed() bool { return len(r.failures()) > 0 }

// failures are the numbers of what failed.
func (r *report) failures() (list []int) {
	for n, why := range r.broken {
		if why != "" {
			list = append(list, n)
		}
	}
	return list
}

func (r *report) print(out io.Writer) {
	for n := 1; n <= musts; n++ {
		name := fmt.Sprintf("F%d", n)
		switch {
		case r.broken[n] != "":
			fmt.Fprintf(out, "%-4sFAIL      %s\n", name, r.broken[n])
		case r.passed[n]:
			fmt.Fprintf(out, "%-4spass\n", name)
		default:
			fmt.Fprintf(out, "%-4snot seen  %s\n", name, r.unseen[n])
		}
	}
}
