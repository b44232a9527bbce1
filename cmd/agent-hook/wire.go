package main

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// The line protocol of agent.sock, as far as a pipe needs it. events.HookCall,
// HookLine and HookReceipt are the full description; tests here compare.

// maxLine bounds the line to the core, as the core does.
const maxLine = 24 << 20

// maxReply bounds a line from the core.
const maxReply = 64 << 20

// call is what is said to the core.
type call struct {
	operation, secret string
	agent, event      string
	stdin             []byte
	pid, ppid         int
	cwd               string
	timeout           float64
	pane              string
}

// line is the call as JSON, with its line break.
func (c call) line() []byte {
	b := make([]byte, 0, 512+len(c.stdin)+len(c.stdin)/8)
	b = append(b, `{"v":1,"operation":`...)
	b = appendQuoted(b, c.operation)
	b = append(b, `,"secret":`...)
	b = appendQuoted(b, c.secret)
	b = append(b, `,"agent":`...)
	b = appendQuoted(b, c.agent)
	b = append(b, `,"event":`...)
	b = appendQuoted(b, c.event)
	if utf8.Valid(c.stdin) {
		b = append(b, `,"stdin":`...)
		b = appendQuoted(b, string(c.stdin))
	} else {
		b = append(b, `,"stdin_b64":"`...)
		b = appendBase64(b, c.stdin)
		b = append(b, '"')
	}
	b = append(b, `,"pid":`...)
	b = strconv.AppendInt(b, int64(c.pid), 10)
	b = append(b, `,"ppid":`...)
	b = strconv.AppendInt(b, int64(c.ppid), 10)
	b = append(b, `,"cwd":`...)
	b = appendQuoted(b, c.cwd)
	if c.timeout > 0 {
		b = append(b, `,"timeout":`...)
		b = strconv.AppendFloat(b, c.timeout, 'f', 3, 64)
	}
	if c.pane != "" {
		b = append(b, `,"pane":`...)
		b = appendQuoted(b, c.pane)
	}
	return append(b, "}\n"...)
}

// pane names the terminal's pane that the agent stands in, "" for none. It is the twin of
// events.Pane.String: this program links nothing of events, and what one writes the
// other's ParsePane reads. What the environment says wrongly is the core's to drop.
func pane(getenv func(string) string) string {
	if id, rest := getenv("TMUX_PANE"), getenv("TMUX"); id != "" && rest != "" {
		socket := rest // as in "/tmp/tmux-1000/default,4711,0"
		for range 2 {
			if i := strings.LastIndexByte(socket, ','); i >= 0 {
				socket = socket[:i]
			}
		}
		return "tmux:" + id + ":" + socket
	}
	if id, session := getenv("ZELLIJ_PANE_ID"), getenv("ZELLIJ_SESSION_NAME"); id != "" && session != "" {
		return "zellij:" + id + ":" + session
	}
	return ""
}

const hex = "0123456789abcdef"

// appendQuoted writes a JSON string. Bytes that are no UTF-8 become U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

func quote(s string) string { return string(appendQuoted(nil, s)) }

func appendBase64(b, data []byte) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for ; len(data) > 0; data = data[min(3, len(data)):] {
		var group [3]byte
		n := copy(group[:], data)
		bits := uint(group[0])<<16 | uint(group[1])<<8 | uint(group[2])
		for i := range 4 {
			if i > n {
				b = append(b, '=')
			} else {
				b = append(b, alphabet[bits>>(18-6*i)&63])
			}
		}
	}
	return b
}

// identity makes the operation's id, a ULID in lower case, and its secret.
func identity(at time.Time) (id, secret string, err error) {
	var r [26]byte
	if err := random(r[:]); err != nil {
		return "", "", err
	}
	s := make([]byte, 0, 32)
	for _, b := range r[10:] {
		s = append(s, hex[b>>4], hex[b&15])
	}
	return ulid(uint64(at.UnixMilli()), [10]byte(r[:10])), string(s), nil
}

// ulid writes 48 bits of milliseconds and 80 bits of entropy, five at a time.
func ulid(ms uint64, entropy [10]byte) string {
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	high := ms<<16 | uint64(entropy[0])<<8 | uint64(entropy[1])
	var low uint64
	for _, b := range entropy[2:] {
		low = low<<8 | uint64(b)
	}
	var s [26]byte
	for i := 25; i >= 0; i-- {
		s[i] = alphabet[low&31]
		low = low>>5 | high<<59
		high >>= 5
	}
	return string(s[:])
}

// random reads the kernel's randomness. The device is the same on Linux and
// macOS, and costs three calls; package crypto/rand costs a tenth of our time.
func random(b []byte) error {
	fd, err := syscall.Open("/dev/urandom", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	for len(b) > 0 {
		n, err := syscall.Read(fd, b)
		if again(err) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		b = b[n:]
	}
	return nil
}

// again reports whether a call should simply be made once more. Agents may
// hand over descriptors that do not block.
func again(err error) bool {
	if errors.Is(err, syscall.EAGAIN) {
		time.Sleep(time.Millisecond)
		return true
	}
	return errors.Is(err, syscall.EINTR)
}

// readAll reads to the end or the first error, at most limit bytes; false when
// there is more.
func readAll(fd, limit int) ([]byte, bool) {
	b := make([]byte, 0, 4<<10)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := syscall.Read(fd, b[len(b):cap(b)])
		if again(err) {
			continue
		}
		if err != nil || n <= 0 {
			return b, true
		}
		if b = b[:len(b)+n]; len(b) > limit {
			return nil, false
		}
	}
}

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Write(fd, b)
		if again(err) {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// reader reads lines from a socket.
type reader struct {
	fd  int
	buf []byte
}

// line returns the next line without its break; false when the connection
// ended or the line is too long.
func (r *reader) line() ([]byte, bool) {
	seen := 0
	for {
		for i := seen; i < len(r.buf); i++ {
			if r.buf[i] == '\n' {
				line := r.buf[:i]
				r.buf = r.buf[i+1:]
				return line, true
			}
		}
		seen = len(r.buf)
		if seen > maxReply {
			return nil, false
		}
		if seen == cap(r.buf) {
			r.buf = append(make([]byte, 0, 2*seen+1024), r.buf...)
		}
		n, err := syscall.Read(r.fd, r.buf[seen:cap(r.buf)])
		if again(err) {
			continue
		}
		if err != nil || n <= 0 {
			return nil, false
		}
		r.buf = r.buf[:seen+n]
	}
}
