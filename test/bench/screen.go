package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/test/show/terminal"
)

// watched is a program in a pseudo-terminal whose frames are timed.
type watched struct {
	*terminal.Terminal
	mu    sync.Mutex
	bytes bytes.Buffer // what it wrote since the last look
}

// The window that is measured, and the silence that ends a frame: two of the
// library's own frames, of which sixty fit into a second.
const (
	columns, rows = 80, 24
	frameEnds     = 34 * time.Millisecond
	frameCame     = 20 * time.Second
)

func watch(cmd *exec.Cmd) (w *watched, err error) {
	w = &watched{}
	w.Terminal, err = terminal.Open(terminal.Options{Columns: columns, Rows: rows, Heard: w.hear}, cmd)
	return w, err
}

func (w *watched) hear(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes.Write(b)
}

// written is what came since it was last asked.
func (w *watched) written() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := bytes.Clone(w.bytes.Bytes())
	w.bytes.Reset()
	return b
}

// frame does something and times it to the last byte of the frame that shows it.
// It returns that frame's bytes too.
func (w *watched) frame(do func() error, shown func(text string) bool) (time.Duration, []byte, error) {
	w.written()
	began := time.Now()
	if err := do(); err != nil {
		return 0, nil, err
	}
	p, err := w.Await("a frame", frameCame, shown)
	if err != nil {
		return 0, nil, fmt.Errorf("%w; the screen:\n%s", err, p.Text())
	}
	w.Rest(frameEnds)
	return w.Last().Sub(began), w.written(), nil
}

// bare is a program that writes the bytes of a frame whenever a key is pressed,
// and does nothing else: what a terminal costs.
type bare struct {
	file string
	*watched
}

// openBare starts it in a pseudo-terminal. Its frames are those that are put into
// its file.
func openBare(ctx context.Context, b *bench) (*bare, error) {
	dir, err := b.temp()
	if err != nil {
		return nil, err
	}
	f := &bare{file: filepath.Join(dir, "frame")}
	if err := os.WriteFile(f.file, nil, 0o600); err != nil {
		return nil, err
	}
	f.watched, err = watch(part{role: "frame", dir: f.file}.command(ctx, b))
	if err != nil {
		return nil, err
	}
	_, err = f.Await("the bare program", frameCame, func(text string) bool { return strings.Contains(text, "ready") })
	return f, err
}

// time is one frame of these bytes, from the key to its last byte.
func (f *bare) time(frame []byte) (time.Duration, error) {
	if err := os.WriteFile(f.file, frame, 0o600); err != nil {
		return 0, err
	}
	f.written()
	began := time.Now()
	if err := f.Press("k"); err != nil {
		return 0, err
	}
	for n := 0; n < len(frame); {
		if time.Since(began) > frameCame {
			return 0, fmt.Errorf("the bare program wrote %d bytes of %d", n, len(frame))
		}
		f.Rest(frameEnds)
		n += len(f.written())
	}
	return f.Last().Sub(began), nil
}

// drawFrames is the bare program: the file's bytes at each key.
func (p part) drawFrames() error {
	if _, err := term.MakeRaw(os.Stdin.Fd()); err != nil {
		return err
	}
	fmt.Print("ready")
	key := make([]byte, 1)
	for {
		if _, err := io.ReadFull(os.Stdin, key); err != nil {
			return err
		}
		frame, err := os.ReadFile(p.dir)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(frame); err != nil {
			return err
		}
	}
}

// waiting is a call that somebody holds open on agent.sock.
type waiting struct{ conn net.Conn }

// propose makes a call, and returns when the core has it in its log.
func propose(socket, command string) (waiting, error) {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return waiting{}, err
	}
	stdin, err := json.Marshal(map[string]any{
		"session_id": "bench", "agent": "generic", "cwd": "/",
		"tool": map[string]any{"name": "shell", "kind": "shell", "args": json.RawMessage(args)},
	})
	if err != nil {
		return waiting{}, err
	}
	call, err := json.Marshal(events.HookCall{
		V: 1, Operation: newID(), Secret: "a secret of the asker", Agent: "generic", Event: "before_tool_call",
		Stdin: string(stdin), PID: os.Getpid(), PPID: os.Getppid(), Cwd: "/",
	})
	if err != nil {
		return waiting{}, err
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return waiting{}, err
	}
	if _, err = conn.Write(append(call, '\n')); err == nil {
		_, err = bufio.NewReader(conn).ReadString('\n')
	}
	return waiting{conn}, err
}
