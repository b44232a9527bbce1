package acp_test

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/frontends/acp"
)

// BenchmarkThroughput carries messages of 1 KB through two pipes, in turn by
// the relay and by a loop that only copies, and reports the share of the
// loop's messages a second that the relay reaches. The budget is 0.5.
func BenchmarkThroughput(b *testing.B) {
	for _, size := range []int{100, 1000, 100_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			message := append(bytes.Repeat([]byte("x"), size-1), '\n')
			var relay, bare time.Duration
			for b.Loop() {
				relay += carry(b, message, acp.Relay)
				bare += carry(b, message, bareCopy)
			}
			b.ReportMetric(bare.Seconds()/relay.Seconds(), "of-bare")
			b.ReportMetric(float64(carried/size*b.N)/relay.Seconds(), "messages/s")
		})
	}
}

// BenchmarkLatency sends one message at a time and waits for it. The budget is
// 0.1 ms more than the bare loop.
func BenchmarkLatency(b *testing.B) {
	for name, c := range copiers {
		b.Run(name, func(b *testing.B) {
			in, out := connect(b, c)
			message := append(bytes.Repeat([]byte("x"), 999), '\n')
			got := make([]byte, len(message))
			for b.Loop() {
				if _, err := in.Write(message); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(out, got); err != nil {
					b.Fatal(err)
				}
			}
			in.Close()
		})
	}
}

type copier func(dst io.Writer, src io.Reader) error

var copiers = map[string]copier{"relay": acp.Relay, "bare": bareCopy}

// bareCopy reads and writes and does nothing else; the wrappers keep io.Copy
// from letting the kernel do it.
func bareCopy(dst io.Writer, src io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, make([]byte, 64<<10))
	return err
}

// carried is how many bytes one run carries.
const carried = 64_000_000

func carry(b *testing.B, message []byte, c copier) time.Duration {
	in, out := connect(b, c)
	start := time.Now()
	go func() {
		for range carried / len(message) {
			if _, err := in.Write(message); err != nil {
				b.Error(err)
				break
			}
		}
		in.Close()
	}()
	n, err := io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{out})
	if err != nil || n != carried {
		b.Fatalf("carried %d bytes, %v", n, err)
	}
	return time.Since(start)
}

// connect puts a copier between two pipes.
func connect(b *testing.B, c copier) (in, out *os.File) {
	b.Helper()
	src, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	out, dst, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		if err := c(dst, src); err != nil {
			b.Error(err)
		}
		src.Close()
		dst.Close()
	}()
	b.Cleanup(func() { out.Close() })
	return in, out
}
