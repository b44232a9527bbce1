package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/plain"
	"github.com/fermata-hitl/fermata/frontends/tui"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// The demo's rule and its script: what a user would write. The script takes its
// reason as the one verb.
var (
	//go:embed demo/hooks.yaml
	demoRules string
	//go:embed demo/ask.sh
	demoScript string
	// demoContent is what the call writes.
	//go:embed demo/written.txt
	demoContent string
)

// demo is one run of the demonstration.
type demo struct {
	cli
	answer  string        // continue, cancel, none, or "" for the person at the terminal
	timeout time.Duration // of the question; 0 = none
	dir     string        // where the call writes
	keep    bool          // dir is the user's own and stays
	in      io.Reader
	out     io.Writer
}

func (c cli) demo() *cobra.Command {
	d := demo{cli: c}
	cmd := &cobra.Command{
		Use: "demo", Short: c.w.Say(words.DemoShort), Long: c.w.Say(words.DemoLong), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch d.answer {
			case "", "continue", "cancel", "none":
			default:
				return c.fault(words.DemoAnswer, d.answer)
			}
			if d.timeout < 0 {
				return c.fault(words.DemoTimeout)
			}
			d.in, d.out = cmd.InOrStdin(), cmd.OutOrStdout()
			err := d.run(cmd.Context())
			if cmd.Context().Err() != nil && !errors.As(err, new(exitError)) { // the person has stopped it
				fmt.Fprintln(d.out)
				fmt.Fprintln(d.out, c.w.Say(words.DemoStopped))
				return exitError{code: exitFault}
			}
			return err
		},
	}
	c.text(cmd, &d.answer, "answer", "ANSWER", words.FlagAnswer)
	cmd.Flags().DurationVar(&d.timeout, "timeout", 0, c.w.Say(words.FlagTimeout))
	c.text(cmd, &d.dir, "dir", "DIR", words.FlagDemoDir)
	return cmd
}

func (d demo) run(ctx context.Context) (err error) {
	tmp, err := os.MkdirTemp(shortTemp(), "fermata-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	dirs := place.Dirs{Config: filepath.Join(tmp, "config"), State: filepath.Join(tmp, "state"), Runtime: filepath.Join(tmp, "run")}
	if d.keep = d.dir != ""; !d.keep {
		d.dir = filepath.Join(tmp, "work")
	}
	if d.dir, err = filepath.Abs(d.dir); err != nil {
		return err
	}
	if err := d.writeRules(dirs.Config); err != nil {
		return err
	}
	config := place.Default()
	config.Confirmation.Timeout = d.timeout
	config.Hooks.ICodePaths = false
	config.Notify.Desktop = place.NotifyOff
	h, err := d.open(ctx, dirs, config, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	end := background(context.WithoutCancel(ctx), func(ctx context.Context) { err = errors.Join(err, h.Run(ctx)) })
	defer end()
	fmt.Fprintln(d.out, d.w.Say(words.DemoTemporary))
	fmt.Fprintln(d.out, d.w.Say(words.DemoWants))
	if d.answer == "none" && d.timeout == 0 {
		paragraph(d.out, "", d.w.Say(words.DemoNobody))
	}
	return d.play(ctx, h)
}

// shortTemp is a directory for temporary files in which a socket's path has
// room: about a hundred bytes in all.
func shortTemp() string {
	if dir := os.TempDir(); len(dir) < 50 {
		return dir
	}
	return "/tmp"
}

func (d demo) writeRules(config string) error {
	for _, dir := range []string{config, d.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	script := fmt.Sprintf(demoScript, d.w.Say(words.DemoReason))
	if err := os.WriteFile(filepath.Join(config, "ask.sh"), []byte(script), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(config, "hooks.yaml"), []byte(demoRules), 0o600)
}

// play has the agent's call and the person side by side, then tells the story.
func (d demo) play(ctx context.Context, h *house) error {
	self := engine.NewID(time.Now())
	client, err := frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, h.dirs) },
		ID:   self, Kind: d.kind(), Capable: true, Name: "demo",
	})
	if err != nil {
		return err
	}
	end := background(ctx, func(ctx context.Context) { _ = client.Run(ctx) })
	defer end()
	if err := d.attached(ctx, client); err != nil {
		return err
	}
	p := d.proposal()
	if err := h.engine.Propose(ctx, p); err != nil {
		return err
	}
	asked, enough := context.WithCancel(ctx)
	endPerson := background(asked, func(ctx context.Context) {
		if err := d.person(ctx, client, self); err != nil && ctx.Err() == nil {
			fmt.Fprintln(d.out)
			fmt.Fprintln(d.out, d.explain(err))
			h.engine.Gone(p.Operation, p.Secret, events.EndCallerCancelled) // nobody is there to answer any more
		}
	})
	v, err := h.engine.Await(ctx, p.Operation, p.Secret)
	enough()
	endPerson()
	if err != nil {
		return err
	}
	if err := d.act(ctx, h, p, v); err != nil {
		return err
	}
	return d.tell(ctx, h, p.Operation, v)
}

func (d demo) kind() events.FrontendKind {
	if d.onTerminal() {
		return events.FrontendTUI
	}
	return events.FrontendCLI
}

func (d demo) onTerminal() bool {
	in, ok1 := d.in.(*os.File)
	out, ok2 := d.out.(*os.File)
	return d.answer == "" && ok1 && ok2 && term.IsTerminal(in.Fd()) && term.IsTerminal(out.Fd())
}

func (d demo) proposal() core.Proposal {
	args, _ := json.Marshal(map[string]string{"path": filepath.Join(d.dir, "written.txt"), "content": demoContent})
	return core.Proposal{
		Operation: engine.NewID(time.Now()), Secret: string(engine.NewID(time.Now())), Agent: "generic", Native: "demo",
		Cwd: d.dir, Path: events.MainPath, Kind: events.KindToolCall,
		Tool: events.Tool{Name: "write_file", Kind: "filesystem.write", CallID: "demo-1"}, Args: args,
	}
}

// person shows the question and carries the answer.
func (d demo) person(ctx context.Context, c *frontends.Client, self events.ID) error {
	if d.answer == "none" {
		return nil
	}
	if d.onTerminal() {
		err := tui.Run(ctx, tui.Options{
			Client: c, Inbox: c.Inbox(), Self: self, Principal: c.Principal,
			Words: d.w, Home: os.Getenv("HOME"), Once: true,
			Changed: c.Changes,
		})
		if err == nil && len(c.Inbox().Questions()) > 0 {
			return d.fault(words.DemoLeft)
		}
		return err
	}
	q, ok := firstQuestion(ctx, c)
	if !ok {
		return nil
	}
	answer, text, err := events.Answer(d.answer), "", error(nil)
	if d.answer == "" {
		var args []byte
		if args, err = c.Args(ctx, q.ID, q.Version.N); err == nil {
			answer, text, err = plain.Prompt(ctx, d.in, d.out, d.w, q, args)
		}
	}
	if err != nil {
		return err
	}
	_, err = c.Answer(ctx, events.Respond{Question: q.ID, Digest: q.Version.Digest, Answer: answer, Text: text, Human: true})
	return err
}

// firstQuestion waits for a question, false when ctx ends first.
func firstQuestion(ctx context.Context, c *frontends.Client) (events.Question, bool) {
	for _, err := range c.Updates(ctx) {
		if list := c.Inbox().Questions(); len(list) > 0 {
			return list[0], true
		}
		if err != nil {
			break
		}
	}
	return events.Question{}, false
}

// act does what the verdict allows, with exactly the arguments that it holds,
// and reports what ran.
func (d demo) act(ctx context.Context, h *house, p core.Proposal, v core.Verdict) error {
	err := h.engine.Receipt(ctx, p.Operation, p.Secret, "")
	if !v.Allow {
		return nil // nothing runs, whether the log knows that the agent heard of it or not
	}
	if err != nil {
		return err // no receipt, no run
	}
	var call struct{ Path, Content string }
	if err := json.Unmarshal(v.Args, &call); err != nil {
		return err
	}
	done := core.Finished{Operation: p.Operation, Secret: p.Secret, Outcome: events.OutcomeOK, Ran: events.DigestOf(v.Args)}
	if err = os.WriteFile(call.Path, []byte(call.Content), 0o644); err != nil {
		done.Outcome = events.OutcomeFailed
	}
	_, reported := h.engine.Finish(ctx, done)
	return errors.Join(err, reported)
}

// tell prints the operation's story from the log.
func (d demo) tell(ctx context.Context, h *house, op events.ID, v core.Verdict) error {
	var story []events.Message
	for r, err := range h.journal.Scan(ctx, 0) {
		if err != nil {
			return err
		}
		m, err := events.DecodeMessage(r.Data)
		if err != nil {
			return err
		}
		if m.Operation == op {
			story = append(story, m)
		}
	}
	fmt.Fprintln(d.out)
	for _, line := range d.story(story, fmt.Sprintf("uid:%d", os.Getuid())) {
		fmt.Fprintln(d.out, line)
	}
	if !v.Allow {
		paragraph(d.out, "", d.w.Say(words.DemoTold, v.Message))
		return exitError{code: exitRefused}
	}
	if d.keep {
		fmt.Fprintln(d.out, d.w.Say(words.DemoWritten, filepath.Join(d.dir, "written.txt")))
	} else {
		fmt.Fprintln(d.out, d.w.Say(words.DemoGone))
	}
	return nil
}
