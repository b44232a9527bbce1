package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// lookFor is how long a core may take to name its sessions.
const lookFor = 10 * time.Second

// choose turns the names of a project and a session into a scope.
func (wish *wish) choose(ctx context.Context, w words.Words) error {
	project := directory(wish.project)
	if wish.session == "" && (project == "" || filepath.IsAbs(project)) {
		return wish.narrow(nil, project, w) // nothing has to be looked up
	}
	sessions, err := wish.sessions(ctx)
	if err != nil {
		return errors.New(w.Say(words.CannotConnect, err))
	}
	return wish.narrow(sessions, project, w)
}

func (wish *wish) narrow(sessions []events.SessionHead, project string, w words.Words) error {
	if wish.scope != "" {
		return nil
	}
	var err error
	wish.scope, err = frontends.ScopeOf(sessions, project, wish.session)
	no, ok := errors.AsType[*frontends.ScopeError](err)
	switch {
	case !ok:
		return err
	case len(no.Fits) > 0:
		return errors.New(w.Say(words.ScopeSeveral, no.Given, fits(no.Fits)))
	}
	return errors.New(w.Say(words.ScopeNone, no.Given))
}

// fits lists names that an agent chose: a project's is its directory.
func fits(names []string) string {
	var lines []string
	for _, name := range names {
		lines = append(lines, card.Line(name))
	}
	return strings.Join(lines, ", ")
}

// directory is the project that holds a directory, links resolved: its nearest
// ancestor with .git. What is no directory is a project's name and stays as it is.
func directory(given string) string {
	if given == "" {
		return ""
	}
	dir, err := filepath.Abs(given)
	if err != nil {
		return given
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return given
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return given
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}

// sessions asks for what is open, as a frontend that nothing is left to.
func (wish *wish) sessions(ctx context.Context) ([]events.SessionHead, error) {
	client, err := wish.client(newID(), frontends.Options{Scope: events.DoorAll})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	ended := make(chan error, 1)
	go func() { ended <- client.Run(ctx) }()
	sessions, err := client.Sessions(ctx)
	cancel()
	return sessions, errors.Join(err, <-ended)
}
