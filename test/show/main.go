// Command show runs the real screen in a terminal that only exists in this
// program, and keeps what it looks like:
//
//	go run ./test/show [-size 80x24] [-out docs/screens] [-png]
//
// It builds the programs, starts a core in a home of its own, has several agents
// ask through the real agent-hook, presses keys, and writes each moment to
// OUT/SIZE/MOMENT.txt, with times masked. -png also has chromium draw the moment
// that shows this size best, to OUT/SIZE.png. The package's test goes the same
// way and compares.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	text := flag.String("size", "80x24", "columns x rows of the terminal")
	out := flag.String("out", "docs/screens", "where the captures go")
	png := flag.Bool("png", false, "also draw one picture")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := start(ctx, *text, *out, *png)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "show:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, text, out string, png bool) error {
	s, err := parseSize(text)
	if err != nil {
		return err
	}
	programs, err := os.MkdirTemp("", "fermata-show-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(programs)
	if err := build(ctx, programs); err != nil {
		return err
	}
	return run(ctx, programs, s, func(c capture) error {
		p, err := c.take()
		if err != nil {
			return fmt.Errorf("%w; the screen:\n%s", err, p.Text())
		}
		file := filepath.Join(out, s.String(), c.name+".txt")
		if err := write(file, c.text(p)); err != nil {
			return err
		}
		fmt.Println(file)
		if !png || c.name != best(s) {
			return nil
		}
		file = filepath.Join(out, s.String()+".png")
		fmt.Println(file)
		return writePNG(file, p, s, c.light)
	})
}

// best is the moment that shows a size best.
func best(s size) string {
	switch {
	case s.columns >= 120:
		return "edit"
	case s.columns <= narrow:
		return "dialog"
	}
	return "list"
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
