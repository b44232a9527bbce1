package journal_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

const segment = "FERMATA_0001"

func cluster(t testing.TB) *natsd.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := natsd.StartCluster(ctx, 3, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func onNode(t testing.TB, c *natsd.Cluster, node int, no ...nats.Option) *journal.Journal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	nc, err := c.Core(node, no...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	o := options()
	o.Replicas = 3
	j, err := journal.Open(ctx, nc, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// contest is one attempt to take the first place of a subject, as porcupine
// sees it.
type contest struct {
	subject string
	id      events.ID
}

// outcome is what the contender was told: it won, another did, or nobody knows.
type outcome struct {
	kind   string // "won", "lost", "unknown"
	winner uint64 // sequence, 0 when unknown
}

// winnerModel: a subject's first place is taken once, and everybody who is told
// anything is told the same.
func winnerModel() porcupine.Model {
	free := uint64(0)
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{free} },
		Step: func(state, in, out any) []any {
			holder, o := state.(uint64), out.(outcome)
			switch {
			case o.kind == "won" && holder == free:
				return []any{o.winner}
			case o.kind == "lost" && holder != free && holder == o.winner:
				return []any{holder}
			case o.kind == "unknown" && holder == free: // may have won; then nobody else was told so
				return []any{free, unknownWinner}
			case o.kind == "unknown":
				return []any{holder}
			case o.kind == "lost" && holder == unknownWinner:
				return []any{o.winner}
			}
			return nil
		},
		Partition: func(h []porcupine.Operation) [][]porcupine.Operation {
			by := map[string][]porcupine.Operation{}
			for _, op := range h {
				by[op.Input.(contest).subject] = append(by[op.Input.(contest).subject], op)
			}
			var parts [][]porcupine.Operation
			for _, p := range by {
				parts = append(parts, p)
			}
			return parts
		},
	}
	return m.ToModel()
}

// unknownWinner holds a place whose sequence no loser has named yet.
const unknownWinner = ^uint64(0)

func TestWinnerModelFindsTwoWinners(t *testing.T) {
	op := func(client int, o outcome) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: contest{"s", "x"}, Output: o, Call: 0, Return: 10}
	}
	for name, c := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"one winner":          {[]porcupine.Operation{op(0, outcome{"won", 5}), op(1, outcome{"lost", 5})}, true},
		"an unknown winner":   {[]porcupine.Operation{op(0, outcome{"unknown", 0}), op(1, outcome{"lost", 5})}, true},
		"two winners":         {[]porcupine.Operation{op(0, outcome{"won", 5}), op(1, outcome{"won", 6})}, false},
		"two answers":         {[]porcupine.Operation{op(0, outcome{"lost", 5}), op(1, outcome{"lost", 6}), op(2, outcome{"unknown", 0})}, false},
		"lost without winner": {[]porcupine.Operation{op(0, outcome{"lost", 5})}, false},
	} {
		if got := porcupine.CheckOperations(winnerModel(), c.history); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Nine contenders race for the first place of each subject on three nodes, while
// the stream's leader is shut down and started again, twice.
func TestB3OneWinnerOnThreeNodesWithoutALeader(t *testing.T) {
	t.Run("alone", func(t *testing.T) { testOneWinner(t, false) })
	t.Run("in batches", func(t *testing.T) { testOneWinner(t, true) })
}

// testOneWinner does so with entries that go alone, or all in batches. The three
// contenders on a node are then at three subjects, so that they share some.
func testOneWinner(t *testing.T, batched bool) {
	const subjects, contenders = 160, 9
	c := cluster(t)
	var nodes []*journal.Journal
	for i := range 3 {
		nodes = append(nodes, onNode(t, c, i))
		if batched {
			nodes[i].BatchesOf(1)
		}
	}
	names := make([]string, subjects)
	for i := range names {
		names[i] = subject()
	}

	var decided atomic.Int64
	progress := make([]chan struct{}, 4)
	for i := range progress {
		progress[i] = make(chan struct{})
	}
	at := map[int64]int{subjects / 5: 0, subjects/5 + 5: 1, subjects * 3 / 5: 2, subjects*3/5 + 5: 3}

	var mu sync.Mutex
	var history []porcupine.Operation
	kinds := map[string]int{}
	begin := time.Now()
	var all sync.WaitGroup
	for client := range contenders {
		all.Go(func() {
			for i := range names {
				s := names[i]
				if batched {
					s = names[(i+client/3)%subjects]
				}
				e := entry(s, 0)
				ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				call := time.Since(begin)
				seq, err := nodes[(client+i)%3].Append(ctx, e)
				back := time.Since(begin)
				cancel()
				o := outcome{"won", seq}
				var lost *journal.Lost
				switch {
				case errors.As(err, &lost):
					o = outcome{"lost", lost.Record.Seq}
				case errors.Is(err, journal.ErrUnavailable):
					o, back = outcome{kind: "unknown"}, time.Hour // it may still come through
				case err != nil:
					t.Error(err)
				}
				mu.Lock()
				kinds[o.kind]++
				history = append(history, porcupine.Operation{
					ClientId: client, Input: contest{s, e.ID}, Output: o, Call: int64(call), Return: int64(back),
				})
				mu.Unlock()
				if o.kind == "won" {
					if step, ok := at[decided.Add(1)]; ok {
						close(progress[step])
					}
				}
			}
		})
	}
	all.Go(func() {
		for i := 0; i < len(progress); i += 2 {
			<-progress[i]
			leader, err := c.Leader(t.Context(), segment)
			if err != nil {
				t.Error(err)
				return
			}
			c.Stop(leader)
			<-progress[i+1]
			if err := c.Restart(leader); err != nil {
				t.Error(err)
				return
			}
		}
	})
	all.Wait()
	t.Log("outcomes", kinds, "in", time.Since(begin))

	if !porcupine.CheckOperations(winnerModel(), history) {
		t.Error("the history cannot be explained by one winner a subject")
	}
	checkStored(t, nodes[0], names, history)
}

// checkStored compares what the contenders were told with what lies in the log.
func checkStored(t *testing.T, j *journal.Journal, names []string, history []porcupine.Operation) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a busy machine elects slowly
	defer cancel()
	first := map[string]uint64{}
	for r, err := range j.Scan(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, taken := first[r.Subject]; taken {
			t.Errorf("%s holds two messages that each expected to be the first", r.Subject)
		}
		first[r.Subject] = r.Seq
	}
	for _, op := range history {
		in, out := op.Input.(contest), op.Output.(outcome)
		if out.kind != "unknown" && first[in.subject] != out.winner {
			t.Errorf("%s: told that %d holds it, it is %d", in.subject, out.winner, first[in.subject])
		}
	}
	if len(first) != len(names)+1 { // and the genesis
		t.Errorf("%d subjects of %d hold a message", len(first)-1, len(names))
	}
}

// The same lost acknowledgements as on one server.
func TestF3LostAckIsNoLostEntryOnThreeNodes(t *testing.T) {
	t.Run("alone", func(t *testing.T) { testLostAck(t, false) })
	t.Run("in batches", func(t *testing.T) { testLostAck(t, true) })
}

func testLostAck(t *testing.T, batched bool) {
	c := cluster(t)
	for node := range 3 { // the leader's own, and two that are routed to it
		t.Run(strconv.Itoa(node), func(t *testing.T) {
			t.Parallel() // each lost acknowledgement takes real time to be in doubt
			drop := &lossy{}
			j := onNode(t, c, node, drop.wrap)
			if batched {
				j.BatchesOf(1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, last := subject(), uint64(0)
			for i := range 4 {
				drop.armed.Store(int32(1 + i%3))
				seq, err := j.Append(ctx, entry(s, last))
				if err != nil {
					t.Fatal(err)
				}
				last = seq
			}
			drop.armed.Store(0)
			all, err := collect(j.Read(ctx, s))
			if err != nil || len(all) != 4 || all[3].Seq != last {
				t.Errorf("%d messages, last %d, %v", len(all), last, err)
			}
		})
	}
}
