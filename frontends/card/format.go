package card

import (
	"fmt"
	"strconv"
	"time"

	"github.com/fermata-hitl/fermata/frontends/words"
)

// Count writes a number with its thousands apart, as in 80,113.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Clock writes a wait as minutes and seconds, 0:04, or with hours, 1:00:04.
// Parts of a second are dropped; a negative wait counts as none.
func Clock(d time.Duration) string {
	s := max(int(d/time.Second), 0)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Took writes how long a person took: 3.1 s below a minute, else as [Clock].
func Took(d time.Duration, w words.Words) string {
	if d < time.Minute {
		return w.Say(words.Seconds, fmt.Sprintf("%.1f", max(d, 0).Seconds()))
	}
	return Clock(d)
}
