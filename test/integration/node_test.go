package integration_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// nodeDir holds the pinned agents that are written for Node.
const nodeDir = "node"

// nodeModules installs the pinned agents if they are not there as the lock says,
// and sets $gemini to the program of Gemini CLI: node-modules
func nodeModules(ts *testscript.TestScript, _ bool, _ []string) {
	dir, err := filepath.Abs(nodeDir)
	ts.Check(err)
	ts.Check(nodeIsNew())
	if !installed(dir) {
		npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
		npm.Dir = dir
		if out, err := npm.CombinedOutput(); err != nil {
			ts.Fatalf("npm ci in test/integration/node: %v\n%s", err, out)
		}
	}
	program := filepath.Join(dir, "node_modules", ".bin", "gemini")
	if !exists(program) {
		ts.Fatalf("%s is not there after npm ci; remove test/integration/node/node_modules and run the test again", program)
	}
	ts.Setenv("gemini", program)
}

func nodeIsNew() error {
	out, err := exec.Command("node", "--version").Output()
	if err != nil {
		return errors.New("this test runs a real agent and needs node 20 or newer with npm on PATH: " + err.Error())
	}
	var major int
	if _, err := fmt.Sscanf(string(out), "v%d.", &major); err != nil || major < 20 {
		return fmt.Errorf("this test runs a real agent and needs node 20 or newer; node --version says %s", strings.TrimSpace(string(out)))
	}
	return nil
}

// installed reports whether what npm wrote last is as new as the lock.
func installed(dir string) bool {
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return false
	}
	done, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json"))
	return err == nil && !done.ModTime().Before(lock.ModTime())
}

// expand replaces $WORK, $BUILT and $TESTDATA in files of the story:
// expand FILE...
func expand(ts *testscript.TestScript, _ bool, args []string) {
	places := strings.NewReplacer("$WORK", ts.Getenv("WORK"), "$BUILT", built, "$TESTDATA", ts.Getenv("TESTDATA"))
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(places.Replace(ts.ReadFile(name))), 0o600))
	}
}
