package events

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrUnknownType is returned for an event or message that only a newer core
// knows.
var ErrUnknownType = errors.New("unknown event type")

// ErrMalformed is returned for bytes that no honest writer makes.
var ErrMalformed = errors.New("malformed msgpack")

const maxDepth = 64

// Validate walks msgpack without building anything and refuses what could hurt
// a decoder: lengths beyond the input, more declared items than bytes are left,
// nesting over 64, extension types, anything behind the first value. It must
// pass before any decode: msgpack/v5 trusts declared lengths and dies of a
// five-byte input.
func Validate(b []byte) error {
	var (
		open    [maxDepth]uint64 // items still owed by each enclosing container
		depth   int
		pending uint64 = 1 // items owed over all levels
		pos     int
	)
	for pending > 0 {
		if pos >= len(b) {
			return fmt.Errorf("%w: ends at byte %d", ErrMalformed, pos)
		}
		size, items, isContainer, err := head(b[pos:])
		if err != nil {
			return fmt.Errorf("%w at byte %d", err, pos)
		}
		if uint64(len(b)-pos) < size {
			return fmt.Errorf("%w: length beyond the input at byte %d", ErrMalformed, pos)
		}
		pos += int(size)
		pending--
		if depth > 0 {
			open[depth-1]--
		}
		if isContainer && items > 0 {
			pending += items
			if pending > uint64(len(b)-pos) {
				return fmt.Errorf("%w: more items declared than bytes left at byte %d", ErrMalformed, pos)
			}
			if depth == maxDepth {
				return fmt.Errorf("%w: nested deeper than %d at byte %d", ErrMalformed, maxDepth, pos)
			}
			open[depth] = items
			depth++
			continue
		}
		// A container stays open until its last item is complete, not begun:
		// that is how deep a decoder recurses.
		for depth > 0 && open[depth-1] == 0 {
			depth--
		}
	}
	if pos != len(b) {
		return fmt.Errorf("%w: %d bytes behind the value", ErrMalformed, len(b)-pos)
	}
	return nil
}

// head reads one value's header: the bytes it takes (for a container the
// header alone), and how many items a container declares.
func head(b []byte) (size, items uint64, isContainer bool, err error) {
	c := b[0]
	switch {
	case c <= 0x7f || c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return 1, 0, false, nil
	case c <= 0x8f:
		return 1, 2 * uint64(c&0x0f), true, nil
	case c <= 0x9f:
		return 1, uint64(c & 0x0f), true, nil
	case c <= 0xbf:
		return 1 + uint64(c&0x1f), 0, false, nil
	}
	switch c {
	case 0xcc, 0xd0:
		return 2, 0, false, nil
	case 0xcd, 0xd1:
		return 3, 0, false, nil
	case 0xca, 0xce, 0xd2:
		return 5, 0, false, nil
	case 0xcb, 0xcf, 0xd3:
		return 9, 0, false, nil
	case 0xc4, 0xd9, 0xc5, 0xda, 0xc6, 0xdb:
		n, w, ok := length(b, width(c))
		if !ok {
			return 0, 0, false, ErrMalformed
		}
		return w + n, 0, false, nil
	case 0xdc, 0xdd, 0xde, 0xdf:
		n, w, ok := length(b, width(c))
		if !ok {
			return 0, 0, false, ErrMalformed
		}
		if c >= 0xde {
			n *= 2
		}
		return w, n, true, nil
	}
	return 0, 0, false, fmt.Errorf("%w: type byte 0x%02x", ErrMalformed, c)
}

func width(c byte) int {
	switch c {
	case 0xc4, 0xd9:
		return 1
	case 0xc5, 0xda, 0xdc, 0xde:
		return 2
	}
	return 4
}

// length reads a big-endian length of w bytes behind the type byte, and the
// size of the header that holds it.
func length(b []byte, w int) (n, headerSize uint64, ok bool) {
	if len(b) < 1+w {
		return 0, 0, false
	}
	switch w {
	case 1:
		n = uint64(b[1])
	case 2:
		n = uint64(binary.BigEndian.Uint16(b[1:]))
	default:
		n = uint64(binary.BigEndian.Uint32(b[1:]))
	}
	return n, uint64(1 + w), true
}
