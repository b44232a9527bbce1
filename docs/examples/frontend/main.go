// Command frontend shows each question on stdout and takes lines on stdin: "c 3"
// continues question 3, "x 3" cancels it.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func main() {
	ctx := context.Background()
	client, err := frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", os.Getenv("FERMATA_RUNTIME_DIR")+"/nats.sock")
		},
		ID: events.NewID(time.Now(), [10]byte([]byte(rand.Text()))), Kind: events.FrontendCLI, Capable: true, Name: "example",
	})
	if err != nil {
		panic(err)
	}
	go func() { panic(client.Run(ctx)) }()
	lines, changed := make(chan typed), make(chan struct{})
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- typed{in.Text(), time.Now()}
		}
		os.Exit(0) // nobody is here any more, so nothing may be left to us
	}()
	go client.Changes(ctx, func() { changed <- struct{}{} })
	for s := (screen{client: client, known: map[events.ID]bool{}}); ; {
		select {
		case <-changed:
			s.look(ctx)
		case line := <-lines:
			s.answer(ctx, line)
		}
	}
}

type typed struct {
	line string
	at   time.Time
}

// screen is what was shown. Question n is list[n-1]: no number is used twice, so that an
// answer cannot meet another question than the one that was read.
type screen struct {
	client *frontends.Client
	list   []asked
	known  map[events.ID]bool
}

type asked struct {
	events.Question
	shown time.Time
	over  bool
}

// grace is how long a question must have been shown before a line answers it.
const grace = 500 * time.Millisecond

// look shows what is new, and says what has ended.
func (s *screen) look(ctx context.Context) {
	for i := range s.list {
		if end, over := s.client.Inbox().Ended(s.list[i].ID); over && !s.list[i].over {
			s.list[i].over = true
			fmt.Printf("%d is over: %s %s\n", i+1, end.Reason, end.Who)
		}
	}
	for _, q := range s.client.Inbox().Questions() {
		if s.known[q.ID] {
			continue
		}
		args, err := s.client.Args(ctx, q.ID, q.Version.N)
		c := card.New(q, args, "", words.Words{})
		if err != nil || !c.Genuine {
			continue // the next change tries again
		}
		show(len(s.list)+1, c)
		s.known[q.ID], s.list = true, append(s.list, asked{q, time.Now(), false})
		_ = s.client.Drawn(ctx, q.ID, c.Digest) // a report: the answer names the digest again
	}
}

func show(number int, c card.Card) {
	fmt.Printf("%d: %s   asked by %s\n", number, c.Title, c.Hook)
	rows(c.ReasonLabel, c.Reason)
	if c.ChangedIn != "" {
		rows(c.ChangedIn, strings.Join(c.ChangedBy, "\n"))
	}
	for _, f := range c.Fields {
		rows(fmt.Sprintf("%s (%d bytes)", f.Name, f.Bytes), f.Text)
	}
}

// rows marks where a row goes on: what a terminal wraps by itself could pass for a row
// of ours.
func rows(name, text string) {
	fmt.Println("  " + name + ":")
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\t", "⇥ "), "\n") {
		fmt.Println("    | " + strings.ReplaceAll(ansi.Hardwrap(line, 70, true), "\n", "\n    ↳ "))
	}
}

// answer carries what a person typed.
func (s *screen) answer(ctx context.Context, t typed) {
	verb, number, _ := strings.Cut(t.line, " ")
	n, _ := strconv.Atoi(number)
	choice := map[string]events.Answer{"c": events.AnswerContinue, "x": events.AnswerCancel}[verb]
	if choice == "" || n < 1 || n > len(s.list) || s.list[n-1].over || t.at.Before(s.list[n-1].shown.Add(grace)) {
		fmt.Println("nothing was answered")
		return
	}
	q := s.list[n-1]
	s.client.Input()
	if _, err := s.client.Answer(ctx, events.Respond{Question: q.ID, Digest: q.Version.Digest, Answer: choice, Human: true}); err != nil {
		fmt.Println(err) // such as: already_answered by uid:1000
	}
}
