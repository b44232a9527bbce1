package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"
)

// Bus is the desktop of Linux: the service org.freedesktop.Notifications on the
// user's session bus. It connects when there is something to show, and anew when the
// bus was gone.
type Bus struct {
	// Dial connects to the bus; see [DialBus].
	Dial func(ctx context.Context) (net.Conn, error)

	mu   sync.Mutex
	conn *busConn
}

// appName is who shows the notifications.
const appName = "Fermata"

const (
	notifications     = "org.freedesktop.Notifications"
	notificationsPath = "/org/freedesktop/Notifications"
)

// Show implements [Desktop].
func (b *Bus) Show(ctx context.Context, title, body string) (id uint32, err error) {
	const never = int32(0) // it stays until the question has ended
	err = b.call(ctx, func(o dbus.BusObject) error {
		return o.CallWithContext(ctx, notifications+".Notify", 0, appName, uint32(0), "", title, body,
			[]string{}, map[string]dbus.Variant{"urgency": dbus.MakeVariant(byte(1))}, never).Store(&id)
	})
	return id, err
}

// Close implements [Desktop].
func (b *Bus) Close(ctx context.Context, id uint32) error {
	return b.call(ctx, func(o dbus.BusObject) error {
		return o.CallWithContext(ctx, notifications+".CloseNotification", dbus.FlagNoAutoStart, id).Err
	})
}

// Leave gives the connection back.
func (b *Bus) Leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		b.conn.close()
		b.conn = nil
	}
}

// call does one thing on the bus. A bus that does not answer before ctx ends is left.
func (b *Bus) call(ctx context.Context, do func(dbus.BusObject) error) error {
	conn, err := b.connected(ctx)
	if err != nil {
		return err
	}
	// The library waits for the other side while it writes, whatever ctx says.
	stop := context.AfterFunc(ctx, func() { _ = conn.raw.Close() })
	err = do(conn.Object(notifications, notificationsPath))
	if stop() {
		return err
	}
	b.drop(conn)
	if err == nil {
		return nil // it was done all the same, just before
	}
	return fmt.Errorf("the session bus did not answer: %w", context.Cause(ctx))
}

// drop leaves a connection.
func (b *Bus) drop(conn *busConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	conn.close()
	if b.conn == conn {
		b.conn = nil
	}
}

// connected is the connection, made where there is none that lives.
func (b *Bus) connected(ctx context.Context) (*busConn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil && b.conn.Connected() {
		return b.conn, nil
	}
	if b.conn != nil {
		b.conn.close()
		b.conn = nil
	}
	raw, err := b.Dial(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := greet(ctx, raw)
	if err != nil {
		return nil, err
	}
	b.conn = conn
	return conn, nil
}

// busConn is a connection and the socket beneath it, which ends every wait.
type busConn struct {
	*dbus.Conn
	raw io.Closer
}

func (c *busConn) close() {
	_ = c.raw.Close() // first: the library's own Close waits for a write under way
	_ = c.Conn.Close()
}

// greet introduces this process to the bus.
func greet(ctx context.Context, raw net.Conn) (*busConn, error) {
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	conn, err := dbus.NewConn(raw)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	c := &busConn{conn, raw}
	if err = conn.Auth(nil); err == nil {
		err = conn.Hello()
	}
	if !stop() {
		err = fmt.Errorf("the session bus did not answer: %w", context.Cause(ctx))
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// errNoBus is why there are no notifications: there is no desktop session.
var errNoBus = errors.New("there is no session bus")

// DialBus finds the session bus in the environment and makes what connects to it. It
// never starts one. Only buses on Unix sockets count.
func DialBus(getenv func(string) string) (func(ctx context.Context) (net.Conn, error), error) {
	socket := ""
	if dir := getenv("XDG_RUNTIME_DIR"); dir != "" {
		if _, err := os.Stat(dir + "/bus"); err == nil {
			socket = dir + "/bus"
		}
	}
	if address := getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" {
		socket = unixSocket(address)
	}
	if socket == "" {
		return nil, errNoBus
	}
	return func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", socket) }, nil
}

// unixSocket is the first Unix socket of a bus address, "" for none.
func unixSocket(address string) string {
	for one := range strings.SplitSeq(address, ";") {
		rest, isUnix := strings.CutPrefix(one, "unix:")
		if !isUnix {
			continue
		}
		for pair := range strings.SplitSeq(rest, ",") {
			key, value, _ := strings.Cut(pair, "=")
			value, err := url.PathUnescape(value)
			switch {
			case err != nil || value == "":
			case key == "path":
				return value
			case key == "abstract":
				return "@" + value
			}
		}
	}
	return ""
}

// Script is the desktop of macOS, by way of osascript. What it shows cannot be taken
// back.
type Script struct{}

// Show implements [Desktop].
func (Script) Show(ctx context.Context, title, body string) (uint32, error) {
	// The texts are arguments, so that nothing in them is read as a script. The
	// body, which is ours, comes first: it is never taken for an option.
	out, err := exec.CommandContext(ctx, "osascript", "-e", "on run argv",
		"-e", "display notification (item 1 of argv) with title (item 2 of argv)", "-e", "end run", body, title).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("osascript: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return 0, nil
}

// Close implements [Desktop].
func (Script) Close(context.Context, uint32) error { return nil }
