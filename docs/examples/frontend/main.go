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
	lines := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
		os.Exit(0) // nobody is here any more, so nothing may be left to us
	}()
	changed := make(chan struct{})
	go func() {
		for _, err := range client.Updates(ctx) {
			if err != nil {
				panic(err)
			}
			changed <- struct{}{}
		}
	}()
	shown, last := map[int]events.Question{}, 0
	for {
		select {
		case <-changed:
			last = look(ctx, client, shown, last)
		case line := <-lines:
			answer(ctx, client, shown, line)
		}
	}
}

// look shows what is new, and says what has ended. Numbers are never used twice, so
// that an answer cannot meet another question than the one that was read.
func look(ctx context.Context, client *frontends.Client, shown map[int]events.Question, last int) int {
	known := map[events.ID]bool{}
	for n, q := range shown {
		known[q.ID] = true
		if end, over := client.Inbox().Ended(q.ID); over {
			delete(shown, n)
			fmt.Printf("%d is over: %s %s\n", n, end.Reason, end.Who)
		}
	}
	for _, q := range client.Inbox().Questions() {
		args, err := client.Args(ctx, q.ID, q.Version.N)
		c := card.New(q, args, "", words.Words{})
		if known[q.ID] || err != nil || !c.Genuine {
			continue
		}
		last++
		shown[last] = q
		fmt.Printf("%d: %s   asked by %s: %s\n", last, c.Title, c.Hook, card.Line(q.Reason))
		for _, f := range c.Fields {
			fmt.Printf("  %s (%d bytes):\n    | %s\n", f.Name, f.Bytes, strings.ReplaceAll(f.Text, "\n", "\n    | "))
		}
		_ = client.Drawn(ctx, q.ID, c.Digest) // a report: the answer names the digest again
	}
	return last
}

// answer carries what a person typed.
func answer(ctx context.Context, client *frontends.Client, shown map[int]events.Question, line string) {
	verb, number, _ := strings.Cut(line, " ")
	n, _ := strconv.Atoi(number)
	choice := map[string]events.Answer{"c": events.AnswerContinue, "x": events.AnswerCancel}[verb]
	q, open := shown[n]
	if !open || choice == "" {
		fmt.Println("nothing was answered")
		return
	}
	client.Input()
	if _, err := client.Answer(ctx, events.Respond{Question: q.ID, Digest: q.Version.Digest, Answer: choice, Human: true}); err != nil {
		fmt.Println(err) // such as: already_answered by uid:1000
	}
}
