package tui

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// How a person is called who does not look at the screen.
const (
	// pause is between two such messages.
	pause = 10 * time.Second
	// present is how long a key tells that somebody is there, in a terminal that
	// does not tell whether it has the focus.
	present = 30 * time.Second
	// maxDue bounds how many new questions are watched for that.
	maxDue = 64
)

// bell calls the person: by the terminal's bell at once, and by a message of the
// terminal when nobody comes. Besides what is copied, nothing else is written outside
// the frame.
type bell struct {
	started events.Micros
	focus   focus
	key     time.Time // when somebody last typed or clicked
	due     []due     // the oldest first
	called  time.Time // when the last message was sent
}

// due is a question that nobody has dealt with yet.
type due struct {
	question events.ID
	at       time.Time // when it is to be called out
}

// focus is what is known of the terminal's focus.
type focus int

const (
	focusUnknown focus = iota
	focusHere
	focusAway
)

// attended says that somebody looks at this screen, as far as one can know.
func (m *Model) attended() bool {
	switch m.bell.focus {
	case focusHere:
		return true
	case focusAway:
		return false
	}
	return !m.bell.key.IsZero() && m.now.Sub(m.bell.key) < present
}

// seen says that a question is in front of somebody.
func (m *Model) seen(id events.ID) bool {
	return m.dialog != nil && m.dialog.has(id) && m.attended()
}

// noteNew rings for questions that were not known, once for all of them. What
// waited already when this screen was opened is no news.
func (m *Model) noteNew(fresh []events.Question) tea.Cmd {
	// A terminal that shows no messages leaves the right to call to who can.
	rings, says := false, notifies(m.o.Getenv) != 0
	for _, q := range fresh {
		if q.AskedAt < m.bell.started {
			continue
		}
		if says && len(m.bell.due) < maxDue {
			m.bell.due = append(m.bell.due, due{q.ID, m.now.Add(events.RingAfter)})
		}
		rings = rings || !m.seen(q.ID)
	}
	if rings {
		return tea.Raw("\a")
	}
	return nil
}

// callPerson asks, for the first question that nobody came to, whether it is this
// screen that calls.
func (m *Model) callPerson() tea.Cmd {
	b := &m.bell
	for len(b.due) > 0 {
		q, open := m.find(b.due[0].question)
		switch {
		case !open || q.ClaimedBy != nil:
			b.due = b.due[1:]
		case m.now.Before(b.due[0].at) || m.now.Sub(b.called) < pause || m.seen(q.ID):
			return nil
		default:
			b.due = b.due[1:]
			return func() tea.Msg {
				yours, err := m.o.Client.Ring(m.ctx, q.ID)
				return ringMsg{q.ID, yours && err == nil}
			}
		}
	}
	return nil
}

// gotRing calls, if it is this screen that should and there is still a reason.
func (m *Model) gotRing(msg ringMsg) tea.Cmd {
	q, open := m.find(msg.question)
	if !msg.yours || !open || q.ClaimedBy != nil {
		return nil
	}
	message := notification(m.o.Getenv, m.w.Say(words.Product), m.callText(q))
	if message == "" {
		return nil
	}
	m.bell.called = m.now
	return tea.Raw(message)
}

// callText says which tool of which agent waits, and nothing of what it would do:
// it may be read by whoever stands before the screen.
func (m *Model) callText(q events.Question) string {
	return m.w.Say(words.Calls, m.teller().Tool(q.Tool, q.Kind), card.Line(string(q.Agent)))
}

// notification is what makes the terminal show a message of its own, "" for one
// that is not known to.
func notification(getenv func(string) string, title, text string) string {
	var sequence string
	switch notifies(getenv) {
	case 9:
		sequence = "\x1b]9;" + harmless(title+": "+text) + "\a"
	case 777:
		sequence = "\x1b]777;notify;" + harmless(title) + ";" + harmless(text) + "\x1b\\"
	default:
		return ""
	}
	if getenv("TMUX") != "" {
		sequence = "\x1bPtmux;" + strings.ReplaceAll(sequence, "\x1b", "\x1b\x1b") + "\x1b\\"
	}
	return sequence
}

// notifies is the number of the sequence that this terminal shows messages with, 0
// for none. A multiplexer hides its terminal's name: then what the terminal left in
// the environment tells.
func notifies(getenv func(string) string) int {
	switch getenv("TERM_PROGRAM") {
	case "iTerm.app", "WezTerm", "ghostty":
		return 9
	}
	kind := getenv("TERM")
	switch {
	case strings.Contains(kind, "kitty"), getenv("KITTY_WINDOW_ID") != "", getenv("WEZTERM_PANE") != "",
		getenv("GHOSTTY_RESOURCES_DIR") != "", getenv("LC_TERMINAL") == "iTerm2":
		return 9
	case strings.HasPrefix(kind, "foot"), strings.HasPrefix(kind, "rxvt"), getenv("VTE_VERSION") != "":
		return 777
	}
	return 0
}

// harmless leaves nothing in a text that could end or steer a sequence.
func harmless(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ','
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, text)
	return fit(text, 120)
}

// windowTitle says how many questions wait.
func (m *Model) windowTitle() string {
	if n := len(m.questions); n > 0 {
		return "(" + strconv.Itoa(n) + ") " + m.w.Say(words.Product)
	}
	return m.w.Say(words.Product)
}
