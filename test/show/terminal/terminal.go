// Package terminal runs a program in a pseudo-terminal and knows what its screen
// shows, for what shows and measures screens.
package terminal

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// Terminal is a program in a pseudo-terminal, and the screen that it draws.
type Terminal struct {
	cmd     *exec.Cmd
	tty     *os.File
	o       Options
	changed chan struct{} // one place: something was drawn
	done    chan struct{} // closed when the program has gone and all is drawn
	replied chan struct{}

	mu     sync.Mutex
	screen *vt.Emulator
	last   time.Time
}

// Options are the measures of a terminal and what it says of itself: asked for
// the colour of its background it answers black, or white when it is Light.
type Options struct {
	Columns, Rows int
	Light         bool
	// Heard is called with all bytes that the program writes, as they come; nil =
	// nobody.
	Heard func([]byte)
}

// Open starts a program.
func Open(o Options, cmd *exec.Cmd) (*Terminal, error) {
	t := &Terminal{
		cmd: cmd, o: o, changed: make(chan struct{}, 1), done: make(chan struct{}), replied: make(chan struct{}),
		screen: vt.NewEmulator(o.Columns, o.Rows),
	}
	if o.Light {
		t.screen.SetBackgroundColor(color.White)
		t.screen.SetForegroundColor(color.Black)
	}
	var err error
	t.tty, err = pty.StartWithSize(cmd, window(o.Columns, o.Rows))
	if err != nil {
		return nil, fmt.Errorf("start %s in a terminal: %w", cmd.Path, err)
	}
	go t.draw()
	go func() { // what the terminal says by itself, when it is asked
		defer close(t.replied)
		_, _ = io.Copy(t.tty, t.screen)
	}()
	return t, nil
}

func window(columns, rows int) *pty.Winsize {
	return &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}
}

// draw takes in what the program writes, until it ends.
func (t *Terminal) draw() {
	defer close(t.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := t.tty.Read(buf)
		at := time.Now()
		if t.o.Heard != nil {
			t.o.Heard(buf[:n])
		}
		t.mu.Lock()
		if n > 0 {
			t.last = at
		}
		_, _ = t.screen.Write(buf[:n]) // fails only when it was closed
		t.mu.Unlock()
		select {
		case t.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Press types keys, as the bytes that a keyboard sends.
func (t *Terminal) Press(keys string) error {
	_, err := io.WriteString(t.tty, keys)
	return err
}

// Resize changes the window.
func (t *Terminal) Resize(columns, rows int) error {
	t.mu.Lock()
	t.screen.Resize(columns, rows)
	t.mu.Unlock()
	return pty.Setsize(t.tty, window(columns, rows))
}

// Close ends the program, whatever it is doing.
func (t *Terminal) Close() {
	_ = t.cmd.Process.Kill()
	<-t.done
	_ = t.cmd.Wait()
	if in, ok := t.screen.InputPipe().(io.Closer); ok {
		_ = in.Close()
	}
	<-t.replied
	_ = t.tty.Close()
}

// ErrLate says that what was waited for did not come.
var ErrLate = errors.New("it did not come")

// Await looks at the text on the screen whenever it changes until look is
// content, and returns what it saw last.
func (t *Terminal) Await(what string, within time.Duration, look func(text string) bool) (Picture, error) {
	return t.AwaitPicture(what, within, func(p Picture) bool { return look(p.Text()) })
}

// AwaitPicture is Await for looks at the whole picture.
func (t *Terminal) AwaitPicture(what string, within time.Duration, look func(Picture) bool) (Picture, error) {
	late := time.NewTimer(within)
	defer late.Stop()
	for ended := false; ; {
		p := t.Picture()
		if look(p) {
			return p, nil
		}
		if ended {
			return p, fmt.Errorf("%s: the program has ended", what)
		}
		select {
		case <-t.changed:
		case <-t.done:
			ended = true
		case <-late.C:
			return p, fmt.Errorf("%s: %w within %v", what, ErrLate, within)
		}
	}
}

// Last is when the newest byte of the program came.
func (t *Terminal) Last() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Rest waits until nothing has been drawn for a while, so that no half of a
// frame is taken for the whole.
func (t *Terminal) Rest(quiet time.Duration) {
	for {
		select {
		case <-t.changed:
		case <-t.done:
			return
		case <-time.After(quiet):
			return
		}
	}
}

// Picture is what the screen shows at one moment: its cells, row by row.
type Picture [][]uv.Cell

// Picture is what the screen shows now.
func (t *Terminal) Picture() Picture {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := make(Picture, t.screen.Height())
	for y := range p {
		for x := 0; x < t.screen.Width(); {
			cell := uv.EmptyCell
			if c := t.screen.CellAt(x, y); c != nil && c.Content != "" {
				cell = *c
			}
			p[y] = append(p[y], cell)
			x += max(cell.Width, 1)
		}
	}
	return p
}

// Text is the picture without its looks. Rows end where their text ends.
func (p Picture) Text() string {
	var b strings.Builder
	for _, row := range p {
		var line strings.Builder
		for _, c := range row {
			line.WriteString(c.Content)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
