package tui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// hooks is the pane of the hooks' runs: one row for each, the newest below.
type hooks struct {
	pointer
	runs    []events.RunLine
	numbers map[events.ID]int // by run, in the order in which they were heard of
	counted int
	names   int       // columns of the widest name so far: the column never shrinks
	run     events.ID // under the cursor; "" follows the newest
	output  output
}

// output is what the run on the screen wrote.
type output struct {
	run   events.ID
	at    events.Micros // of the run's line when it was asked for
	reply events.RunReply
	text  string // in place of the reply: why there is none
}

func newHooks() hooks { return hooks{numbers: map[events.ID]int{}} }

// readRuns takes over the hooks' runs of late. A number stays with its run.
func (m *Model) readRuns() tea.Cmd {
	h := &m.hooks
	h.runs = m.o.Inbox.Runs()
	for _, r := range h.runs {
		if h.numbers[r.Run] == 0 {
			h.counted++
			h.numbers[r.Run] = h.counted
			h.names = max(h.names, cells(card.Line(r.Hook.ID)))
		}
	}
	if len(h.numbers) > 2*len(h.runs)+100 {
		h.forget()
	}
	if r, known := m.runOnScreen(); known && m.on == screenRun && r.At != h.output.at {
		return m.readOutput(r)
	}
	return nil
}

// forget drops the numbers of runs that the inbox has dropped.
func (h *hooks) forget() {
	kept := make(map[events.ID]int, len(h.runs))
	for _, r := range h.runs {
		kept[r.Run] = h.numbers[r.Run]
	}
	h.numbers = kept
}

// countsRuns says that a clock of the pane is in sight and goes on.
func (m *Model) countsRuns() bool {
	return m.on == screenHooks && slices.ContainsFunc(m.hooks.runs, func(r events.RunLine) bool {
		return r.State != events.RunEnded
	})
}

// place is where the cursor stands among the runs.
func (h *hooks) place() int {
	if at := slices.IndexFunc(h.runs, func(r events.RunLine) bool { return r.Run == h.run }); at >= 0 {
		return at
	}
	return max(len(h.runs)-1, 0)
}

func (m *Model) moveRun(by int) {
	h := &m.hooks
	if len(h.runs) == 0 {
		return
	}
	h.move(h.place()+by, len(h.runs))
	if h.run = h.runs[h.cursor].Run; h.cursor == len(h.runs)-1 {
		h.run = "" // at the end one follows what comes
	}
}

func (m *Model) hooksView() []string {
	h := &m.hooks
	out := m.head(m.asideHeader(m.style.dim.Render(
		m.w.Say(words.Product) + " · " + m.w.Say(words.HooksPane) + " · " + m.w.Say(words.RunCount, len(h.runs)))))
	room := max(m.height-len(out)-1, 1)
	if len(h.runs) == 0 {
		out = append(out, " "+m.style.dim.Render(fit(m.w.Say(words.NoRuns), m.width-2)))
		return m.fill(out, m.keysLine(hooksKeys))
	}
	h.cursor = h.place()
	names := m.nameWidth()
	from, to := h.window(len(h.runs), room)
	for i := from; i < to; i++ {
		r := h.runs[i]
		out = append(out, m.runRow(r, names, i == h.cursor))
		m.zone(len(out)-1, 0, m.width, func() tea.Cmd { h.run = r.Run; return m.openRun() })
	}
	return m.fill(out, m.keysLine(hooksKeys))
}

var hooksKeys = []button{
	{"Enter", words.Details, focusNone},
	{"↑ ↓", words.Pick, focusNone},
	{"Esc", words.Back, focusNone},
	{"q", words.ToList, focusNone},
}

// nameWidth is that of the column of names: times stand close to them.
func (m *Model) nameWidth() int {
	return min(max(m.hooks.names, 20), m.width-leadWidth-timeWidth-numberWidth-6)
}

// The columns of a run's number and time.
const (
	numberWidth = 4
	timeWidth   = 9
)

func (m *Model) runRow(r events.RunLine, names int, current bool) string {
	number := strconv.Itoa(m.hooks.numbers[r.Run])
	cursor := " "
	if current {
		cursor = m.style.accent.Render("›")
	}
	icon := m.runSign(r)
	switch {
	case r.State == events.RunAsking:
		icon = m.style.accent.Render(icon)
	case r.FailedOpen:
		icon = m.style.warn.Render(icon)
	}
	name := pad(fitMiddle(card.Line(r.Hook.ID), names), names)
	if current {
		name = m.style.strong.Render(name)
	}
	return cursor + m.style.dim.Render(padLeft(number, numberWidth)) + "  " + pad(icon, 2) + " " + name + " " +
		m.style.dim.Render(padLeft(m.runTime(r), timeWidth))
}

// runSign is a run's icon. Nothing in it moves.
func (m *Model) runSign(r events.RunLine) string {
	switch r.State {
	case events.RunRunning:
		return "●"
	case events.RunAsking:
		return "?"
	}
	switch events.ResultOf(r.EndReason) {
	case events.ResultTimedOut, events.ResultUnavailable:
		return "⌛"
	case events.ResultWithdrawn:
		return "–"
	case events.ResultAnswered:
		if r.EndReason != events.EndContinue {
			return "✕"
		}
	case events.ResultFailed:
		return "✕"
	}
	switch {
	case r.Rejected, r.FailedOpen, r.Effect == events.EffectBlock, r.Effect == events.EffectError:
		return "✕"
	case r.Outcome == events.RunDetached:
		return "·"
	case r.Outcome != "" && r.Outcome != events.RunOK:
		return "✕"
	}
	return "✓"
}

// runTime is how long a run took, or has been going on.
func (m *Model) runTime(r events.RunLine) string {
	switch {
	case r.State != events.RunEnded:
		return card.Clock(m.now.Sub(r.At.Time()))
	case r.Micros == 0:
		return ""
	}
	return m.teller().Lasted(r.Micros)
}

func (m *Model) runOnScreen() (events.RunLine, bool) {
	if len(m.hooks.runs) == 0 {
		return events.RunLine{}, false
	}
	return m.hooks.runs[m.hooks.place()], true
}

// openRun shows the run under the cursor, and stays with it.
func (m *Model) openRun() tea.Cmd {
	r, known := m.runOnScreen()
	if !known {
		return nil
	}
	m.on, m.page.top, m.hooks.run = screenRun, 0, r.Run
	return m.readOutput(r)
}

func (m *Model) readOutput(r events.RunLine) tea.Cmd {
	o := &m.hooks.output
	if o.run != r.Run {
		*o = output{run: r.Run, text: m.w.Say(words.ReadingOutput)}
	}
	o.at = r.At
	return func() tea.Msg {
		reply, err := m.o.Client.Output(m.ctx, r)
		return outputMsg{r.Run, reply, err}
	}
}

func (m *Model) gotOutput(msg outputMsg) {
	o := &m.hooks.output
	if o.run != msg.run {
		return
	}
	o.reply, o.text = msg.reply, ""
	if msg.err != nil {
		o.text = m.teller().Refusal(msg.err)
	}
}

// runView shows everything about one run.
func (m *Model) runView() []string {
	r, known := m.runOnScreen()
	if !known || r.Run != m.hooks.run {
		return m.pageView(m.w.Say(words.RunGone), nil)
	}
	title := strconv.Itoa(m.hooks.numbers[r.Run]) + "  " + m.runSign(r) + "  " + card.Line(r.Hook.ID)
	return m.pageView(title, m.runFields(r))
}

func (m *Model) runFields(r events.RunLine) []field {
	fields := []field{{name: m.w.Say(words.FieldOutcome), value: m.runOutcome(r), warn: r.FailedOpen}}
	add := func(value string, k words.Key) {
		if value != "" {
			fields = append(fields, field{name: m.w.Say(k), value: value})
		}
	}
	add(card.Line(string(r.Event)), words.FieldEvent)
	if r.Tool.Name != "" {
		add(card.Line(r.Tool.Name)+" · "+card.Line(r.Tool.Kind), words.DetailTool)
	}
	add(card.Line(string(r.Agent)), words.DetailAgent)
	add(card.Line(r.ProjectPath), words.DetailProject)
	add(card.Line(r.Hook.ID)+"   "+card.Origin(r.Hook, r.ProjectPath, m.o.Home, m.w), words.DetailRule)
	add(card.Line(string(r.Mode)), words.FieldMode)
	if r.Attempt > 0 {
		add(strconv.Itoa(r.Attempt), words.DetailAttempt)
	}
	if exited(r) && ranProcess(r) {
		add(strconv.Itoa(r.Exit), words.FieldExit)
	}
	if r.State == events.RunEnded && r.Micros > 0 {
		add(m.teller().Lasted(r.Micros), words.FieldTook)
	}
	if r.Waited > 0 {
		add(m.teller().Lasted(r.Waited), words.FieldWaited)
	}
	add(r.At.Time().Local().Format(time.DateTime), words.FieldAt)
	o := m.hooks.output
	add(card.Escape(o.reply.Reason), words.Reason)
	if ranProcess(r) {
		add(cmp.Or(o.text, card.Escape(o.reply.Stderr), m.w.Say(words.Empty)), words.FieldStderr)
	}
	return fields
}

// ranProcess tells a program's run from that of a rule that is a verdict by itself,
// which takes no time and writes nothing.
func ranProcess(r events.RunLine) bool {
	return r.State == events.RunRunning || r.Micros > 0 || r.Outcome != "" && r.Outcome != events.RunOK
}

// exited says that the run's process ended by itself, with a status.
func exited(r events.RunLine) bool {
	return r.State == events.RunEnded &&
		(r.Outcome == events.RunOK || r.Outcome == events.RunFailed || r.Outcome == events.RunBadVerdict)
}

// runOutcome says in fixed words what a run did.
func (m *Model) runOutcome(r events.RunLine) string {
	text := m.didText(r)
	if r.FailedOpen {
		return m.w.Because(m.w.Say(words.FailedOpen), text)
	}
	if !r.Rejected || r.EndReason != "" && r.EndReason != events.EndContinue {
		return text
	}
	rejected := m.w.Say(words.CallRejected)
	if why := m.w.Code(string(r.Code)); strings.HasPrefix(why, rejected) {
		return why
	} else if why != "" {
		text = why
	}
	return m.w.Because(rejected, text)
}

func (m *Model) didText(r events.RunLine) string {
	switch {
	case r.State == events.RunRunning:
		return m.w.Say(words.Running)
	case r.State == events.RunAsking:
		return m.w.Say(words.SignWaiting)
	case r.EndReason != "":
		return m.w.End(string(r.EndReason))
	case r.Outcome != "" && r.Outcome != events.RunOK:
		return m.w.Say(failureOf(r.Outcome))
	case r.NotApplied != "":
		return m.w.Because(m.w.Effect(string(r.Effect)), m.w.NotApplied(r.NotApplied))
	case r.Effect == events.EffectAllow && !decides(r):
		return m.w.Say(words.RunRan)
	}
	return m.w.Effect(string(r.Effect))
}

// decides says that something waits for what the run says: a run beside a call or
// of an event that has happened already lets nothing go on.
func decides(r events.RunLine) bool {
	return r.Event.Gated() && (r.Mode == events.ModeBlocking || r.Mode == "")
}

// failureOf says how a process ended that did not end well.
func failureOf(o events.RunOutcome) words.Key {
	switch o {
	case events.RunTimedOut:
		return words.RunTimedOut
	case events.RunMissing:
		return words.RunMissing
	case events.RunBadVerdict:
		return words.RunBadVerdict
	case events.RunAbandoned:
		return words.RunAbandoned
	case events.RunDetached:
		return words.RunDetached
	}
	return words.RunFailed
}

func padLeft(s string, width int) string { return pad("", width-cells(s)) + fit(s, width) }
