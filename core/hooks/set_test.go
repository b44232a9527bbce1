package hooks

import (
	"encoding/json"

	"github.com/fermata-hitl/fermata/events"
)

// newSet is the set of one global file.
func newSet(file, home string, data []byte) (*Set, error) {
	s := NewStore(StoreOptions{GlobalDir: home})
	return s.assemble([]part{{
		source: source{scope: events.ScopeGlobal, dir: home},
		text:   text{file: file, data: data, digest: events.DigestOf(data)},
		trust:  TrustAlways,
	}})
}

// jsonObject is an object with one string in it.
func jsonObject(name, value string) []byte {
	b, err := json.Marshal(map[string]string{name: value})
	if err != nil {
		panic(err)
	}
	return b
}
