package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// queued is how many questions wait behind the one that is on the screen, in the
// second half of the measurement.
const queued = 10_000

// The budgets of a frame, nanoseconds: from a call, and from a key.
const (
	askLimit = 100 * time.Millisecond
	keyLimit = 50 * time.Millisecond
)

// screenBench is a real core with the real screen in front of it.
type screenBench struct {
	core   *coreProcess
	front  *frontends.Client // answers, so that the screen gets free
	screen *watched
	bare   *bare
	n      int
}

// tuiFrames times the screen: from before a call's append to the last byte of the
// frame that shows its question, and from a key to the last byte of the frame that
// it brings. The argument is 80,000 characters long. Beside it a bare program
// writes the bytes of the same frame to a pseudo-terminal of its own.
func tuiFrames(ctx context.Context, b *bench) (_ []row, err error) {
	s := &screenBench{}
	if s.core, err = startCore(ctx, b, "process", "", askRule); err != nil {
		return nil, err
	}
	defer s.core.stop()
	front, leave, err := startFront(ctx, s.core.natsSocket())
	if err != nil {
		return nil, err
	}
	defer leave()
	s.front = front
	if s.bare, err = openBare(ctx, b); err != nil {
		return nil, err
	}
	defer s.bare.Close()
	if err := s.open(ctx, b); err != nil {
		return nil, err
	}
	defer func() { s.screen.Close() }()
	settle(ctx)
	asks, keys, err := s.alone(ctx, b)
	if err != nil {
		return nil, err
	}
	rows := []row{
		asks.row("TUI, 80,000 characters: from before the append to the frame's last byte", askLimit),
		keys.row("TUI, 80,000 characters: key to the frame's last byte", keyLimit),
	}
	asks, keys, list, err := s.crowded(ctx, b)
	if err != nil {
		return rows, err
	}
	return append(rows,
		asks.row("the same, 10,000 more questions queued: a new one is counted", askLimit),
		keys.row("the same, 10,000 queued: key to frame in the dialog", keyLimit),
		list.row("the same, 10,000 queued: key to frame in the list", keyLimit),
	), nil
}

// frames are the times of one kind of frame and, beside each, of the bare program
// with the same bytes.
type frames struct{ took, floor []time.Duration }

func (s *screenBench) add(f *frames, took time.Duration, frame []byte, err error) error {
	if err != nil {
		return err
	}
	floor, err := s.bare.time(frame)
	f.took, f.floor = append(f.took, took), append(f.floor, floor)
	return err
}

func percentile(list []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

func (f frames) row(what string, limit time.Duration) row {
	took, floor := percentile(f.took, 0.95), percentile(f.floor, 0.95)
	return row{
		What: what, Figure: millis(float64(took)), Floor: millis(float64(floor)),
		Ratio:  fmt.Sprintf("%.1f", float64(took)/float64(floor)),
		Budget: fmt.Sprintf("p95 ≤ %d ms", limit.Milliseconds()), Met: yes(took <= limit),
		Note: fmt.Sprintf("median %s, longest %s, of %d", millis(float64(percentile(f.took, 0.5))), millis(float64(slices.Max(f.took))), len(f.took)),
	}
}

// open starts the screen, and waits until it is at rest.
func (s *screenBench) open(ctx context.Context, b *bench) (err error) {
	dir := s.core.dir
	cmd := exec.CommandContext(ctx, b.program("tui-frontend"), "--language", "en")
	cmd.Env = []string{
		"HOME=" + dir, "TERM=xterm-256color", "LC_ALL=C.UTF-8", "FERMATA_AUTOSTART=0",
		"FERMATA_CONFIG_DIR=" + dir + "/c", "FERMATA_STATE_DIR=" + dir + "/s", "FERMATA_RUNTIME_DIR=" + dir + "/r",
	}
	if s.screen, err = watch(cmd); err != nil {
		return err
	}
	_, err = s.screen.Await("the screen", frameCame, func(text string) bool { return strings.Contains(text, say(words.Product)) })
	return err
}

func say(key words.Key, a ...any) string { return words.In(words.English).Say(key, a...) }

// long is an argument of 80,000 characters that no other one equals.
func (s *screenBench) long() (begins, whole string) {
	s.n++
	begins = fmt.Sprintf("echo call %d", s.n)
	return begins, begins + strings.Repeat("\necho and one line more of the way to the end", 2000)[:80_000-len(begins)]
}

// ask times one call of 80,000 characters to its frame.
func (s *screenBench) ask() (w waiting, took time.Duration, frame []byte, err error) {
	begins, whole := s.long()
	took, frame, err = s.screen.frame(
		func() (err error) { w, err = propose(s.core.agentSocket(), whole); return err },
		func(text string) bool { return strings.Contains(text, begins+"\n") && strings.Contains(text, "80,000") },
	)
	return w, took, frame, err
}

// live waits until the question on the screen takes keys.
func (s *screenBench) live() error {
	_, err := s.screen.Await("end of the grace", frameCame, func(text string) bool { return strings.Contains(text, "c "+say(words.Continue)) })
	s.screen.Rest(frameEnds)
	return err
}

// key times one key whose frame differs from the one before in more than a clock.
func (s *screenBench) key(f *frames, key, mark string) error {
	before := marked(s.screen.Picture().Text(), mark)
	took, frame, err := s.screen.frame(
		func() error { return s.screen.Press(key) },
		func(text string) bool { return marked(text, mark) != before },
	)
	return s.add(f, took, frame, err)
}

// marked is the first line of a screen that has this text.
func marked(text, mark string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, mark) {
			return line
		}
	}
	return ""
}

// The keys that scroll to the next page and back, and to the next row.
const (
	pageDown, pageUp = "\x1b[6~", "\x1b[5~"
	down, up         = "\x1b[B", "\x1b[A"
)

// alone measures one question at a time on a screen that was at rest.
func (s *screenBench) alone(ctx context.Context, b *bench) (asks, keys frames, err error) {
	const each, keysEach = 8, 3
	for n := range b.rounds * each {
		w, took, frame, err := s.ask()
		if n > 0 || err != nil { // the first warms up
			err = s.add(&asks, took, frame, err)
		}
		if err == nil {
			err = s.live()
		}
		for k := range keysEach {
			if err == nil {
				err = s.key(&keys, []string{pageDown, down, pageUp}[k], say(words.ReadLast))
			}
		}
		if err == nil {
			err = s.free(ctx)
		}
		if err != nil {
			return asks, keys, err
		}
		_ = w.conn.Close()
	}
	return asks, keys, nil
}

// free answers what is open, and waits until the screen is at rest.
func (s *screenBench) free(ctx context.Context) error {
	for _, q := range s.front.Inbox().Questions() {
		if err := respond(ctx, s.front, q); err != nil {
			return err
		}
	}
	_, err := s.screen.Await("end of the question", frameCame, func(text string) bool { return !strings.Contains(text, " "+say(words.Cancel)) })
	s.screen.Rest(6 * frameEnds)
	return err
}

// crowded measures with 10,000 questions behind the one that is on the screen.
func (s *screenBench) crowded(ctx context.Context, b *bench) (asks, keys, list frames, err error) {
	w, _, _, err := s.ask()
	if err == nil {
		err = s.live()
	}
	if err != nil {
		return asks, keys, list, err
	}
	defer w.conn.Close()
	held := make([]waiting, queued)
	defer func() {
		for _, w := range held {
			if w.conn != nil {
				_ = w.conn.Close()
			}
		}
	}()
	for n := range held {
		if held[n], err = propose(s.core.agentSocket(), fmt.Sprintf("echo %d of those that wait %s", n, strings.Repeat("x", 400))); err != nil {
			return asks, keys, list, err
		}
	}
	count := func(n int) func(string) bool {
		return func(text string) bool { return strings.Contains(text, say(words.WaitingCount, n)) }
	}
	if _, err = s.screen.Await("10,001 questions", 2*time.Minute, count(queued+1)); err != nil {
		return asks, keys, list, err
	}
	for n := range b.rounds * 8 {
		took, frame, err := s.screen.frame(func() error {
			w, err := propose(s.core.agentSocket(), fmt.Sprintf("echo one more %d", n))
			held = append(held, w)
			return err
		}, count(queued+2+n))
		if err = s.add(&asks, took, frame, err); err == nil {
			err = s.key(&keys, []string{pageDown, pageUp}[n%2], say(words.ReadLast))
		}
		if err != nil {
			return asks, keys, list, err
		}
	}
	if err := s.screen.Press("\x1b"); err != nil {
		return asks, keys, list, err
	}
	if _, err = s.screen.Await("the list", frameCame, func(text string) bool { return strings.Contains(text, "›") }); err != nil {
		return asks, keys, list, err
	}
	for n := range b.rounds * 8 {
		if err := s.key(&list, []string{down, up}[n%2], "›"); err != nil {
			return asks, keys, list, err
		}
	}
	return asks, keys, list, nil
}
