package run_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/cmd/internal/place/run"
)

func TestFind(t *testing.T) {
	long := "/" + strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		env  map[string]string
		want run.Dirs
		word string // of the error
	}{
		"home alone": {map[string]string{"HOME": "/h"}, run.Dirs{Config: "/h/.config/fermata", State: "/h/.local/state/fermata", Runtime: "/tmp/fermata-7"}, ""},
		"XDG": {
			map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/run/user/7", "TMPDIR": "/t"},
			run.Dirs{Config: "/c/fermata", State: "/s/fermata", Runtime: "/run/user/7/fermata"},
			"",
		},
		"relative XDG is ignored": {
			map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "c", "XDG_RUNTIME_DIR": "r", "TMPDIR": "/var/T/"},
			run.Dirs{Config: "/h/.config/fermata", State: "/h/.local/state/fermata", Runtime: "/var/T/fermata-7"},
			"",
		},
		"ours": {
			map[string]string{"FERMATA_CONFIG_DIR": "/c", "FERMATA_STATE_DIR": "/s", "FERMATA_RUNTIME_DIR": "/r", "XDG_RUNTIME_DIR": "/x"},
			run.Dirs{Config: "/c", State: "/s", Runtime: "/r"},
			"",
		},
		"ours, relative": {map[string]string{"HOME": "/h", "FERMATA_STATE_DIR": "s"}, run.Dirs{}, "FERMATA_STATE_DIR must be an absolute path"},
		"no home":        {map[string]string{}, run.Dirs{}, "HOME is not set"},
		"too long":       {map[string]string{"HOME": "/h", "FERMATA_RUNTIME_DIR": long}, run.Dirs{}, "FERMATA_RUNTIME_DIR"},
	} {
		got, err := run.Find(func(k string) string { return c.env[k] }, 7)
		if c.word != "" {
			if err == nil || !strings.Contains(err.Error(), c.word) {
				t.Errorf("%s: %v, want an error that says %q", name, err, c.word)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestPrivate(t *testing.T) {
	uid, dir := os.Getuid(), t.TempDir()
	if err := run.Private(dir+"/a/b", uid); err != nil {
		t.Error(err)
	}
	if i, err := os.Stat(dir + "/a/b"); err != nil || i.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", i, err)
	}
	if err := run.Private(dir+"/a/b", uid+1); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("another user's: %v", err)
	}
	if err := os.Chmod(dir+"/a/b", 0o750); err != nil {
		t.Fatal(err)
	}
	if err := run.Private(dir+"/a/b", uid); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("open: %v", err)
	}
	if err := os.Symlink(dir+"/a", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := run.Private(dir+"/link", uid); err == nil || !strings.Contains(err.Error(), "not a link") {
		t.Errorf("link: %v", err)
	}
	if err := run.CheckPrivate(dir+"/absent", uid); !os.IsNotExist(err) {
		t.Errorf("absent: %v", err)
	}
}

func TestEnvironKeepsSecretsOut(t *testing.T) {
	got := run.Environ([]string{
		"HOME=/h", "GEMINI_API_KEY=k", "LC_ALL=C", "PATH=/bin", "LD_PRELOAD=x", "FERMATA_STATE_DIR=/s", "XDG_STATE_HOME=/x", "broken",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/b", "XDG_RUNTIME_DIR=/r", "WAYLAND_DISPLAY=w", "TMUX=/t,1,0",
	})
	if want := []string{
		"HOME=/h", "LC_ALL=C", "PATH=/bin", "FERMATA_STATE_DIR=/s", "XDG_STATE_HOME=/x",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/b", "XDG_RUNTIME_DIR=/r", "WAYLAND_DISPLAY=w",
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestProgramIgnoresRelativePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/core", []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if p, err := run.Program([]string{"PATH=:.:relative"}); err == nil {
		t.Errorf("found %s", p)
	}
	if p, err := run.Program([]string{"PATH=.:" + dir}); err != nil || p != dir+"/core" {
		t.Errorf("%s, %v", p, err)
	}
}

func TestStartSaysWhyNot(t *testing.T) {
	dir := t.TempDir()
	s := run.Starter{Dirs: run.Dirs{State: dir + "/s", Runtime: dir + "/r"}, UID: os.Getuid(), Environ: []string{"FERMATA_AUTOSTART=0"}}
	if err := s.Start(); !errors.Is(err, run.ErrAutostartOff) {
		t.Errorf("%v", err)
	}
	s.Environ = nil
	s.Program = dir + "/none"
	if err := s.Start(); err == nil || !strings.Contains(err.Error(), "cannot start") {
		t.Errorf("%v", err)
	}
	other := run.Starter{Dirs: s.Dirs, UID: s.UID, Program: dir + "/none"}
	if err := other.Start(); err != nil {
		t.Errorf("while another starts: %v", err)
	}
	s.Done()
	if err := other.Start(); err == nil {
		t.Error("the lock was not given back")
	}
	other.Done()
}
