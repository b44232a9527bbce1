// Command go-agent is an agent with two tools that asks Fermata before each call:
//
//	go-agent DIRECTORY ['list_files {}' 'delete_file {"path": "a.txt"}' ...]
//
// A call is a tool's name and its arguments as JSON. Without calls on the command
// line they are read from stdin, one a line. It prints what a model would read,
// and exits 1 when a call was refused or failed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/core/agents"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go-agent DIRECTORY [CALL ...]")
		os.Exit(2)
	}
	failed, err := run(ctx, os.Args[1], calls(os.Args[2:], os.Stdin), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if failed {
		os.Exit(1)
	}
}

// run makes the calls, each after the one before.
func run(ctx context.Context, dir string, calls io.Reader, out io.Writer) (failed bool, err error) {
	client, err := agents.Dial(ctx, agents.DialOptions{})
	if err != nil {
		return false, err
	}
	defer client.Close()
	session, err := client.Open(ctx, agents.SessionOptions{Native: fmt.Sprintf("example-%d", time.Now().UnixNano()), Cwd: dir})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	w := workplace{session: session, dir: dir}
	for in := bufio.NewScanner(calls); in.Scan() && ctx.Err() == nil; {
		tool, args, _ := strings.Cut(in.Text(), " ")
		result, err := w.call(ctx, tool, args)
		switch refused := (*agents.Refused)(nil); {
		case errors.As(err, &refused):
			result.Text = fmt.Sprintf("refused (%s): %s", refused.Code, refused.Message)
		case err != nil:
			result.Text = "failed: " + err.Error()
		}
		failed = failed || err != nil
		fmt.Fprintln(out, result.Text)
	}
	return failed, nil
}

// calls are the lines of the command line, or those of stdin.
func calls(args []string, stdin io.Reader) io.Reader {
	if len(args) == 0 {
		return stdin
	}
	return strings.NewReader(strings.Join(args, "\n"))
}

// workplace is the directory that the agent works in.
type workplace struct {
	session *agents.Session
	dir     string
}

// file is what delete_file is called with.
type file struct {
	Path string `json:"path"`
}

// call runs a tool by its name. Everything about Fermata is in these lines.
func (w workplace) call(ctx context.Context, tool, args string) (agents.Result, error) {
	switch tool {
	case "list_files":
		return agents.Do(ctx, w.session, agents.Call{Tool: tool, Kind: "filesystem.read"}, file{w.dir}, list)
	case "delete_file":
		var f file
		if err := json.Unmarshal([]byte(args), &f); err != nil {
			return agents.Result{}, err
		}
		return agents.Do(ctx, w.session, agents.Call{Tool: tool, Kind: "filesystem.write"}, f, w.remove)
	}
	return agents.Result{}, fmt.Errorf("there is no tool %q", tool)
}

func list(_ context.Context, f file) (agents.Result, error) {
	entries, err := os.ReadDir(f.Path)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return agents.Result{Text: strings.Join(names, "\n")}, err
}

// remove is called with what was checked, which a hook or a person may have
// changed: nothing of the call that the model made is used here.
func (w workplace) remove(_ context.Context, f file) (agents.Result, error) {
	if !filepath.IsLocal(f.Path) {
		return agents.Result{}, fmt.Errorf("%s is not below %s", f.Path, w.dir)
	}
	return agents.Result{Text: "deleted " + f.Path}, os.Remove(filepath.Join(w.dir, f.Path))
}
