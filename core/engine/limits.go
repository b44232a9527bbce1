package engine

import (
	"fmt"

	"github.com/fermata-hitl/fermata/events"
)

// How long the texts of an asker may be, bytes. Each stands in the log with every
// operation or session that names it.
const (
	maxCwd         = 4 << 10
	maxProfile     = 512
	maxNative      = 2 << 20 // agents choose their ids of sessions
	maxTurn        = 512
	maxPath        = 1 << 10
	maxTraceparent = 256
	maxToolName    = 256
	maxToolKind    = 64
	maxCallID      = 512
)

// bounds are texts and how many bytes each may have at most.
type bounds []struct {
	name, value string
	most        int
}

func checkLengths(list bounds) error {
	for _, f := range list {
		if len(f.value) > f.most {
			return refuse(events.RejectMalformed, fmt.Sprintf("the %s has %d bytes; %d is the most", f.name, len(f.value), f.most))
		}
	}
	return nil
}
