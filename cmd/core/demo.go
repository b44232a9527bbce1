package main

import (
	"context"
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
	"github.com/fermata-hitl/fermata/frontends/tui"
	"github.com/fermata-hitl/fermata/frontends/words"
	"github.com/fermata-hitl/fermata/tracing"
)

// The demo's rule and its script: what a user would write.
const (
	demoRules = `version: 1
hooks:
  - id: ask-before-write
    event: before_tool_call
    match: {tool_kind: filesystem.write}
    execution: {mode: blocking}
    run: {type: script, path: ask.sh}
`
	demoScript = `#!/bin/sh
# Every write to a file is left to a person.
printf '{"action":"ask","reason":"This writes a file."}' > "$FERMATA_HOOK_RESULT"
`
	demoContent = "held, then let go on.\n"
)

// demo is one run of the demonstration.
type demo struct {
	answer  string        // continue, cancel, none, or "" for the person at the terminal
	timeout time.Duration // of the question; 0 = none
	dir     string        // where the call writes
	keep    bool          // dir is the user's own and stays
	in      io.Reader
	out     io.Writer
}

func demoCommand() *cobra.Command {
	var d demo
	cmd := &cobra.Command{
		Use: "demo", Short: "See it work: a call is held, asked about, answered, traced", Args: cobra.NoArgs,
		Long: "Runs a core with a rule and a script of its own in a temporary state; nothing of yours is\n" +
			"touched. An agent's call wants to write written.txt; the rule asks you. Exit 0: it ran; 3: it was\n" +
			"refused; 1: a fault.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch d.answer {
			case "", "continue", "cancel", "none":
			default:
				return fmt.Errorf("--answer is continue, cancel or none, not %q", d.answer)
			}
			if d.timeout < 0 {
				return errors.New("--timeout must not be negative; 0 waits without end")
			}
			d.in, d.out = cmd.InOrStdin(), cmd.OutOrStdout()
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&d.answer, "answer", "", "answer by itself: continue, cancel, or none (counts as your own word)")
	cmd.Flags().DurationVar(&d.timeout, "timeout", 0, "end the question after this time, such as 30s; 0 waits without end")
	cmd.Flags().StringVar(&d.dir, "dir", "", "directory that the call writes to (default: in the temporary state)")
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
	c := place.Default()
	c.Confirmation.Timeout = d.timeout
	h, err := open(ctx, dirs, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	end := background(context.WithoutCancel(ctx), func(ctx context.Context) { err = errors.Join(err, h.Run(ctx)) })
	defer end()
	fmt.Fprintln(d.out, "Temporary state; nothing of yours is touched.")
	fmt.Fprintln(d.out, "An agent wants to write a file. Your rule says: ask.")
	if d.answer == "none" && d.timeout == 0 {
		fmt.Fprintln(d.out, "Nobody will answer, and the question has no limit: end it with Ctrl-C, or give --timeout 2s.")
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
	if err := os.WriteFile(filepath.Join(config, "ask.sh"), []byte(demoScript), 0o700); err != nil {
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
	if err := attached(ctx, client); err != nil {
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
			fmt.Fprintln(d.out, err)
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
		Cwd: d.dir, Path: "main", Kind: events.KindToolCall, Event: events.BeforeToolCall,
		Tool: events.Tool{Name: "write_file", Kind: "filesystem.write", CallID: "demo-1"}, Args: args,
	}
}

// errLeft says that the person went without an answer.
var errLeft = errors.New("nobody answered")

// person shows the question and carries the answer.
func (d demo) person(ctx context.Context, c *frontends.Client, self events.ID) error {
	if d.answer == "none" {
		return nil
	}
	if d.onTerminal() {
		err := tui.Run(ctx, tui.Options{
			Client: c, Inbox: c.Inbox(), Self: self, Principal: c.Principal,
			Words: words.In(words.Choose("", os.Getenv)), Home: os.Getenv("HOME"), Once: true,
			Changed: func(ctx context.Context, changed func()) {
				for _, err := range c.Updates(ctx) {
					if err != nil {
						return
					}
					changed()
				}
			},
		})
		if err == nil && len(c.Inbox().Questions()) > 0 {
			return errLeft
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
			answer, text, err = tui.Prompt(ctx, d.in, d.out, q, args)
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
	err := h.engine.Receipt(ctx, p.Operation, p.Secret)
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
	outcome := events.OutcomeOK
	err = os.WriteFile(call.Path, []byte(call.Content), 0o644)
	if err != nil {
		outcome = events.OutcomeFailed
	}
	return errors.Join(err, h.engine.Finish(ctx, p.Operation, p.Secret, outcome, events.DigestOf(v.Args)))
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
	for _, line := range tracing.Story(story, fmt.Sprintf("uid:%d", os.Getuid())) {
		fmt.Fprintln(d.out, line)
	}
	if !v.Allow {
		fmt.Fprintln(d.out, "The model was told: "+v.Message)
		return exitError{code: exitRefused}
	}
	if d.keep {
		fmt.Fprintln(d.out, "Written: "+filepath.Join(d.dir, "written.txt"))
	} else {
		fmt.Fprintln(d.out, "The file goes with the temporary state; --dir D keeps it.")
	}
	return nil
}
