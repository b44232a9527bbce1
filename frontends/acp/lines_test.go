package acp_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/frontends/acp"
)

// piece is [acp.Piece] with its bytes kept.
type piece struct {
	Raw     string
	Message bool
}

func pieces(t testing.TB, src io.Reader, limit int) ([]piece, error) {
	t.Helper()
	lines := acp.NewLines(src, limit)
	var all []piece
	for {
		p, err := lines.Next()
		if err != nil {
			if _, again := lines.Next(); !errors.Is(again, err) {
				t.Errorf("after the error %v comes %v", err, again)
			}
			return all, err
		}
		if len(p.Raw) == 0 || len(p.Raw) > limit {
			t.Errorf("a piece of %d bytes, limit %d", len(p.Raw), limit)
		}
		all = append(all, piece{string(p.Raw), p.Message})
	}
}

func TestLines(t *testing.T) {
	tests := []struct {
		name  string
		limit int
		in    string
		want  []piece
	}{
		{"nothing", 10, "", nil},
		{"one message", 10, "{}\n", []piece{{"{}\n", true}}},
		{"two", 10, "{}\n[]\n", []piece{{"{}\n", true}, {"[]\n", true}}},
		{"no last line end", 10, "{}\n[]", []piece{{"{}\n", true}, {"[]", false}}},
		{"line ends of two characters", 10, "{}\r\n[]\r\n", []piece{{"{}\r\n", true}, {"[]\r\n", true}}},
		{"empty lines", 10, "\n\n\r\n", []piece{{"\n", true}, {"\n", true}, {"\r\n", true}}},
		{"zero bytes and no UTF-8", 10, "\x00\xff\n\x00", []piece{{"\x00\xff\n", true}, {"\x00", false}}},
		{"at the limit", 4, "abc\nd\n", []piece{{"abc\n", true}, {"d\n", true}}},
		{"one over the limit", 4, "abcd\nd\n", []piece{{"abcd", false}, {"\n", false}, {"d\n", true}}},
		{"far over the limit", 4, "abcdefghij\nk\n", []piece{{"abcd", false}, {"efgh", false}, {"ij\n", false}, {"k\n", true}}},
		{"over the limit, no end", 4, "abcdef", []piece{{"abcd", false}, {"ef", false}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := pieces(t, strings.NewReader(test.in), test.limit)
			if d := cmp.Diff(test.want, got); d != "" || !errors.Is(err, io.EOF) {
				t.Errorf("error %v, pieces (-want +got):\n%s", err, d)
			}
			// The limit itself never depends on how the bytes arrive.
			slow, _ := pieces(t, iotest.OneByteReader(strings.NewReader(test.in)), test.limit)
			if d := cmp.Diff(messages(test.want), messages(slow)); d != "" {
				t.Errorf("messages, byte by byte (-want +got):\n%s", d)
			}
		})
	}
}

func messages(all []piece) (m []string) {
	for _, p := range all {
		if p.Message {
			m = append(m, p.Raw)
		}
	}
	return m
}

func TestLinesGivesWhatCameBeforeAnError(t *testing.T) {
	broken := errors.New("broken")
	got, err := pieces(t, io.MultiReader(strings.NewReader("{}\n["), iotest.ErrReader(broken)), 10)
	if d := cmp.Diff([]piece{{"{}\n", true}, {"[", false}}, got); d != "" || !errors.Is(err, broken) {
		t.Errorf("error %v, pieces (-want +got):\n%s", err, d)
	}
	if _, err := pieces(t, emptyReader{}, 10); err == nil {
		t.Error("a reader without an end and without bytes was read for ever")
	}
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }

func TestLinesGivesLongBuffersBack(t *testing.T) {
	long := strings.Repeat("a", 8<<20) + "\n"
	src := strings.NewReader(long + strings.Repeat("{}\n", 10))
	lines := acp.NewLines(src, acp.MessageLimit)
	first, err := lines.Next()
	if err != nil || !first.Message || string(first.Raw) != long {
		t.Fatalf("first piece of %d bytes, message %v, error %v", len(first.Raw), first.Message, err)
	}
	for range 10 {
		if p, err := lines.Next(); err != nil || string(p.Raw) != "{}\n" || cap(p.Raw) > 9<<20 {
			t.Fatalf("piece %q, error %v", p.Raw, err)
		}
	}
}

func TestRelayTellsWhichSideFailed(t *testing.T) {
	broken := errors.New("broken")
	err := acp.Relay(io.Discard, io.MultiReader(strings.NewReader("{}\n"), iotest.ErrReader(broken)))
	if source := (*acp.SourceError)(nil); !errors.As(err, &source) || !errors.Is(err, broken) {
		t.Errorf("a source that failed: %v", err)
	}
	err = acp.Relay(failingWriter{broken}, strings.NewReader("{}\n"))
	if sink := (*acp.SinkError)(nil); !errors.As(err, &sink) || !errors.Is(err, broken) {
		t.Errorf("a sink that failed: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestRelayDoesNotHoldAMessageBack writes one message into a pipe that stays
// open, behind it the beginning of another.
func TestRelayDoesNotHoldAMessageBack(t *testing.T) {
	src, in := io.Pipe()
	out, dst := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- acp.Relay(dst, src)
		dst.Close()
	}()
	if _, err := io.WriteString(in, "{\"id\":1}\n{\"id\""); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 9)
	if _, err := io.ReadFull(out, got); err != nil || string(got) != "{\"id\":1}\n" {
		t.Fatalf("got %q, %v", got, err)
	}
	go func() { in.Close() }()
	rest, err := io.ReadAll(out)
	if err != nil || string(rest) != "{\"id\"" {
		t.Errorf("rest %q, %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// FuzzLines checks that the pieces of any stream, cut in any way, are the
// stream, and that messages do not depend on the cutting.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{}\n[]\r\n\n"), uint16(3), uint64(1))
	f.Add([]byte("no end"), uint16(1), uint64(2))
	f.Add(bytes.Repeat([]byte("abcdefg\n"), 300), uint16(7), uint64(3))
	f.Add([]byte("\x00\xff\n\n\n\r"), uint16(2), uint64(4))
	f.Fuzz(func(t *testing.T, stream []byte, size uint16, seed uint64) {
		limit := int(size) + 1
		whole, _ := pieces(t, bytes.NewReader(stream), limit)
		cut, _ := pieces(t, &cutting{stream, rand.New(rand.NewPCG(seed, 0))}, limit)
		for name, all := range map[string][]piece{"whole": whole, "cut": cut} {
			var joined strings.Builder
			for _, p := range all {
				joined.WriteString(p.Raw)
				if p.Message && (!strings.HasSuffix(p.Raw, "\n") || strings.Count(p.Raw, "\n") != 1) {
					t.Errorf("%s: %q is not one line", name, p.Raw)
				}
			}
			if joined.String() != string(stream) {
				t.Errorf("%s: the pieces are not the stream", name)
			}
		}
		if d := cmp.Diff(messages(whole), messages(cut)); d != "" {
			t.Errorf("messages depend on how the bytes arrive (-whole +cut):\n%s", d)
		}
		var out bytes.Buffer
		if err := acp.Relay(&out, bytes.NewReader(stream)); err != nil || !bytes.Equal(out.Bytes(), stream) {
			t.Errorf("relayed %d of %d bytes, %v", out.Len(), len(stream), err)
		}
	})
}

// cutting reads in pieces of chance lengths.
type cutting struct {
	rest []byte
	dice *rand.Rand
}

func (c *cutting) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+c.dice.IntN(20))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
