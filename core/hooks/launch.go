package hooks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// launch is a process that is ready to start.
type launch struct {
	path       string
	argv       []string
	env        []string
	dir        string
	stdin      string // a file
	script     script
	stdoutHead int // bytes to keep of the beginning of stdout
}

// prepare finds everything that a hook's process needs.
func (r runner) prepare(h Hook, in Input, files exchange) (launch, error) {
	l := launch{stdin: files.payload, stdoutHead: keptHead}
	if h.Run.ResultFrom == FromStdout || h.Mode == Blocking {
		l.stdoutHead = maxVerdict + 1
	}
	fill := templates(h, in.Payload)
	var err error
	if l.env, err = r.environment(h, in, files, fill); err != nil {
		return l, err
	}
	l.dir = in.Cwd
	if h.Run.Cwd != "" {
		l.dir = fill.Replace(h.Run.Cwd)
		if !filepath.IsAbs(l.dir) {
			l.dir = filepath.Join(in.Cwd, l.dir)
		}
	}
	if info, err := os.Stat(l.dir); err != nil || !info.IsDir() {
		return l, tell("its working directory %s is not there", l.dir)
	}
	switch h.Run.Type {
	case RunScript:
		err = l.useScript(h)
	case RunCommand:
		l.argv = slices.Concat(h.Run.Argv, h.Run.Args)
		l.path, err = l.find(l.argv[0])
	case RunShell:
		err = l.useShell(h.Run.Shell)
	default:
		err = tell("its run type %q is unknown", h.Run.Type)
	}
	return l, err
}

// useScript chooses the runtime by the script's extension.
func (l *launch) useScript(h Hook) error {
	path := h.Run.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.dir, path)
	}
	var err error
	if l.script, err = readScript(path, h.Pinned); err != nil {
		return err
	}
	runtimes := l.runtimes(filepath.Ext(path), h.dir)
	if runtimes == nil && executable(path) {
		l.path, l.argv = path, slices.Concat([]string{path}, h.Run.Args)
		return nil
	}
	if runtimes == nil {
		if !h.icode {
			return missing("its script %s is not executable; run chmod +x on it", path)
		}
		runtimes = l.runtimes(".py", h.dir)
	}
	var names []string
	for _, words := range runtimes {
		if program, err := l.find(words[0]); err == nil {
			l.path, l.argv = program, slices.Concat(words, []string{path}, h.Run.Args)
			return nil
		}
		names = append(names, words[0])
	}
	return missing("no %s was found in PATH to run its script %s", joined("%s or %s", names...), path)
}

// runtimes lists the programs that can run a script, the preferred one
// first; nil for an extension that names none. Runtimes that look for projects
// are pointed at dir, where the hooks file is, and away from the working
// directory, which the agent can write.
func (l *launch) runtimes(extension, dir string) [][]string {
	switch extension {
	case ".py":
		return [][]string{l.uv(), {"python3"}, {"python"}}
	case ".sh", ".bash", ".zsh":
		return [][]string{{"bash"}, {"sh"}}
	case ".js", ".mjs":
		return [][]string{{"node"}}
	case ".ts":
		return [][]string{{"npx", "--prefix", dir, "tsx"}}
	case ".rb":
		return [][]string{{"ruby"}}
	case ".pl":
		return [][]string{{"perl"}}
	case ".ps1":
		return [][]string{{"pwsh", "-File"}, {"powershell", "-File"}}
	}
	return nil
}

// uv is told which interpreter to use where there is one in PATH: by itself it
// would take that of an environment in the working directory.
func (l *launch) uv() []string {
	words := []string{"uv", "run", "--no-project"}
	for _, name := range []string{"python3", "python"} {
		if path, err := l.find(name); err == nil {
			return append(words, "--python", path)
		}
	}
	return words
}

func (l *launch) useShell(text string) error {
	shell := lookup(l.env, "SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	path, err := l.find(shell)
	l.path, l.argv = path, []string{shell, "-c", text}
	return err
}

// find looks for a program in the PATH that the process will have. Relative
// entries are passed over: the working directory is the agent's ground.
func (l *launch) find(name string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(l.dir, name)
		}
		if executable(name) {
			return name, nil
		}
		return "", missing("the program %s is not there", name)
	}
	for _, dir := range filepath.SplitList(lookup(l.env, "PATH")) {
		if path := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(path) {
			return path, nil
		}
	}
	return "", missing("the program %s was not found in PATH", name)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// prefixes are the two names under which a process is told things.
var prefixes = []string{"FERMATA_HOOK_", "CHRYS_HOOK_"}

// private reports a variable of the core that no hook should see.
func private(name string) bool {
	return strings.HasPrefix(name, "NATS_") || strings.HasPrefix(name, "FERMATA_") || strings.HasPrefix(name, "CHRYS_HOOK_")
}

// ownVariable reports a variable that every run gets from Fermata.
func ownVariable(name string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// environment is the core's, then the run's own variables, then the hook's. Of
// two with one name the later wins.
func (r runner) environment(h Hook, in Input, files exchange, fill *strings.Replacer) ([]string, error) {
	env := slices.Clone(r.environ)
	env = append(env, "PYTHONUTF8=1", "PYTHONIOENCODING=utf-8")
	for _, p := range prefixes {
		env = append(env, p+"ID="+h.Ref.ID, p+"EVENT="+string(h.Event), p+"PAYLOAD_FILE="+files.payload, p+"RESULT="+files.verdict)
	}
	env = append(env, in.Env...)
	for name, text := range h.Run.Env {
		value := fill.Replace(text)
		if len(value) > maxArgument {
			return nil, tell("its variable %s is longer than 32 KiB", clip(name))
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

func lookup(env []string, name string) string {
	for _, e := range slices.Backward(env) {
		if key, value, _ := strings.Cut(e, "="); key == name {
			return value
		}
	}
	return ""
}

// templates replaces the few words that env values and cwd may contain, in one
// pass: what is put in is not looked at again.
func templates(h Hook, p Payload) *strings.Replacer {
	return strings.NewReplacer(
		"${workspace_cwd}", p.Cwd, "${fermata_home}", h.home, "${chrys_home}", h.home,
		"${session_id}", p.SessionID, "${profile}", p.Profile,
	)
}
