package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// english are the words on the screens of these tests.
var english = words.In(words.English)

// pane is a real tui-frontend in a real tmux, on a server of its own.
type pane struct {
	t             testing.TB
	dir           string
	socket        string
	columns, rows int
}

// tmux opens a window of a size with a screen in it. Its server ends with the
// test.
func (b *box) tmux(columns, rows int, args ...string) *pane {
	b.t.Helper()
	dir, err := os.MkdirTemp(b.dir, "x")
	if err != nil {
		b.t.Fatal(err)
	}
	p := &pane{t: b.t, dir: dir, socket: dir + "/s", columns: columns, rows: rows}
	const quiet = "set -g status off\nset -s escape-time 0\nset -g remain-on-exit on\n"
	if err := os.WriteFile(dir+"/conf", []byte(quiet), 0o600); err != nil {
		b.t.Fatal(err)
	}
	program := append([]string{filepath.Join(built, "tui-frontend"), "--language", "en"}, args...)
	start := p.command(append([]string{
		"-u", "-f", dir + "/conf", "new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows),
	}, program...)...)
	start.Env = append(slices.Clone(b.env), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	if out, err := start.CombinedOutput(); err != nil {
		b.t.Fatalf("tmux: %v\n%s", err, out)
	}
	b.t.Cleanup(func() { _ = p.command("kill-server").Run() })
	return p
}

// in is the same window for another test.
func (p *pane) in(t testing.TB) *pane {
	q := *p
	q.t = t
	return &q
}

func (p *pane) command(args ...string) *exec.Cmd {
	return exec.Command("tmux", append([]string{"-S", p.socket}, args...)...)
}

func (p *pane) tell(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// press presses keys, by tmux's names of them: c, Enter, PageDown.
func (p *pane) press(keys ...string) {
	p.t.Helper()
	p.tell(append([]string{"send-keys"}, keys...)...)
}

// does presses keys until the window's text fits. A screen that stood still for
// seconds, on a machine that is very busy, begins the question's grace anew and
// takes no key before its end: then they are pressed again.
func (p *pane) does(what string, fits func(text string) bool, keys ...string) string {
	p.t.Helper()
	p.press(keys...)
	dim := false
	return p.shows(what, func(text string) bool {
		if fits(text) {
			return true
		}
		live := p.live(text)
		if dim && live {
			p.press(keys...)
		}
		dim = !live && strings.Contains(text, english.Say(words.Cancel))
		return false
	})
}

// answers presses the key of an answer to the question that has this text, and
// returns when that has left the screen.
func (p *pane) answers(about, key string) {
	p.t.Helper()
	p.does("end of the question", func(text string) bool {
		return !strings.Contains(text, about) || !strings.Contains(text, english.Say(words.Cancel))
	}, key)
}

// types types one character as it is.
func (p *pane) types(char rune) {
	p.t.Helper()
	if char == '\n' {
		p.press("Enter")
		return
	}
	p.tell("send-keys", "-l", string(char))
}

// text is what the window shows now: nothing that is above or below it.
func (p *pane) text() string {
	p.t.Helper()
	return p.tell("capture-pane", "-p")
}

// shows waits until the window's text fits, and returns it.
func (p *pane) shows(what string, fits func(text string) bool) (text string) {
	p.t.Helper()
	err := await(what, func() error {
		if text = p.text(); !fits(text) {
			return errNotYet
		}
		return nil
	})
	if err != nil {
		p.t.Fatalf("%v; the window:\n%s", err, text)
	}
	return text
}

// asks waits until a question is on the screen that has this text, and takes
// answers.
func (p *pane) asks(about string) string {
	p.t.Helper()
	return p.shows("question about "+about, func(text string) bool { return p.live(text) && strings.Contains(text, about) })
}

// live reports whether the buttons are in the window and count.
func (p *pane) live(text string) bool {
	return strings.Contains(text, "c "+english.Say(words.Continue)) && strings.Contains(text, "x "+english.Say(words.Cancel))
}

// rests waits until no question is on the screen.
func (p *pane) rests() string {
	p.t.Helper()
	return p.shows("screen without a question", func(text string) bool {
		return strings.Contains(text, english.Say(words.Product)) && !strings.Contains(text, " "+english.Say(words.Cancel))
	})
}

// kill ends the screen's process as a crash does.
func (p *pane) kill() {
	p.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(p.tell("display-message", "-p", "#{pane_pid}")))
	if err != nil {
		p.t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// What is seen of a value that scrolls: its rows, and the line that says which
// they are. A row that goes on from the one above has another gutter.
var (
	valueRow = regexp.MustCompile(`^ .*?([┃┇┗]) ?(.*)$`)
	position = regexp.MustCompile(`rows ([\d,]+)–([\d,]+) of ([\d,]+)(?: · ([\d,]+) bytes)?`)
)

// part is the rows of a value that one frame shows.
type part struct {
	from, to, of, bytes int
	rows                []string // each with the line feed before it, where there is one
}

// partOf reads a frame. It is false where no value scrolls.
func partOf(t testing.TB, text string) (v part, ok bool) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		m := valueRow.FindStringSubmatch(line)
		if at := position.FindStringSubmatch(line); at != nil && m != nil {
			v.from, v.to, v.of, v.bytes = number(t, at[1]), number(t, at[2]), number(t, at[3]), number(t, at[4])
			ok = true
			continue
		}
		switch {
		case m == nil:
		case m[1] == "┇":
			v.rows = append(v.rows, m[2])
		default:
			v.rows = append(v.rows, "\n"+m[2])
		}
	}
	if ok && len(v.rows) != v.to-v.from+1 {
		t.Fatalf("rows %d–%d are %d:\n%s", v.from, v.to, len(v.rows), text)
	}
	return v, ok
}

func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil && text != "" {
		t.Fatal(err)
	}
	return n
}

// reads scrolls through the whole of a value with one key, and returns its rows
// and how many bytes it is said to have. Each frame must have the buttons.
func (p *pane) reads(key string) (all []string, bytes int) {
	p.t.Helper()
	for now := (part{}); ; {
		next := func(text string) (ok bool) {
			now, ok = partOf(p.t, text)
			return ok && now.to > len(all)
		}
		var text string
		if len(all) == 0 {
			text = p.shows("the first row", next)
		} else {
			text = p.does(fmt.Sprintf("row %d", len(all)+1), next, key)
		}
		if !p.live(text) {
			p.t.Fatalf("at rows %d–%d the buttons are not in the window:\n%s", now.from, now.to, text)
		}
		if now.from > len(all)+1 {
			p.t.Fatalf("after row %d comes row %d", len(all), now.from)
		}
		all = append(all, now.rows[len(all)+1-now.from:]...)
		if len(all) == now.of {
			return all, now.bytes
		}
	}
}

// differs holds the rows that were read against the value, -1 for none: it is
// the first byte that was not on the screen. A space at which a row was broken may
// stand beyond its edge, and no terminal tells it from an empty cell.
func differs(rows []string, value string) int {
	at := 0
	for i, row := range rows {
		if i == 0 {
			row = strings.TrimPrefix(row, "\n")
		} else if !strings.HasPrefix(row, "\n") && strings.HasPrefix(value[at:], " ") && !strings.HasPrefix(row, " ") {
			at++
		}
		if !strings.HasPrefix(value[at:], row) {
			return at
		}
		at += len(row)
	}
	if at < len(value) {
		return at
	}
	return -1
}

// watcher is `core questions --watch`, line by line.
type watcher struct {
	b    *box
	p    *process
	read int
}

// watch starts the command, and returns when the core knows it.
func (b *box) watch() *watcher {
	b.t.Helper()
	before, err := b.status()
	if err != nil {
		b.t.Fatal(err)
	}
	w := &watcher{b: b, p: b.start("", "core", "questions", "--watch")}
	must(b.t, "attachment of core questions --watch", func() error {
		if now, err := b.status(); err == nil && now.Frontends > before.Frontends {
			return nil
		}
		return still(w.p)
	})
	return w
}

// line waits for the next line about a question that says this event.
func (w *watcher) line(event string, fits func(cliQuestion) bool) (q cliQuestion) {
	w.b.t.Helper()
	must(w.b.t, "line "+event, func() error {
		all := w.b.lines(w.p.stdout.String())
		for _, q = range all[min(w.read, len(all)):] {
			w.read++
			if q.Event == event && fits(q) {
				return nil
			}
		}
		return still(w.p)
	})
	return q
}

// opens waits for the next open question of a tool.
func (w *watcher) opens(tool string) cliQuestion {
	w.b.t.Helper()
	return w.line("open", func(q cliQuestion) bool { return q.Tool.Name == tool })
}

// closes waits for the end of a question.
func (w *watcher) closes(id events.ID) events.End {
	w.b.t.Helper()
	return *w.line("closed", func(q cliQuestion) bool { return q.Question == id && q.End != nil }).End
}

// gives answers with `core answer`.
func (b *box) gives(id events.ID, answer events.Answer, more ...string) result {
	b.t.Helper()
	return b.run("", "core", append([]string{"answer", string(id), string(answer), "--json"}, more...)...)
}

// late holds an answer through the command line to be refused with a code.
func (b *box) late(id events.ID, code events.Reject) events.Refused {
	b.t.Helper()
	r := b.gives(id, events.AnswerContinue)
	var ack events.Ack
	if err := json.Unmarshal([]byte(r.Stdout), &ack); err != nil {
		b.t.Fatalf("core answer: %+v: %v", r, err)
	}
	if r.Exit != 3 || ack.Refused == nil || ack.Refused.Code != code {
		b.t.Fatalf("core answer: %+v, want exit 3 and %s", r, code)
	}
	return *ack.Refused
}

// inTime holds something to have come in time.
func inTime(t testing.TB, what string, took, limit time.Duration) {
	t.Helper()
	t.Logf("%s after %v", what, took.Round(time.Millisecond))
	if took > limit {
		t.Errorf("%s took %v, at most %v", what, took, limit)
	}
}
