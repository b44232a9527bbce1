package hooks

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// matchLimit bounds one search, by the clock on the wall: on a busy machine an
// honest search takes its while, and one that exceeds the limit fails its hook.
const matchLimit = time.Second

// maxBacktrack bounds the engine's memory for one search, in slots of a word.
const maxBacktrack = 4 << 20

// pattern is a regular expression of a hooks file, searched for as Python
// would. One that does not compile keeps the error: every search fails.
type pattern struct {
	re  *regexp2.Regexp
	err error
}

func newPattern(source string) *pattern {
	text, err := translate(source)
	if err != nil {
		return &pattern{err: tell("not a regex in Python's syntax: %s", err)}
	}
	re, err := regexp2.Compile(text, regexp2.OptionMaxBacktrackingStackSize(maxBacktrack))
	if err != nil {
		return &pattern{err: tell("not a usable regex: %s", err)}
	}
	re.MatchTimeout = matchLimit
	return &pattern{re: re}
}

// search reports whether the pattern occurs in text. The engine's own errors
// quote the whole text, so they are not passed on.
func (p *pattern) search(text string) (bool, error) {
	if p.err != nil {
		return false, p.err
	}
	found, err := p.re.MatchString(text)
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, regexp2.ErrBacktrackingStackLimit):
		return false, errors.New("the search needed too much memory; make the regex simpler")
	case strings.HasPrefix(err.Error(), "match timeout"):
		return false, fmt.Errorf("the search took longer than %s; make the regex simpler", matchLimit)
	}
	return false, errors.New("the search failed")
}
