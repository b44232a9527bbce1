package frontends

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/fermata-hitl/fermata/events"
)

func TestB107ChangesAreToldUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := New(Options{
			Dial: func(context.Context) (net.Conn, error) { return nil, errors.New("nothing is there") },
			ID:   id(1), Kind: events.FrontendCLI,
		})
		if err != nil {
			t.Fatal(err)
		}
		begin := func(ctx context.Context) (times *int, over *bool) {
			times, over = new(int), new(bool)
			go func() {
				client.Changes(ctx, func() { *times++ })
				*over = true
			}()
			synctest.Wait()
			return times, over
		}
		ctx, cancel := context.WithCancel(t.Context())
		first, left := begin(ctx)
		second, ended := begin(t.Context())
		if *first != 1 || *second != 1 {
			t.Errorf("told %d and %d times at the start, want once", *first, *second)
		}
		client.emit([]Update{{Kind: KindAsked, Question: id(2)}})
		synctest.Wait()
		if *first != 2 || *second != 2 {
			t.Errorf("told %d and %d times, want a second time", *first, *second)
		}
		cancel()
		synctest.Wait()
		if !*left || *ended || *first != 2 {
			t.Errorf("who turned away: over %v, told %d times; who did not: over %v", *left, *first, *ended)
		}
		gone, stop := context.WithCancel(t.Context())
		stop()
		_ = client.Run(gone) // it only ends
		synctest.Wait()
		if !*ended {
			t.Error("the client has ended, and it still waits for changes")
		}
	})
}
