package notify

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// peer is a session bus with a desktop on it, on the other end of a pipe.
type peer struct {
	net.Conn
	in *bufio.Reader
}

// greeted takes the greeting of a client, as the specification has it.
func (p *peer) greeted() error {
	if zero, err := p.in.ReadByte(); err != nil || zero != 0 {
		return errors.New("no zero byte")
	}
	for _, reply := range []string{"REJECTED EXTERNAL\r\n", "OK 0123456789abcdef\r\n", ""} {
		if _, err := p.in.ReadString('\n'); err != nil {
			return err
		}
		if _, err := p.Write([]byte(reply)); err != nil {
			return err
		}
	}
	return nil
}

// serve answers calls with what answer says, until the other side leaves.
func (p *peer) serve(answer func(member string, body []any) any) {
	if p.greeted() != nil {
		return
	}
	for p.served(answer) == nil {
		continue
	}
}

// served answers one call.
func (p *peer) served(answer func(member string, body []any) any) error {
	m, err := dbus.DecodeMessage(p.in)
	if err != nil {
		return err
	}
	r := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(m.Serial())}}
	member := m.Headers[dbus.FieldMember].Value().(string)
	v := any(":1.7")
	if member != "Hello" {
		v = answer(member, m.Body)
	}
	if v != nil {
		r.Body = []any{v}
		r.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(v))
	}
	// A message needs a serial of its own; the fourth field of the head is it.
	var raw bytes.Buffer
	if err := r.EncodeTo(&raw, binary.LittleEndian); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(raw.Bytes()[8:], 1)
	_, err = p.Write(raw.Bytes())
	return err
}

// bus makes a Bus whose other end is handled by serve.
func bus(serve func(*peer)) *Bus {
	return &Bus{Dial: func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			serve(&peer{theirs, bufio.NewReader(theirs)})
		}()
		return ours, nil
	}}
}

func TestTheBusShowsAndTakesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []any
		dialled := 0
		b := bus(func(p *peer) {
			dialled++
			p.serve(func(member string, body []any) any {
				calls = append(calls, member, body)
				if member == "Notify" {
					return uint32(41 + dialled)
				}
				return nil
			})
		})
		id, err := b.Show(t.Context(), "Bash · claude", "Open it.")
		if err != nil || id != 42 {
			t.Fatalf("%d, %v", id, err)
		}
		if err := b.Close(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := []any{
			"Notify",
			[]any{"Fermata", uint32(0), "", "Bash · claude", "Open it.", []string{}, map[string]dbus.Variant{"urgency": dbus.MakeVariant(byte(1))}, int32(0)},
			"CloseNotification",
			[]any{uint32(42)},
		}
		if diff := cmp.Diff(want, calls, cmp.Comparer(func(x, y dbus.Variant) bool { return x.String() == y.String() })); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		b.conn.raw.Close() // the bus is gone, and there again
		synctest.Wait()
		if id, err := b.Show(t.Context(), "x", "y"); err != nil || id != 43 {
			t.Errorf("after the bus was gone: %d, %v", id, err)
		}
		b.Leave()
	})
}

func TestWhatTheBusDidJustBeforeTheEndIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bus(func(p *peer) { p.serve(func(string, []any) any { return nil }) })
		ctx, cancel := context.WithCancel(t.Context())
		if err := b.call(ctx, func(dbus.BusObject) error { cancel(); synctest.Wait(); return nil }); err != nil {
			t.Errorf("what was done counts as not done: %v", err)
		}
		if err := b.Close(t.Context(), 7); err != nil {
			t.Errorf("it cannot be taken back: %v", err)
		}
		b.Leave()
	})
}

func TestABusThatHangsIsLeft(t *testing.T) {
	for name, hang := range map[string]func(*peer){
		"at the greeting":        func(p *peer) { <-time.After(time.Hour) },
		"behind the greeting":    func(p *peer) { _ = p.greeted(); <-time.After(time.Hour) },
		"while it reads":         func(p *peer) { _ = p.greeted(); _, _ = p.in.Discard(20); <-time.After(time.Hour) },
		"while it is told":       func(p *peer) { _ = p.greeted(); _ = p.served(nil); <-time.After(time.Hour) },
		"with its answer":        func(p *peer) { p.serve(func(string, []any) any { <-time.After(time.Hour); return uint32(1) }) },
		"by leaving at once":     func(p *peer) {},
		"by speaking in riddles": func(p *peer) { _, _ = p.in.ReadByte(); _, _ = p.Write([]byte("HTTP/1.1 200 OK\r\n")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bus(hang)
				ctx, cancel := context.WithTimeout(t.Context(), showing)
				defer cancel()
				before := time.Now()
				if _, err := b.Show(ctx, "x", "y"); err == nil {
					t.Error("it was shown")
				}
				if took := time.Since(before); took > showing {
					t.Errorf("it took %s", took)
				}
				b.Leave()
				<-time.After(2 * time.Hour) // whatever still waits is the peer's
			})
		})
	}
}

func TestNoBusIsSaidOnceAndCallsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var log bytes.Buffer
		o := w.options()
		o.Desktop = &Bus{Dial: func(context.Context) (net.Conn, error) { return nil, os.ErrNotExist }}
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		stop := run(t, o)
		for _, id := range []string{"a", "b", "c"} {
			w.ask(events.ID(id))
			<-time.After(2 * events.RingAfter)
		}
		stop()
		if n := strings.Count(log.String(), "no notification could be shown"); n != 1 {
			t.Errorf("said %d times:\n%s", n, log.String())
		}
	})
}

func TestDialBusKnowsTheAddresses(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "bus"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, env := range map[string]map[string]string{
		"the runtime directory": {"XDG_RUNTIME_DIR": dir},
		"an address":            {"DBUS_SESSION_BUS_ADDRESS": "unix:path=" + dir + "/bus,guid=0"},
		"escapes":               {"DBUS_SESSION_BUS_ADDRESS": "unix:path=" + strings.Replace(dir, "T", "%54", 1) + "/%62us"},
		"the first of several":  {"DBUS_SESSION_BUS_ADDRESS": "tcp:host=x;unix:guid=1,path=" + dir + "/bus", "XDG_RUNTIME_DIR": "/none"},
	} {
		dial, err := DialBus(func(k string) string { return env[k] })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c, err := dial(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.Close()
	}
	for _, env := range []map[string]string{{}, {"XDG_RUNTIME_DIR": t.TempDir()}, {"DBUS_SESSION_BUS_ADDRESS": "autolaunch:", "XDG_RUNTIME_DIR": dir}, {"DBUS_SESSION_BUS_ADDRESS": "unixexec:path=/bin/sh"}} {
		if _, err := DialBus(func(k string) string { return env[k] }); !errors.Is(err, errNoBus) {
			t.Errorf("%v: %v", env, err)
		}
	}
	if got := unixSocket("unix:abstract=/tmp/x"); got != "@/tmp/x" {
		t.Error(got)
	}
}

func FuzzBusAddress(f *testing.F) {
	f.Add("unix:path=/run/user/1/bus,guid=0;unix:abstract=x")
	f.Add("unix:path=%zz")
	f.Fuzz(func(t *testing.T, address string) {
		if s := unixSocket(address); s != "" && !strings.Contains(address, "unix:") {
			t.Errorf("%q from %q", s, address)
		}
	})
}

// osascript stands in for the program of macOS and writes down its arguments.
func TestScriptHandsTextsOnAsArguments(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + dir + "/args\n"
	if err := os.WriteFile(dir+"/osascript", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	title := `-e "quoted" & do shell script`
	if _, err := (Script{}).Show(t.Context(), title, "Open it."); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dir + "/args")
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if err != nil || len(lines) != 8 || lines[6] != "Open it." || lines[7] != title {
		t.Errorf("%v, %q", err, lines)
	}
	if err := os.WriteFile(dir+"/osascript", []byte("#!/bin/sh\necho not allowed\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := (Script{}).Show(t.Context(), "x", "y"); err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Error(err)
	}
}
