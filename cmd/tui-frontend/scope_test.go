package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func TestB109ADirectoryMeansItsProject(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	deep, bare, link := filepath.Join(root, "repo", "a", "b"), filepath.Join(root, "bare"), filepath.Join(root, "link")
	for _, dir := range []string{deep, bare, filepath.Join(root, "repo", ".git")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(deep, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
	repo := filepath.Join(root, "repo")
	for given, want := range map[string]string{
		"": "", ".": repo, deep: repo, link: repo, bare: bare, "..": repo, "web-shop": "web-shop",
	} {
		if got := directory(given); got != want {
			t.Errorf("%q is project %q, want %q", given, got, want)
		}
	}
	w := wish{project: "."}
	if err := w.choose(t.Context(), words.Words{}); err != nil || w.scope != string(events.ProjectToken(repo)) {
		t.Errorf("scope %q, %v", w.scope, err)
	}
	if w = (wish{}); w.choose(t.Context(), words.Words{}) != nil || w.scope != events.DoorAll {
		t.Errorf("scope %q without a wish", w.scope)
	}
}

// A project's path is where an agent runs: what stands in it must not reach the terminal.
func TestB109AProjectsNameMovesNoCursor(t *testing.T) {
	var open []events.SessionHead
	for _, path := range []string{"/a/\x1b]0;owned\a/shop", "/b/\u202e\n/shop"} {
		open = append(open, events.SessionHead{Project: events.ProjectToken(path), ProjectPath: path})
	}
	for _, language := range []words.Language{words.English, words.Chinese} {
		err := (&wish{}).narrow(open, "shop", words.In(language))
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\a\n\u202e") || !strings.Contains(err.Error(), "owned") {
			t.Errorf("%q", err)
		}
	}
}
