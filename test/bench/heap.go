package main

import (
	"context"
	"fmt"
	"iter"
	"net"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/agents/generic"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// open makes n calls that are left waiting for their answer.
func (h *house) open(ctx context.Context, n int) error {
	want := h.asked() + n
	err := each(n, 64, func() error { return h.eng.Propose(ctx, h.proposal()) })
	if err != nil {
		return err
	}
	return h.waitAsked(ctx, want)
}

func (h *house) waitAsked(ctx context.Context, n int) error {
	for began := time.Now(); h.asked() < n; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute || ctx.Err() != nil {
			return fmt.Errorf("%d of %d questions are open", h.asked(), n)
		}
	}
	return nil
}

// asked counts the open questions.
func (h *house) asked() int {
	n := 0
	for _, s := range h.eng.Sessions(events.DoorAll) {
		n += s.Open
	}
	return n
}

// letGo is how long the server keeps what it has cached.
const letGo = 12 * time.Second

// live is what the heap and the stacks hold at rest, bytes: after a wait, and
// collected until that finds nothing more. By then a snapshot that was being
// written is done and stacks have shrunk.
func live(ctx context.Context, after time.Duration) (heap, stacks uint64) {
	pause(ctx, after)
	for range 20 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		settled := heap > 0 && m.HeapAlloc+m.StackInuse > (heap+stacks)/1000*999
		heap, stacks = m.HeapAlloc, m.StackInuse
		if settled {
			break
		}
		pause(ctx, time.Second)
	}
	return heap, stacks
}

// nothing is a log that keeps nothing: what is measured on it is the core's own.
type nothing struct{ last atomic.Uint64 }

func (n *nothing) Append(context.Context, journal.Entry) (uint64, error) { return n.last.Add(1), nil }

func (n *nothing) Read(context.Context, string) iter.Seq2[journal.Record, error] {
	return func(func(journal.Record, error) bool) {}
}

func (n *nothing) Scan(context.Context, uint64) iter.Seq2[journal.Record, error] {
	return func(func(journal.Record, error) bool) {}
}
func (n *nothing) Usage(context.Context) (journal.Usage, error) { return journal.Usage{}, nil }

// heapOpen measures open questions whose askers are not connected: the core's
// own share, and with the server and its log in the same heap.
func heapOpen(ctx context.Context, b *bench) ([]row, error) {
	const n = 100_000
	own, renew, err := perQuestion(ctx, b, n, &nothing{})
	if err != nil {
		return nil, err
	}
	whole, _, err := perQuestion(ctx, b, n, nil)
	if err != nil {
		return nil, err
	}
	return []row{
		{
			What: "open question, no connection, 100,000 open", Figure: fmt.Sprintf("%.0f B", own), Budget: "≤ 2,048 B heap",
			Met: yes(own <= 2048), Note: "the core's own, of it 512 B are the arguments",
		},
		{
			What: "the same, with the server's heap", Figure: fmt.Sprintf("%.0f B", whole), Budget: "≤ 2,048 B heap", Met: yes(whole <= 2048),
		},
		{
			What: "renew with 100,000 open", Figure: micros(float64(renew)), Budget: "≤ 1 ms", Met: yes(renew <= time.Millisecond),
			Note: "holds the engine's lock",
		},
	}, nil
}

func perQuestion(ctx context.Context, b *bench, n int, log engine.Log) (bytes float64, renew time.Duration, err error) {
	h, err := openHouse(ctx, b, houseOptions{mode: "process", rule: askRule, log: log})
	if err != nil {
		return 0, 0, err
	}
	defer h.close()
	if err := h.open(ctx, 1); err != nil {
		return 0, 0, err
	}
	before, _ := live(ctx, 0)
	if err := h.open(ctx, n); err != nil {
		return 0, 0, err
	}
	after, _ := live(ctx, letGo)
	name := "open"
	if log == nil {
		name = "open-server"
	}
	if err := b.heapProfile(name); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	const renewals = 5
	for range renewals {
		h.eng.Renew(h.front, events.DoorAll, events.Renew{})
	}
	return float64(after-before) / float64(n), time.Since(began) / renewals, nil
}

// heapConnected measures open questions whose askers hold a connection to
// agent.sock; the askers are another process.
func heapConnected(ctx context.Context, b *bench) ([]row, error) {
	const n = 9000 // below the smallest usual limit of descriptors, with room for the rest
	h, err := openHouse(ctx, b, houseOptions{mode: "process", rule: askRule})
	if err != nil {
		return nil, err
	}
	defer h.close()
	dir, err := b.temp()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "agent.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	socket := agents.NewSocket(agents.SocketOptions{
		Listener: l, Desk: h.eng, Stopping: engine.ErrStopped,
		Adapters: map[events.Agent]agents.Adapter{"generic": generic.Adapter{}},
	})
	run, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = socket.Run(run) }()
	defer func() { cancel(); <-done }()

	if err := h.open(ctx, 1); err != nil {
		return nil, err
	}
	heap, stacks := live(ctx, 0)
	end, err := part{role: "hold", socket: path, n: n}.ready(ctx, b)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := h.waitAsked(ctx, n+1); err != nil {
		return nil, err
	}
	heapAfter, stacksAfter := live(ctx, letGo)
	if err := b.heapProfile("connected"); err != nil {
		return nil, err
	}
	perHeap, perStack := float64(heapAfter-heap)/float64(n), float64(stacksAfter-stacks)/float64(n)
	return []row{{
		What: fmt.Sprintf("open question with its connection, %d open", n), Figure: fmt.Sprintf("%.0f B", perHeap+perStack),
		Budget: "≤ 12,288 B", Met: yes(perHeap+perStack <= 12288),
		Note: fmt.Sprintf("heap %.0f with the server's, stacks %.0f", perHeap, perStack),
	}}, nil
}
