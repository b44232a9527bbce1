package natsd

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
)

var goodName = regexp.MustCompile(`^(fe|op)\.[0-7][0-9a-hjkmnp-tv-z]{25}$`)

// What reaches the server is one line with our ticket and a name of ours,
// whatever a client sent, and the bytes behind it stay as they were.
func FuzzConnect(f *testing.F) {
	name := `"fe.01jz0000000000000000000000"`
	for _, seed := range []string{
		`CONNECT {"name":` + name + `}` + "\r\nPING\r\n",
		`connect	{"verbose":true,"pedantic":false,"protocol":1,"name":` + name + `}` + "\nPUB a 1\r\nx\r\n",
		`CONNECT {"name":` + name + `,"auth_token":"x","user":"core","pass":"y","jwt":"z","nkey":"n","sig":"s","account":"CORE"}` + "\r\n",
		`CONNECT {"AUTH_TOKEN":"x","auth_token":"y","Name":` + name + `}` + "\r\n",
		`CONNECT {"name":"fe.x","name":` + name + `}` + "\r\n",
		`CONNECT {"name":` + name + `} {}` + "\r\n",
		"CONNECT {\"name\":\"fe.01jz0000000000000000000000\\r\\nSUB > 1\"}\r\n",
		"CONNECT {}\r\n", "CONNECT \r\n", "CONNECT\r\n", "\r\n", "PING\r\n", "CONNECT [[[[\n", "CONNECT {\"protocol\":1e999}\n",
		"CONNECT {\"name\":\"\xff\"}\n", strings.Repeat("x", maxConnect+1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		line, rest, err := readLine(iotest.OneByteReader(bytes.NewReader(sent)), maxConnect)
		whole, tail, err2 := readLine(bytes.NewReader(sent), maxConnect)
		if !bytes.Equal(line, whole) || (err == nil) != (err2 == nil) {
			t.Fatalf("read bytewise %q %v, at once %q %v", line, err, whole, err2)
		}
		if err != nil {
			return
		}
		if len(rest) > 0 {
			t.Fatalf("read %q behind the line", rest)
		}
		if i := bytes.IndexByte(sent, '\n'); !bytes.HasPrefix(sent[i+1:], tail) {
			t.Fatalf("%q does not follow the line", tail)
		}
		args, role, id, err := parseConnect(line)
		if err != nil {
			var r refused
			if !errors.As(err, &r) || strings.ContainsAny(string(r), "'\r\n") {
				t.Fatalf("refused with %q", err)
			}
			return
		}
		out, err := args.encode("TICKET")
		if err != nil {
			t.Fatal(err)
		}
		body, ok := bytes.CutPrefix(out, []byte("CONNECT "))
		if !ok || len(out) > maxConnect || bytes.Count(out, []byte("\n")) != 1 || !bytes.HasSuffix(out, []byte("\r\n")) {
			t.Fatalf("not one line: %q", out)
		}
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if got["auth_token"] != "TICKET" || got["name"] != role+"."+id || !goodName.MatchString(role+"."+id) {
			t.Fatalf("the server would get %q", out)
		}
		for k := range got {
			switch k {
			case "auth_token", "name", "verbose", "pedantic", "echo", "headers", "no_responders", "protocol":
			default:
				t.Fatalf("%q passed", k)
			}
		}
	})
}

func TestConnectReaderStopsAtItsLimit(t *testing.T) {
	for n, want := range map[int]bool{maxConnect - 1: true, maxConnect: false} {
		_, _, err := readLine(strings.NewReader(strings.Repeat("x", n)+"\n"), maxConnect)
		if (err == nil) != want {
			t.Errorf("%d bytes before the line end: %v", n, err)
		}
	}
}

// A connection of another user is closed unheard; the next one is accepted.
func TestListenerHearsOnlyItsUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{u, os.Geteuid() + 1}
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("another user was sent %d bytes", n)
	}
	_ = l.Close()
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepted another user: %v", err)
	}
}

func TestAgentListenerHearsItsUser(t *testing.T) {
	s, err := Start(Options{StateDir: t.TempDir(), RuntimeDir: shortDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := s.ListenAgents()
	if err != nil {
		t.Fatal(err)
	}
	path := l.Addr().String()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v %v", info, err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	p, err := PeerOf(served)
	if err != nil || p.UID != os.Geteuid() || p.PID != os.Getpid() || p.Start == 0 {
		t.Errorf("peer %+v %v", p, err)
	}
	s.Close()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stayed: %v", err)
	}
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "natsd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
