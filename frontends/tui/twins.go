package tui

import (
	"strings"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
)

// twins are rows that look alike, by their first questions, with the end of the
// agent's own session id where their sub-agents do not tell them apart either.
type twins map[events.ID]string

// look is what two rows have in common that look alike.
type look struct {
	agent   events.Agent
	project string
	tool    events.Tool
	kind    events.Kind
	digest  events.Digest
}

// findTwins finds the rows that need more to be told apart.
func (m *Model) findTwins() twins {
	alike := map[look][]*events.Question{}
	for _, r := range m.waiting.rows {
		q := &m.questions[r[0]]
		of := look{q.Agent, q.ProjectPath, q.Tool, q.Kind, q.Version.Digest}
		alike[of] = append(alike[of], q)
	}
	t := twins{}
	var natives map[events.Token]string
	for _, list := range alike {
		if len(list) == 1 {
			continue
		}
		if natives == nil {
			natives = m.natives()
		}
		t.tell(list, natives)
	}
	return t
}

// tell says what tells rows apart that look alike.
func (t twins) tell(list []*events.Question, natives map[events.Token]string) {
	first := map[string]events.Token{} // session, by path
	several := map[string]bool{}       // paths of several sessions
	for _, q := range list {
		if s, known := first[q.Path]; known && s != q.Session {
			several[q.Path] = true
		} else {
			first[q.Path] = q.Session
		}
	}
	for _, q := range list {
		if t[q.ID] = ""; several[q.Path] {
			t[q.ID] = natives[q.Session]
		}
	}
}

// natives are the ends of the ids that agents gave their sessions.
func (m *Model) natives() map[events.Token]string {
	ends := map[events.Token]string{}
	for _, s := range m.o.Inbox.Sessions() {
		id := []rune(card.Line(strings.TrimSuffix(s.Native, "…")))
		ends[s.Session] = string(id[max(len(id)-4, 0):])
	}
	return ends
}
