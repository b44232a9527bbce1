package journal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatientlyAsksAgainWhatNobodyAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		silence := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		asked := 0
		err := patiently(ctx, func(ctx context.Context) error {
			if asked++; asked < 3 {
				return silence(ctx)
			}
			return nil
		})
		if err != nil || asked != 3 {
			t.Errorf("asked %d times: %v", asked, err)
		}
		no := errors.New("no")
		if err := patiently(ctx, func(context.Context) error { return no }); !errors.Is(err, no) {
			t.Errorf("an answer is an answer: %v", err)
		}
		if err := patiently(ctx, silence); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
			t.Errorf("gave up before its time: %v", err)
		}
	})
}
