package tui

import (
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// pagedMsg comes when the pager has gone.
type pagedMsg struct{ err error }

// openPager opens the current value in the person's pager. It gets the text as the
// screen shows it, escaped, so that no value can move the cursor there either; and
// it gets it through a pipe, so that nothing is left on a disk. While it runs no
// key counts here, and its end begins a grace.
func (m *Model) openPager(d *dialog) tea.Cmd {
	b := m.currentBox(d)
	if !d.ready() || b.text == "" {
		return nil
	}
	d.grace = grace{shut: true}
	cmd := pager(m.o.Getenv)
	cmd.Stdin = strings.NewReader(b.paper() + "\n")
	return tea.ExecProcess(cmd, func(err error) tea.Msg { return pagedMsg{err} })
}

// paper is the box's text for a pager: what stands before the lines of a diff is in
// it.
func (b *box) paper() string {
	if b.diff == nil {
		return b.text
	}
	var lines []string
	for _, l := range b.diff.lines {
		sign := string(rune(l.Sign)) + " "
		if l.Sign == '*' || l.Sign == '@' {
			sign = "  "
		}
		lines = append(lines, sign+strings.ReplaceAll(l.Text, "\n", "\n  "))
	}
	return strings.Join(lines, "\n")
}

// pager is $PAGER, read by a shell as other programs do. One that only copies would
// be gone before a person could read.
func pager(getenv func(string) string) *exec.Cmd {
	program := strings.TrimSpace(getenv("PAGER"))
	if program == "" || program == "cat" {
		program = "less"
	}
	cmd := exec.Command("/bin/sh", "-c", program)
	cmd.Env = os.Environ()
	if getenv("LESSCHARSET") == "" {
		cmd.Env = append(cmd.Env, "LESSCHARSET=utf-8")
	}
	return cmd
}

func (m *Model) paged(msg pagedMsg) {
	if m.dialog == nil {
		return
	}
	m.dialog.grace.begin(m.now)
	if msg.err != nil {
		m.notice = notice{text: m.w.Say(words.PagerFailed, card.Line(msg.err.Error()))}
	}
}
