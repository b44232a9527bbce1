package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// part is what this program does when it is a process of its own in a
// measurement.
type part struct {
	role     string // asker, hold, frontend, fill or frame; "" = the whole measurement
	socket   string
	dir      string
	n        int
	messages int
	inFlight int
}

func (p *part) flags() {
	flag.StringVar(&p.role, "role", "", "internal: be a part of a measurement")
	flag.StringVar(&p.socket, "socket", "", "internal")
	flag.StringVar(&p.dir, "dir", "", "internal")
	flag.IntVar(&p.n, "n", 0, "internal")
	flag.IntVar(&p.messages, "messages", 0, "internal")
	flag.IntVar(&p.inFlight, "in-flight", 1, "internal")
}

// command starts this program in a role. It ends with ctx.
func (p part) command(ctx context.Context, b *bench) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.self, "-role", p.role, "-socket", p.socket, "-dir", p.dir,
		"-n", strconv.Itoa(p.n), "-messages", strconv.Itoa(p.messages), "-in-flight", strconv.Itoa(p.inFlight))
	cmd.Stderr = os.Stderr
	return cmd
}

func (p part) play(ctx context.Context) error {
	switch p.role {
	case "asker":
		return p.ask(ctx)
	case "hold":
		return p.hold(ctx)
	case "frontend":
		c, end, err := startFront(ctx, p.socket)
		if err != nil {
			return err
		}
		defer end()
		fmt.Println("ready")
		answerAll(ctx, c)
		return nil
	case "fill":
		return p.fill(ctx)
	case "frame":
		return p.drawFrames()
	}
	return fmt.Errorf("unknown role %q", p.role)
}

// outcome is what an asker's process saw.
type outcome struct {
	Allowed, Lost, Stuck int64
	Seconds              float64
	First                string // what went wrong first
}

// stuckAfter is how long a call may take before it counts as stuck.
const stuckAfter = 60 * time.Second

// ask makes n calls and says on stdout what became of them.
func (p part) ask(ctx context.Context) error {
	var o outcome
	var first sync.Once
	a := asker{socket: p.socket}
	began := time.Now()
	_ = each(p.n, p.inFlight, func() error {
		ctx, cancel := context.WithTimeout(ctx, stuckAfter)
		defer cancel()
		err := a.once(ctx)
		switch {
		case err == nil:
			atomic.AddInt64(&o.Allowed, 1)
			return nil
		case ctx.Err() != nil:
			atomic.AddInt64(&o.Stuck, 1)
		default:
			atomic.AddInt64(&o.Lost, 1)
		}
		first.Do(func() { o.First = err.Error() })
		return nil
	})
	o.Seconds = time.Since(began).Seconds()
	return json.NewEncoder(os.Stdout).Encode(o)
}

// hold makes n calls, says ready when all are accepted, and holds them until
// its stdin ends.
func (p part) hold(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var left sync.WaitGroup
	left.Add(p.n)
	for range p.n {
		go func() {
			var once sync.Once
			_ = asker{socket: p.socket, accepted: func() { once.Do(left.Done) }}.once(ctx)
		}()
	}
	left.Wait()
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// fill writes a log of so many messages with n questions open at its end, and
// dies as by kill -9.
func (p part) fill(ctx context.Context) error {
	b := &bench{}
	h, err := openHouse(ctx, b, houseOptions{mode: "process", dir: p.dir, rule: askRule, answers: true})
	if err != nil {
		return err
	}
	const perAnswered = 4 // messages of a call that was asked about
	err = each((p.messages-2*p.n)/perAnswered, 256, func() error { return h.once(ctx) })
	h.answers = false
	if err == nil {
		err = h.open(ctx, p.n)
	}
	if err != nil {
		return err
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// ready starts a part and waits for its word.
func (p part) ready(ctx context.Context, b *bench) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := p.command(ctx, b)
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	in, err := cmd.StdinPipe() // open until stop
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	stop = func() { cancel(); _ = cmd.Wait(); _ = in.Close() }
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		stop()
		return nil, fmt.Errorf("the %s did not get ready: %w", p.role, err)
	}
	return stop, nil
}
