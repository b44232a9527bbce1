package events_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

// hostile is what kills, hangs or fattens msgpack/v5 when it is decoded
// without a check.
func hostile() map[string][]byte {
	return map[string][]byte{
		"array of 4 G items":          {0xdd, 0xff, 0xff, 0xff, 0xff},
		"map of 4 G pairs":            {0xdf, 0xff, 0xff, 0xff, 0xff},
		"map of 64 K pairs, empty":    {0xde, 0xff, 0xff},
		"text of 4 GiB":               {0xdb, 0xff, 0xff, 0xff, 0xff},
		"bytes of 4 GiB":              {0xc6, 0xff, 0xff, 0xff, 0xff},
		"array of 4 G items in a map": {0x81, 0xa1, 'x', 0xdd, 0xff, 0xff, 0xff, 0xff},
		"1 M nested arrays":           append(bytes.Repeat([]byte{0x91}, 1<<20), 0xc0),
		"8 M nested arrays":           append(bytes.Repeat([]byte{0x91}, 8<<20), 0xc0),
		"nested maps":                 append(bytes.Repeat([]byte{0x81, 0xa1, 'a'}, 65), 0xc0),
		"65 nested arrays":            append(bytes.Repeat([]byte{0x91}, 65), 0xc0),
		"60 honest-looking headers":   headersThatShareTheirBytes(),
		"extension":                   {0xd4, 0x01, 0x00},
		"time stamp":                  {0xd6, 0xff, 0, 0, 0, 0},
		"extension of 4 GiB":          {0xc9, 0xff, 0xff, 0xff, 0xff, 0x01},
		"unused type byte":            {0xc1},
		"two values":                  {0xc0, 0xc0},
		"nothing":                     {},
		"text cut off":                {0xa3, 'a', 'b'},
		"header cut off":              {0xdb, 0x00},
		"map without its last value":  {0x81, 0xa1, 'a'},
	}
}

// headersThatShareTheirBytes is a megabyte behind 60 nested arrays, each of
// which declares no more items than bytes follow it. Only the sum is absurd.
func headersThatShareTheirBytes() []byte {
	const size = 1 << 20
	b := make([]byte, 0, size)
	for range 60 {
		left := uint32(size - len(b) - 5)
		b = append(b, 0xdd, byte(left>>24), byte(left>>16), byte(left>>8), byte(left))
	}
	return append(b, bytes.Repeat([]byte{0xc0}, size-len(b))...)
}

func TestValidateRefusesHostileInput(t *testing.T) {
	for name, b := range hostile() {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			err := events.Validate(b)
			if took := time.Since(start); took > 100*time.Millisecond {
				t.Errorf("took %v", took)
			}
			if !errors.Is(err, events.ErrMalformed) {
				t.Errorf("error %v, want ErrMalformed", err)
			}
			if _, err := events.DecodeMessage(b); err == nil {
				t.Error("DecodeMessage accepted it")
			}
			if _, err := events.DecodeCommand(b, &events.Respond{}); err == nil {
				t.Error("DecodeCommand accepted it")
			}
		})
	}
}

func TestValidateAcceptsWhatHonestWritersMake(t *testing.T) {
	deepest := append(bytes.Repeat([]byte{0x91}, 64), 0xc0)
	if err := events.Validate(deepest); err != nil {
		t.Errorf("64 levels: %v", err)
	}
	inner := append(bytes.Repeat([]byte{0x91}, 63), 0xc0)
	siblings := slices.Concat([]byte{0x93}, inner, inner, inner)
	if err := events.Validate(siblings); err != nil {
		t.Errorf("three siblings of 63 levels: %v", err)
	}
	rapid.Check(t, func(t *rapid.T) {
		b, err := msgpack.Marshal(anyValue(4).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		if err := events.Validate(b); err != nil {
			t.Fatalf("%x: %v", b, err)
		}
		if len(b) > 1 && events.Validate(b[:len(b)-1]) == nil {
			t.Fatalf("%x: accepted without its last byte", b)
		}
	})
}

// anyValue draws nested values of every msgpack form but extensions.
func anyValue(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Uint64().AsAny(),
		rapid.IntRange(-200, 200).AsAny(), rapid.Float64().AsAny(), rapid.Float32().AsAny(), rapid.String().AsAny(),
		rapid.SliceOfN(rapid.Byte(), 0, 70_000).AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	return rapid.OneOf(append(leaves,
		rapid.SliceOfN(anyValue(depth-1), 0, 20).AsAny(),
		rapid.MapOfN(rapid.String(), anyValue(depth-1), 0, 20).AsAny())...)
}

// FuzzValidate checks the promise on which every decode rests: what Validate
// accepts, msgpack walks to exactly its end, and decodes into any at a cost
// that the size of the input bounds.
func FuzzValidate(f *testing.F) {
	for _, b := range hostile() {
		if len(b) < 1<<16 {
			f.Add(b)
		}
	}
	for _, b := range encodedSamples() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if events.Validate(b) != nil {
			return
		}
		rest := bytes.NewReader(b)
		if err := msgpack.NewDecoder(rest).Skip(); err != nil {
			t.Fatalf("accepted, but msgpack cannot walk it: %v", err)
		}
		if rest.Len() != 0 {
			t.Fatalf("accepted, but msgpack sees %d bytes behind the value", rest.Len())
		}
		var v any
		cost := allocated(func() {
			// An error is fine (a map key that is no text); dying is not.
			if err := msgpack.NewDecoder(bytes.NewReader(b)).Decode(&v); errors.Is(err, io.EOF) {
				t.Fatalf("accepted, but it ends early: %v", err)
			}
		})
		if limit := uint64(1<<20 + 512*len(b)); cost > limit {
			t.Fatalf("%d bytes of input cost %d bytes to decode, limit %d", len(b), cost, limit)
		}
	})
}

// allocated measures what f allocates; other goroutines' share is part of it,
// so limits must be generous.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestEncodeIsDeterministic(t *testing.T) {
	for range 20 {
		for i, b := range encodedSamples() {
			if !bytes.Equal(b, encodedSamples()[i]) {
				t.Fatalf("sample %d encodes in two ways", i)
			}
		}
	}
}

func TestEncodeReportsWhatItCannotWrite(t *testing.T) {
	if _, err := events.Encode(make(chan int)); err == nil {
		t.Error("a channel was encoded as msgpack")
	}
	if _, err := events.EncodeReply(math.NaN(), true); err == nil {
		t.Error("NaN was encoded as JSON")
	}
}

// encodedSamples is every sample as msgpack, in a fixed order.
func encodedSamples() [][]byte {
	var all [][]byte
	for _, group := range []string{"events", "commands", "replies", "feed", "agent", "parts"} {
		for _, v := range wireValues()[group] {
			for _, v := range []any{v, fill(v)} {
				b, err := events.Encode(v)
				if err != nil {
					panic(err)
				}
				all = append(all, b)
			}
		}
	}
	return all
}
