// Command fermata is the one name to remember. It is replaced by the program
// that does the work:
//
//	fermata [tui …]   the terminal frontend, tui-frontend; its flags may stand alone:
//	                  --plain, --session, --project, --question, --scope
//	fermata acp …     the frontend for editors, acp-frontend
//	fermata WORD …    the core: fermata X is core X
//
// The programs are looked for beside fermata itself, then in PATH. Its own
// failures exit with 127 when there is no such program, 126 when it cannot be
// run; every other status is that program's.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fermata-hitl/fermata/frontends/words"
)

const (
	exitCannotRun = 126
	exitNotFound  = 127
)

func main() {
	name, args := dispatch(os.Args[1:])
	program, err := find(name)
	if err != nil {
		fmt.Fprintf(os.Stderr, "fermata: %v\n", err)
		os.Exit(exitNotFound)
	}
	if name != "acp-frontend" {
		name = "fermata" // they speak of themselves by the name that was typed
	}
	err = syscall.Exec(program, append([]string{name}, args...), os.Environ())
	fmt.Fprintln(os.Stderr, "fermata: "+language().Say(words.CannotRun, program, err))
	os.Exit(exitCannotRun)
}

// dispatch picks the program for the words behind fermata, and what of them is
// its own.
func dispatch(words []string) (program string, args []string) {
	switch {
	case len(words) > 0 && words[0] == "tui":
		return "tui-frontend", words[1:]
	case len(words) > 0 && words[0] == "acp":
		return "acp-frontend", words[1:]
	case ofTUI(words):
		return "tui-frontend", words
	}
	return "core", words
}

// ofTUI tells whether the words are for the terminal frontend: none, its own flags,
// or the language alone, which every program takes.
func ofTUI(words []string) bool {
	for i := 0; i < len(words); i++ {
		flag, _, hasValue := strings.Cut(words[i], "=")
		switch flag {
		case "--plain", "--session", "--project", "--question", "--scope":
			return true
		case "--language":
			if !hasValue {
				i++
			}
		default:
			return false
		}
	}
	return true
}

// find looks beside our own file, where the programs are installed together,
// and only then in PATH. Links are followed: fermata may be linked into a
// directory of PATH, and another program there may be called core.
func find(name string) (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	inPath, err := exec.LookPath(name)
	if err != nil {
		return "", errors.New(language().Say(words.ProgramMissing, name, self, errors.Unwrap(err)))
	}
	return inPath, nil
}

// language is the environment's alone: reading config.yaml takes more than all
// the rest of this program.
func language() words.Words { return words.In(words.Choose("", os.Getenv)) }
