package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// onTerminal runs a command on a terminal of so many columns.
func onTerminal(t *testing.T, columns int, in string, args ...string) string {
	t.Helper()
	terminal, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(&out, terminal) }() // ends with the screen
	run(t.Context(), "fermata", args, strings.NewReader(in), screen, screen)
	_ = screen.Close()
	<-done
	_ = terminal.Close()
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

func TestQuestionsSessionsStatusAndAnswerSpeakPlainly(t *testing.T) {
	home(t)
	h, _, _ := served(t, func(*place.Config) {})
	if r := call(t, "", "questions"); r.exit != 0 || r.out != " Nothing waits for you.\n" {
		t.Errorf("nothing waits: %+v", r)
	}
	if r := call(t, "", "questions", "--json"); r.exit != 0 || r.out != "" {
		t.Errorf("nothing waits, for programs: %+v", r)
	}
	if r := call(t, "", "status", "--short"); r.exit != 0 || r.out != "" {
		t.Errorf("nothing waits, for a bar: %+v", r)
	}
	client := answering(t, h)
	proposed(t, h, "")
	q := question(t, client)

	lines := strings.Split(call(t, "", "questions").out, "\n")
	row := regexp.MustCompile(`^ ` + string(q.ID) + `  generic  write_file  0:0\d     secret\.txt$`)
	if len(lines) != 3 || lines[0] != " question                    agent    tool        waiting  about" || !row.MatchString(lines[1]) {
		t.Errorf("questions:\n%s", strings.Join(lines, "\n"))
	}
	for line := range strings.SplitSeq(onTerminal(t, 40, "", "questions"), "\n") {
		if ansi.StringWidth(line) > 40 {
			t.Errorf("wider than 40 columns: %q", line)
		}
	}
	if r := call(t, "", "sessions"); !regexp.MustCompile(`(?m)^ generic  one      1               0:0\d  ~?\S*$`).MatchString(r.out) || !strings.Contains(r.out, "age") {
		t.Errorf("sessions:\n%s", r.out)
	}
	if r := call(t, "", "status", "--short"); r.exit != 0 || !regexp.MustCompile(`^1 waiting 0:0\d\n$`).MatchString(r.out) {
		t.Errorf("a bar: %+v", r)
	}
	if s, _, err := (cli{name: "core"}).askStatus(t.Context()); err != nil || s.Open != 1 || s.WaitingMS <= 0 || s.WaitingMS > 10_000 {
		t.Errorf("%+v, %v", s, err)
	}

	if r := call(t, "", "answer", string(q.ID), "continue"); r.exit != 0 || r.out != "accepted\n" {
		t.Errorf("%+v", r)
	}
	for lang, want := range map[string]string{
		"en": `^already answered: you continued at \d\d:\d\d:\d\d \(already_answered\)\n$`, "zh-Hans": `^已有人回答：于 \d\d:\d\d:\d\d 由你选择了继续（already_answered）\n$`,
	} {
		if r := call(t, "", "answer", string(q.ID), "cancel", "--language", lang); r.exit != exitRefused || !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("a second answer: %+v", r)
		}
	}
}

func TestB80ALateAnswerHearsHowItEnded(t *testing.T) {
	c := cli{name: "fermata"}
	now := time.Date(2026, 11, 30, 14, 0, 0, 0, time.Local)
	at := events.At(now.Add(-time.Hour))
	for want, r := range map[string]*events.Refused{
		"already withdrawn: the turn ended at 13:00:00 (withdrawn)":                 {Code: events.RejectWithdrawn, EndReason: events.EndTurnEnded, When: at},
		"already answered: ana cancelled at 13:00:00 (already_answered)":            {Code: events.RejectAlreadyAnswered, Who: "ana", Answer: events.AnswerCancel, When: at, Hint: "x"},
		"already answered: you cancelled at 2026-11-29 13:00:00 (already_answered)": {Code: events.RejectAlreadyAnswered, Who: "uid:1", Answer: events.AnswerCancel, When: at - 86400e6},
		"the core does not know this question: look at the list (unknown_question)": {Code: events.RejectUnknownQuestion, Hint: "look at the list"},
		"somebody else is answering (not_claimer)":                                  {Code: events.RejectNotClaimer},
	} {
		if got := c.reply(events.Ack{Refused: r}, "uid:1", now); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestStatusTellsWhyNoCoreCanRun(t *testing.T) {
	dir := home(t)
	run, config := dir+"/runtime", dir+"/config/config.yaml"
	says := func(what, word string, args ...string) {
		t.Helper()
		r := call(t, "", append(args, "status")...)
		if r.exit != exitFault || r.out != "" || !strings.Contains(r.problems, word) {
			t.Errorf("%s: %+v", what, r)
		}
	}
	says("nothing is wrong", "no core is running here. The first agent")
	write(t, config, "languge: en\n")
	says("a broken config.yaml", "languge: unknown key; did you mean language")
	write(t, config, "")
	if err := os.Mkdir(run, 0o755); err != nil {
		t.Fatal(err)
	}
	says("an open directory", run+" is open to other users; run chmod 700 on it")
	says("an open directory", "对其他用户开放", "--language", "zh-Hans")
	if err := os.Remove(run); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, run); err != nil {
		t.Fatal(err)
	}
	says("a link", run+" is not a directory of yours")
	if r := call(t, "", "status", "--short"); r.exit != exitFault || r.out+r.problems != "" {
		t.Errorf("a bar shows: %+v", r)
	}
}

func TestUnknownCommandsAreGuessed(t *testing.T) {
	home(t)
	for word, want := range map[string]string{
		"statsu": `"statsu" is no command of fermata; did you mean status?`, "question": "did you mean questions?",
		"hooks lst": `"lst" is no command of fermata hooks; did you mean list?`, "help anwser": "did you mean answer?", "xyzzy": "--help lists them",
	} {
		if r := call(t, "", strings.Fields(word)...); r.exit != exitFault || !strings.Contains(r.problems, want) {
			t.Errorf("%s: %+v", word, r)
		}
	}
}

func TestUntrustSaysWhenNothingWasTrusted(t *testing.T) {
	_, dir := project(t)
	if r := call(t, "", "hooks", "untrust", "--dir", dir); r.exit != 0 || r.out != " Nothing in ~/src was trusted; its hooks are not loaded.\n" {
		t.Errorf("%+v", r)
	}
	call(t, "", "hooks", "trust", "--dir", dir, "--yes")
	if r := call(t, "", "hooks", "untrust", "--dir", dir); r.exit != 0 || r.out != " The hooks of ~/src are not trusted and not loaded.\n" {
		t.Errorf("%+v", r)
	}
}

func TestHooksRunSaysAReasonOnce(t *testing.T) {
	_, dir := project(t)
	payload := `{"tool": {"name": "Bash", "kind": "shell", "args": {"command": "make clean"}}}`
	if r := call(t, payload, "hooks", "run", "before_tool_call", "--dir", dir); strings.Count(r.out, "Nothing is cleaned here.") != 1 {
		t.Errorf("a verdict:\n%s", r.out)
	}
	write(t, dir+"/.fermata/no-clean.sh", "#!/bin/sh\necho broken >&2\nexit 7\n")
	r := call(t, payload, "hooks", "run", "before_tool_call", "--dir", dir)
	_, reason, _ := strings.Cut(r.out, "no-clean would refuse it: ")
	reason, _, _ = strings.Cut(reason, " (hook_failed)")
	if reason == "" || strings.Count(r.out, reason) != 1 {
		t.Errorf("a failure:\n%s", r.out)
	}
}

func TestTablesFitFortyColumns(t *testing.T) {
	_, dir := project(t)
	for _, args := range [][]string{
		{"hooks", "list", "--dir", dir},
		{"hooks", "check", "--dir", dir},
		{"hooks", "run", "before_tool_call", "--dir", dir},
		{"hooks", "list", "--dir", dir, "--language", "zh-Hans"},
		{"hooks", "run", "before_tool_call", "--dir", dir, "--language", "zh-Hans"},
		{"hooks", "--help"},
		{"hooks", "--help", "--language", "zh-Hans"},
	} {
		out := onTerminal(t, 40, `{"tool": {"name": "Bash", "kind": "shell", "args": {"command": "make clean"}}}`, args...)
		if strings.Count(out, "\n") < 3 {
			t.Errorf("%v says only %q", args, out)
		}
		for line := range strings.SplitSeq(out, "\n") {
			if ansi.StringWidth(line) > 40 {
				t.Errorf("%v is wider than 40 columns: %q", args, line)
			}
		}
	}
	list := onTerminal(t, 40, "", "hooks", "list", "--dir", dir)
	for _, want := range []string{"   :3  no-clean  before_tool_call\n", "       blocking  runs no-clean.sh\n"} {
		if !strings.Contains(list, want) {
			t.Errorf("%q is not in\n%s", want, list)
		}
	}
}

func TestB125NoLineOfAChinesePageBeginsWithAClosingSign(t *testing.T) {
	home(t)
	for _, path := range everyCommand(cli{name: "fermata"}.root()) {
		for line := range strings.SplitSeq(call(t, "", append(path, "--help", "--language", "zh-Hans")...).out, "\n") {
			if s := strings.TrimSpace(line); s != "" && strings.ContainsAny(s[:min(3, len(s))], closing) || ansi.StringWidth(line) > pageWidth {
				t.Errorf("%v: %q", path, line)
			}
		}
	}
	text := strings.Repeat("字", 19) + "）。" + strings.Repeat("字", 19) + "。"
	for room := 20; room < 60; room++ {
		for line := range strings.SplitSeq(wrapped(text, room), "\n") {
			if strings.HasPrefix(line, "。") || strings.HasPrefix(line, "）") || ansi.StringWidth(line) > room {
				t.Errorf("in %d: %q", room, line)
			}
		}
		if got := strings.ReplaceAll(wrapped(text, room), "\n", ""); got != text {
			t.Errorf("in %d it became %q", room, got)
		}
	}
}

func TestDemoEndsCalmly(t *testing.T) {
	home(t)
	ctx, interrupt := context.WithCancel(t.Context())
	screen := &interruption{at: "Ctrl-C", do: func() { time.AfterFunc(300*time.Millisecond, interrupt) }}
	var problems bytes.Buffer
	exit := run(ctx, "fermata", []string{"demo", "--answer", "none"}, strings.NewReader(""), screen, &problems)
	want := "\n" + words.In(words.English).Say(words.DemoStopped) + "\n"
	if exit != exitFault || !strings.HasSuffix(screen.String(), want) || problems.Len() > 0 {
		t.Errorf("exit %d, said %q and %q", exit, screen.String(), problems.String())
	}
}
