package plain

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func TestB101B102AQuestionIsWrittenWhole(t *testing.T) {
	bubble(t, func(p *person) {
		q := question("q1", "Bash", `{"command":"line 1\nline 2\n","long":"`+strings.Repeat("word ", 3000)+`end","none":""}`)
		q.Path = "main > reviewer#1"
		p.asks(q)
		text := p.hears()
		for _, want := range []string{
			"question 1 · Bash · main > reviewer#1   claude · myproj", "command · rows: 2 · bytes: 14", "│ line 1\n", "│ line 2\n",
			"⏎ ends with a line break", "long · rows: 1 · bytes: 15,003", "end\n", "(empty)",
			"asked by   │ ask-before-push   project .fermata/hooks.yaml:6", "reason     │ “This changes the production branch.”",
			"c 1 continue · x 1 cancel",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
		if n := strings.Count(text, "word"); n != 3001 { // once in what can be typed
			t.Errorf("%d of 3000 words are shown", n)
		}
		if len(p.desk.drawn) != 1 || p.desk.drawn[0] != q.Version.Digest {
			t.Errorf("reported as drawn: %v", p.desk.drawn)
		}
		p.types("c 1")
		p.wantHeard("1: you continued")
		sent := p.desk.sent()
		if len(sent) != 1 || sent[0].Question != "q1" || sent[0].Digest != q.Version.Digest || !sent[0].Human || sent[0].Claim != 0 {
			t.Errorf("sent %+v", sent)
		}
	})
}

func TestF8AnswersOfAPerson(t *testing.T) {
	for line, want := range map[string]events.Respond{
		"c 1":                        {Answer: events.AnswerContinue},
		"  X\t1 ":                    {Answer: ""},
		" X 1 \r":                    {Answer: events.AnswerCancel},
		"w 1 use the staging db":     {Answer: events.AnswerCancel, Text: "use the staging db"},
		"W 1   c 2, and\tthen x 3  ": {Answer: events.AnswerCancel, Text: "c 2, and\tthen x 3"},
	} {
		t.Run("F8 "+line, func(t *testing.T) {
			bubble(t, func(p *person) {
				p.asks(push())
				p.types(line)
				sent := p.desk.sent()
				if want.Answer == "" {
					if len(sent) != 0 {
						t.Errorf("sent %+v", sent)
					}
					return
				}
				if len(sent) != 1 || sent[0].Answer != want.Answer || sent[0].Text != want.Text {
					t.Errorf("sent %+v", sent)
				}
			})
		})
	}
}

// TestB5AnAnswerNeverGoesToAnotherQuestion: whatever is typed for a question that
// has ended answers nothing.
func TestB5AnAnswerNeverGoesToAnotherQuestion(t *testing.T) {
	t.Run("B77 B80 B107 it ended and the next one is there", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.asks(push(), remove())
			p.desk.withdraw("q1", events.EndInterrupted)
			p.waits()
			p.wantHeard("1: ended: the agent was interrupted", "question 2 · shell")
			p.types("c 1", "x 1", "w 1 never", "c", "C 01", "c 1 2", "c 2 1")
			p.wantHeard("No question 1 is open. Nothing was answered.", "Which one?")
			p.wantAnswers()
			p.types("x 2")
			p.wantAnswers(events.AnswerCancel)
		})
	})
	t.Run("B107 numbers are never used twice", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.asks(push())
			p.desk.withdraw("q1", events.EndTurnEnded)
			synctest.Wait()
			p.asks(remove())
			p.types("c 1")
			p.wantAnswers()
			p.wantHeard("question 2", "No question 1 is open")
		})
	})
	t.Run("B80 F1 it ends while the answer is on its way", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.asks(push(), remove())
			p.desk.mu.Lock()
			p.desk.hold = make(chan struct{})
			p.desk.refuse = &events.Refused{Code: events.RejectAlreadyAnswered, Who: "ana", Answer: events.AnswerCancel}
			p.desk.mu.Unlock()
			p.types("c 1", "c 1")
			p.desk.end("q1", events.End{Result: events.ResultAnswered, Reason: events.EndCancel, Who: "ana", Answer: events.AnswerCancel})
			synctest.Wait()
			close(p.desk.hold)
			p.wantHeard("1: sending your answer", "1: already answered: ana cancelled")
			if sent := p.desk.sent(); len(sent) != 1 || sent[0].Question != "q1" {
				t.Errorf("sent %+v", sent)
			}
		})
	})
}

func TestF9NothingThatWasTypedAheadAnswers(t *testing.T) {
	t.Run("F9 before there was a question", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.types("c 1", "1 yes, fix the cache", "y", "", " ", "a")
			p.asks(push())
			p.wantAnswers()
		})
	})
	t.Run("F9 before it could be read", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.desk.ask(push(), remove())
			synctest.Wait()
			<-time.After(grace - time.Millisecond)
			p.types("c 1", "c 2")
			p.wantHeard("Question 1 had only just appeared. Nothing was answered.", "Question 2 has not been shown yet. Nothing was answered.")
			p.wantAnswers()
			p.waits()
			p.types("c 2")
			p.wantAnswers(events.AnswerContinue)
		})
	})
	t.Run("F9 while the output was in the way", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.out.mu.Lock()
			p.out.still = make(chan struct{})
			p.out.mu.Unlock()
			p.desk.ask(push())
			p.types("c 1")
			<-time.After(time.Minute)
			close(p.out.still)
			p.wantAnswers()
			p.wantHeard("question 1", "Nothing was answered.")
		})
	})
	t.Run("F9 an empty line is no answer, and neither is anything else", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.asks(push())
			p.types("", "y", "yes", "1 yes", "continue 1", "c  1x", "c 1.", "c -1", "c +1", "c １", "cc 1", "\x1b[A", "c 1\x00", "ⅽ 1", "c 99999999999999999999")
			p.wantAnswers()
			p.wantHeard("Not understood; nothing was answered.")
		})
	})
}

func TestInputThatEnds(t *testing.T) {
	t.Run("B6 a line that was cut off answers nothing", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.asks(push())
			_, _ = io.WriteString(p.in, "c 1")
			if err := p.leave(); err != nil {
				t.Errorf("ended with %v", err)
			}
			p.wantHeard("The input has ended.")
			p.wantAnswers()
		})
	})
	t.Run("B6 an answer on its way is waited for", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.asks(push())
			hold := make(chan struct{})
			p.desk.hold = hold
			p.types("c 1")
			time.AfterFunc(sendFor-time.Second, func() { close(hold) })
			if err := p.leave(); err != nil {
				t.Errorf("ended with %v", err)
			}
			p.wantHeard("1: you continued")
		})
	})
	t.Run("F1 one that nobody confirms is told, and ends", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.asks(push())
			p.desk.hold = make(chan struct{})
			p.types("c 1", "q")
			if err := p.leave(); err == nil || !strings.Contains(err.Error(), "whether it counts is not known") {
				t.Errorf("ended with %v", err)
			}
		})
	})
	t.Run("an input that fails is an error", func(t *testing.T) {
		bubble(t, func(p *person) {
			_ = p.in.CloseWithError(errors.New("the line is down"))
			if err := p.leave(); err == nil || !strings.Contains(err.Error(), "the line is down") {
				t.Errorf("ended with %v", err)
			}
		})
	})
}

func TestB6ALineThatIsTooLongAnswersNothing(t *testing.T) {
	bubble(t, func(p *person) {
		p.asks(push())
		long := strings.Repeat("a", maxLine)
		p.types(long+"c 1", "w 1 "+strings.Repeat("b", maxWords+1), "w 1 "+long+"\rc 1", "c 1"+strings.Repeat(" ", maxLine)+"2")
		p.wantAnswers()
		p.wantHeard("The line is longer than 16,384 bytes. Nothing was answered.")
		p.types("w 1 \x1b[2J", "w 1 \xff", "w 1 a\x00b", "w 1", "w")
		p.wantAnswers()
		p.wantHeard("no text", "on the same line", "Which one?")
		p.types("w 1 " + strings.Repeat("b", maxWords))
		p.wantAnswers(events.AnswerCancel)
	})
}

func TestB6LinesThatComeTooFastAreDropped(t *testing.T) {
	lines := make(chan typed, maxTyped)
	r := reader{lines: lines}
	r.take([]byte(strings.Repeat("x 1\n", maxTyped)+"c 2\n"), time.Now())
	for range maxTyped {
		if l := <-lines; l.text != "x 1" || l.lost {
			t.Fatalf("%+v", l)
		}
	}
	r.take([]byte("c 3\nc 4\n"), time.Now())
	if l := <-lines; !l.lost {
		t.Errorf("it is not said that a line was dropped: %+v", l)
	}
	if l := <-lines; l.lost || l.text != "c 4" {
		t.Errorf("%+v", l)
	}
	bubble(t, func(p *person) {
		s := newScreen(t.Context(), Options{Client: p.desk, Out: &p.out})
		s.hear(typed{text: "q", lost: true})
		if s.quit {
			t.Error("a line behind a gap was obeyed")
		}
	})
}

// TestF7NothingThatIsShownMovesTheCursor: whatever agents, hooks and people say.
func TestF7NothingThatIsShownMovesTheCursor(t *testing.T) {
	const evil = "a\x1b[2J\x1b]0;owned\x07\r\u202e\u0085\u009b31mb\x00\u2028"
	bubble(t, func(p *person) {
		q := push()
		q.Args = []byte(`{"a` + strings.ReplaceAll(strings.ReplaceAll(evil, "\x1b", `\u001b`), "\x00", `\u0000`) + `":1,"command":"x\u001b[2J\r\u202e\u0085\n question 2 · Bash\n c 2","z":"ls` + strings.Repeat(" ", 76) + `question 2 · Bash"}`)
		q.Args = []byte(strings.NewReplacer("\x07", `\u0007`, "\r", `\r`).Replace(string(q.Args)))
		q.Version.Digest = events.DigestOf(q.Args)
		q.Tool.Name, q.Tool.Kind, q.Path, q.Reason, q.Cwd = evil, evil, evil, evil+"\n c 1", evil
		q.Agent, q.ProjectPath, q.Hook.ID, q.Hook.File, q.DeadlineFrom = evil, "/"+evil, evil, "/"+evil, evil
		q.Deadline = events.At(time.Now().Add(time.Minute))
		q.ClaimedBy = &events.Claim{Frontend: "01j00000000000000000000000", Name: evil, Principal: "ana", Kind: evil}
		q.Attempt, q.Previous = 1, 0
		q.Changed = []events.Change{{Name: "command", Old: []byte(`"\u001b[2J"`), New: []byte(`"\r"`)}}
		p.desk.lines = []events.Line{{Operation: "o", Agent: evil, ProjectPath: evil, Tool: events.Tool{Name: evil}, About: evil, Who: evil, Text: evil}}
		p.asks(q)
		p.types("? 1", "list", "h", "1")
		p.desk.mu.Lock()
		p.desk.refuse = &events.Refused{Code: events.RejectAlreadyAnswered, Who: evil, Answer: evil}
		p.desk.mu.Unlock()
		p.waits()
		p.types("c 1")
		p.desk.mu.Lock()
		p.desk.refuse = errors.New(evil)
		p.desk.mu.Unlock()
		p.waits()
		p.types("c 1")
		p.desk.end("q1", events.End{Result: events.ResultAnswered, Who: evil, Answer: evil})
		synctest.Wait()
		text := p.out.String()
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) || r == '\u202e' || r == '\u2028' }); i >= 0 {
			t.Errorf("%q is written as it is: …%q", text[i:i+1], text[max(0, i-40):i+10])
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "question 2") || strings.HasPrefix(strings.TrimSpace(line), "c 2") {
				t.Errorf("a value looks like a line of ours: %q", line)
			}
		}
		if len(p.desk.sent()) != 2 {
			t.Errorf("sent %+v", p.desk.sent())
		}
	})
}

func TestF1TwoFrontendsOfLinesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		a, b := sit(t, d), sit(t, d)
		a.asks(push(), remove())
		a.types("c 1")
		b.wantHeard("question 1", "1: you continued", "question 2")
		b.types("x 1")
		b.waits()
		b.types("x 2")
		a.wantHeard("1: you continued", "question 2", "2: you cancelled")
		a.wantAnswers(events.AnswerContinue, events.AnswerCancel)
		if err := errors.Join(a.leave(), b.leave()); err != nil {
			t.Error(err)
		}
	})
}

func TestB106B107OneAfterTheOther(t *testing.T) {
	bubble(t, func(p *person) {
		third := question("q3", "Edit", `{"path":"a.go"}`)
		p.asks(push())
		p.asks(remove(), third)
		text := p.hears()
		if strings.Contains(text, "rm -r build") || !strings.Contains(text, "3 waiting") {
			t.Errorf("wrote\n%s", text)
		}
		p.types("l 1")
		p.wantHeard("1 put aside; it still waits.", "question 2")
		p.types("list")
		p.wantHeard("1  claude · myproj   Bash   git push --force origin main   waiting 0:0", "3  claude · myproj   Edit   a.go")
		p.types("1")
		p.wantHeard("question 1 · Bash")
		p.waits()
		p.types("x 1")
		p.wantHeard("1: you cancelled", "question 2")
		p.desk.withdraw("q3", events.EndTurnEnded)
		if text := p.hears(); strings.Contains(text, "3:") {
			t.Errorf("told of a question that nobody saw: %q", text)
		}
	})
}

func TestB45B46AskedAgain(t *testing.T) {
	bubble(t, func(p *person) {
		q := push()
		q.Attempt, q.Previous, q.Version.N = 1, 0, 1
		q.Changed = []events.Change{{Name: "command"}, {Name: "cwd"}}
		p.desk.args[0] = []byte(`{"command":"git push origin main"}`)
		p.asks(q)
		p.wantHeard("asked again, 1 of 3", "command −", "git push", "command +", "git push --force origin main", "(not there before)")
	})
}

func TestF11WhatBecameOfAnAnswer(t *testing.T) {
	bubble(t, func(p *person) {
		p.asks(push())
		p.types("c 1")
		line := events.Line{
			Operation: "op-q1", Question: "q1", Who: "uid:1000", State: events.LineDelivered, Agent: "claude", Tool: events.Tool{Name: "Bash"},
			Committed: "d", Ran: "d", Bytes: 22, Outcome: events.OutcomeOK, About: "git push",
		}
		p.desk.change(func() { p.desk.lines = []events.Line{line} })
		p.hears()
		line.State = events.LineFinished
		p.desk.change(func() { p.desk.lines = []events.Line{line} })
		p.wantHeard("1: ran, 22 bytes, same digest")
		p.types("h")
		p.wantHeard("✓ claude", "Bash   git push", "you continued → delivered → ran, 22 bytes, same digest")
		p.desk.change(func() {})
		if text := p.hears(); text != "" {
			t.Errorf("told twice: %q", text)
		}
	})
}

func TestF1SomebodyElseAnswers(t *testing.T) {
	bubble(t, func(p *person) {
		p.asks(push())
		p.hears()
		for range 3 {
			for _, c := range []*events.Claim{{Frontend: "01j00000000000000000000000", Name: "tui", Principal: "ana", Kind: events.FrontendACP, Since: events.At(time.Now())}, nil} {
				p.desk.change(func() { p.desk.questions[0].ClaimedBy = c })
				synctest.Wait()
			}
		}
		if text := p.hears(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "1: being answered by ana in the editor, 0:00") {
			t.Errorf("wrote %q", text)
		}
	})
}

func TestF7WhatIsNotAnswerable(t *testing.T) {
	t.Run("F7 other bytes than were asked about", func(t *testing.T) {
		bubble(t, func(p *person) {
			q := push()
			q.Version.Digest = events.DigestOf([]byte("{}"))
			p.asks(q)
			p.types("c 1")
			p.waits()
			p.types("c 1")
			p.wantHeard("The bytes are not those that were asked about.")
			p.wantAnswers()
			if len(p.desk.drawn) != 0 {
				t.Error("reported as drawn")
			}
		})
	})
	t.Run("F7 a gate that is not known here", func(t *testing.T) {
		bubble(t, func(p *person) {
			q := push()
			q.Gate = "agent_question"
			p.asks(q)
			p.types("c 1")
			p.wantHeard("too old for this kind of question (agent_question)")
			p.wantAnswers()
		})
	})
	t.Run("F7 what could not be fetched", func(t *testing.T) {
		bubble(t, func(p *person) {
			q := push()
			q.Changed, q.Previous, q.Version.N = []events.Change{{Name: "command"}}, 0, 1
			p.asks(q)
			p.types("c 1")
			p.waits()
			p.wantHeard("1: could not be fetched:", "1 tries again", "has not been shown yet")
			p.wantAnswers()
			p.desk.args[0] = []byte(`{}`)
			p.types("1")
			p.waits()
			p.types("x 1")
			p.wantAnswers(events.AnswerCancel)
		})
	})
	t.Run("F7 what could not be written", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := sit(t, newDesk())
			p.out.mu.Lock()
			p.out.err = errors.New("the terminal is gone")
			p.out.mu.Unlock()
			p.desk.ask(push())
			synctest.Wait()
			if err := p.leave(); err == nil || !strings.Contains(err.Error(), "the terminal is gone") {
				t.Errorf("ended with %v", err)
			}
			if len(p.desk.drawn) != 0 {
				t.Error("reported as drawn")
			}
		})
	})
}

func TestNoCoreInReach(t *testing.T) {
	bubble(t, func(p *person) {
		p.asks(push())
		p.desk.change(func() { p.desk.behind = true }) // a session has opened and is not listed yet
		p.desk.change(func() { p.desk.behind = false })
		if got := p.out.String(); strings.Contains(got, "core") {
			t.Errorf("a connection was never lost:\n%s", got)
		}
		p.desk.change(func() { p.desk.away = true })
		p.wantHeard("no core: reconnecting")
		p.desk.change(func() { p.desk.away = false })
		p.wantHeard("connected to the core again")
		p.types("x 1")
		p.wantAnswers(events.AnswerCancel)
	})
}

func TestB106OnlyOneQuestion(t *testing.T) {
	only := func(id events.ID) func(*Options) { return func(o *Options) { o.Only = id } }
	ended := func(p *person) {
		p.t.Helper()
		select {
		case err := <-p.done:
			p.done <- err
			if err != nil {
				p.t.Errorf("ended with %v", err)
			}
		case <-time.After(time.Minute):
			p.t.Error("does not end")
		}
	}
	open := func(o *Options) { o.Inbox.(*desk).questions = []events.Question{push(), remove()} }
	t.Run("B106 ends with its answer", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.waits()
			p.types("c 1")
			ended(p)
			if text := p.hears(); !strings.Contains(text, "rm -r build") || strings.Contains(text, "git push") {
				t.Errorf("wrote\n%s", text)
			}
			if sent := p.desk.sent(); len(sent) != 1 || sent[0].Question != "q2" {
				t.Errorf("sent %+v", sent)
			}
		}, open, only("q2"))
	})
	t.Run("B107 ends with its withdrawal", func(t *testing.T) {
		bubble(t, func(p *person) {
			p.desk.withdraw("q2", events.EndTurnEnded)
			ended(p)
			p.wantHeard("1: ended: the turn ended")
		}, open, only("q2"))
	})
	t.Run("B106 ends when it is put aside", func(t *testing.T) {
		bubble(t, func(p *person) { p.types("l 1"); ended(p) }, open, only("q2"))
	})
	t.Run("B107 is not open any more", func(t *testing.T) {
		bubble(t, func(p *person) { ended(p); p.wantHeard("no longer open") }, open, only("q9"))
	})
}

func TestB125SpeaksChinese(t *testing.T) {
	bubble(t, func(p *person) {
		p.asks(push())
		p.types("help")
		p.wantHeard("问题 1 · Bash", "c 1 继续 · x 1 取消", "list 待答的问题")
	}, func(o *Options) { o.Words = words.In(words.Chinese) })
}

func TestB106ManyQuestions(t *testing.T) {
	bubble(t, func(p *person) {
		var list []events.Question
		for i := range 200 {
			list = append(list, question(fmt.Sprintf("q%03d", i), "Bash", `{"command":"ls"}`))
		}
		p.asks(list...)
		for i := range 200 {
			p.types(fmt.Sprintf("c %d", i+1))
			p.waits()
		}
		if n := len(p.desk.sent()); n != 200 {
			t.Errorf("%d answers", n)
		}
	})
}

// TestF7ALongNameStandsBehindASign: no row that the name of an argument begins looks
// like a line of ours, and the name is whole.
func TestF7ALongNameStandsBehindASign(t *testing.T) {
	same := strings.Repeat("c 1 continue ", 16)
	q := push()
	q.Args = []byte(`{"` + same + `ONE":"first","` + same + `TWO":"second\n⋯ 79,000 bytes ⋯\n[… 79,000 bytes]"}`)
	for _, width := range []int{leastWidth, 40, 80, 200} {
		out := &strings.Builder{}
		p := page{out: out, width: width}
		p.card("", q, card.New(q, q.Args, "", words.Words{}))
		flat := ""
		for row := range strings.SplitSeq(out.String(), "\n") {
			if cells(row) > width {
				t.Errorf("%d: too wide: %q", width, row)
			}
			if before, _, found := strings.Cut(row, "continue"); found && !strings.ContainsAny(before, "│┊┌") {
				t.Errorf("%d: passes for ours: %q", width, row)
			}
			if before, _, found := strings.Cut(row, "79,000"); found && !strings.ContainsAny(before, "│┊") {
				t.Errorf("%d: passes for ours: %q", width, row)
			}
			flat += strings.TrimLeft(row, " │┊┌")
		}
		for _, want := range []string{"ONE", "TWO", "first", "second"} {
			if !strings.Contains(flat, want) {
				t.Errorf("%d: %q is not shown", width, want)
			}
		}
	}
}

func TestNothingWaitsIsSaid(t *testing.T) {
	bubble(t, func(p *person) { p.wantHeard("Nothing waits for you.") })
}
