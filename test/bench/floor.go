package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-hitl/fermata/core/natsd"
)

// floor is what a round trip costs without Fermata: the question, the claim and
// the answer are each published on a condition and awaited, and an ordered
// consumer on either side hears of the other's. Same server, same storage, same
// mode, connections in process.
type floor struct {
	server *natsd.Server
	conns  []*nats.Conn
	stops  []func()
	n      atomic.Int64
	data   []byte

	mu      sync.Mutex
	waiting map[string]chan error
}

func openFloor(ctx context.Context, b *bench, mode string) (*floor, error) {
	dir, err := b.temp()
	if err != nil {
		return nil, err
	}
	f := &floor{waiting: map[string]chan error{}, data: []byte(argument())}
	f.server, err = natsd.Start(natsd.Options{
		StateDir: filepath.Join(dir, "s"), RuntimeDir: filepath.Join(dir, "r"), SyncAlways: mode == "power", MaxStore: 8 << 30,
	})
	if err != nil {
		return nil, err
	}
	asker, front := f.connect(&err), f.connect(&err)
	if err == nil {
		err = f.stream(ctx, asker)
	}
	if err == nil {
		err = f.follow(ctx, front, "floor.ask.>", func(id string) { go f.answer(ctx, front, id) })
	}
	if err == nil {
		err = f.follow(ctx, asker, "floor.answer.>", func(id string) { f.done(id, nil) })
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *floor) connect(err *error) *nats.Conn {
	if *err != nil {
		return nil
	}
	nc, e := f.server.Core()
	if *err = e; e == nil {
		f.conns = append(f.conns, nc)
	}
	return nc
}

func (f *floor) stream(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "FLOOR", Subjects: []string{"floor.>"}, Storage: jetstream.FileStorage})
	return err
}

func (f *floor) follow(ctx context.Context, nc *nats.Conn, filter string, heard func(id string)) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	c, err := js.OrderedConsumer(ctx, "FLOOR", jetstream.OrderedConsumerConfig{FilterSubjects: []string{filter}})
	if err != nil {
		return err
	}
	cc, err := c.Consume(func(m jetstream.Msg) {
		heard(m.Subject()[strings.LastIndexByte(m.Subject(), '.')+1:])
	})
	if err != nil {
		return err
	}
	f.stops = append(f.stops, cc.Stop)
	return nil
}

// once is one round trip.
func (f *floor) once(ctx context.Context) error {
	id := strconv.FormatInt(f.n.Add(1), 10)
	ch := make(chan error, 1)
	f.mu.Lock()
	f.waiting[id] = ch
	f.mu.Unlock()
	if err := f.publish(ctx, f.conns[0], "floor.ask."+id); err != nil {
		return err
	}
	select {
	case err := <-ch:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *floor) answer(ctx context.Context, nc *nats.Conn, id string) {
	err := f.publish(ctx, nc, "floor.claim."+id)
	if err == nil {
		err = f.publish(ctx, nc, "floor.answer."+id)
	}
	if err != nil {
		f.done(id, err)
	}
}

func (f *floor) done(id string, err error) {
	f.mu.Lock()
	ch := f.waiting[id]
	delete(f.waiting, id)
	f.mu.Unlock()
	if ch != nil {
		ch <- err
	}
}

// append is one awaited conditional publish.
func (f *floor) append(ctx context.Context) error {
	return f.publish(ctx, f.conns[0], "floor.one."+strconv.FormatInt(f.n.Add(1), 10))
}

func (f *floor) publish(ctx context.Context, nc *nats.Conn, subject string) error {
	m := nats.NewMsg(subject)
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", "0")
	m.Data = f.data
	r, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return err
	}
	var ack struct {
		Seq   uint64          `json:"seq"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(r.Data, &ack); err != nil || ack.Seq == 0 {
		return fmt.Errorf("the floor's publish failed: %s", r.Data)
	}
	return nil
}

func (f *floor) close() {
	for _, stop := range f.stops {
		stop()
	}
	for _, nc := range f.conns {
		nc.Close()
	}
	f.server.Close()
}
