// Package place tells where Fermata's files are, reads config.yaml, and starts
// a core. Its half package run is for agent-hook.
package place

import (
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/cmd/internal/place/run"
)

// Dirs are Fermata's directories; see [run.Dirs].
type Dirs = run.Dirs

// Resolve tells the directories from this process's environment.
func Resolve() (Dirs, error) { return run.Find(os.Getenv, os.Getuid()) }

// ErrOpen is in an error of [CheckPrivate]; see [run.ErrOpen].
var ErrOpen = run.ErrOpen

// CheckPrivate makes sure that a directory is this user's alone, as every core does
// before it starts.
func CheckPrivate(dir string) error { return run.CheckPrivate(dir, os.Getuid()) }

// Mode says what an acknowledged event survives.
type Mode string

// The modes.
const (
	ModePower   Mode = "power"   // a power cut: each write is on the disk before it counts
	ModeProcess Mode = "process" // kill -9 of every process, but no power cut
)

// The choices of confirmation.when_nobody.
const (
	NobodyReject = "reject"
	NobodyWait   = "wait"
)

// The choices of hooks.on_invalid.
const (
	InvalidRefuse = "refuse" // while a hooks file is broken, gated calls are refused
	InvalidWarn   = "warn"   // the broken file's hooks are off
)

// The choices of notify.popup and notify.desktop.
const (
	NotifyAuto = "auto" // where it can be done
	NotifyOff  = "off"
)

// Config is config.yaml.
type Config struct {
	Mode         Mode // default power
	Confirmation Confirmation
	Hooks        Hooks
	Notify       Notify
	Language     string // en or zh-Hans; "" as the locale says
}

// Confirmation is how questions wait for a person.
type Confirmation struct {
	Timeout    time.Duration // 0, the default: without end
	WhenNobody string        // default reject
}

// Hooks is which hooks files count, and what a broken one does.
type Hooks struct {
	OnInvalid  string // default refuse
	ICodePaths bool   // default true: files written for iCode are read too
}

// Notify is how a person is called to a question that nobody takes.
type Notify struct {
	Command string // for /bin/sh; "", the default: none
	Popup   string // a screen over the agent's own pane; default off
	Desktop string // a notification of the desktop; default auto
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		Mode: ModePower, Confirmation: Confirmation{WhenNobody: NobodyReject},
		Hooks:  Hooks{OnInvalid: InvalidRefuse, ICodePaths: true},
		Notify: Notify{Popup: NotifyOff, Desktop: NotifyAuto},
	}
}

// Key is one setting. Name is its path in config.yaml; what it does is in the
// catalogue of package words under the same name.
type Key struct {
	Name string
	set  func(c *Config, text string) error
	is   sort
}

// sort is what a setting's value is in YAML.
type sort int

const (
	word sort = iota
	number
	truth
)

// Flag is the name of the key as a command line flag.
func (k Key) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(k.Name) }

// Keys lists every setting, in the order of the documentation.
func Keys() []Key {
	return []Key{
		{Name: "mode", set: func(c *Config, s string) error { return choose(&c.Mode, s, ModePower, ModeProcess) }},
		{Name: "confirmation.timeout_seconds", is: number, set: func(c *Config, s string) (err error) {
			c.Confirmation.Timeout, err = seconds(s)
			return err
		}},
		{Name: "confirmation.when_nobody", set: func(c *Config, s string) error {
			return choose(&c.Confirmation.WhenNobody, s, NobodyReject, NobodyWait)
		}},
		{Name: "hooks.on_invalid", set: func(c *Config, s string) error {
			return choose(&c.Hooks.OnInvalid, s, InvalidRefuse, InvalidWarn)
		}},
		{Name: "hooks.icode_paths", is: truth, set: func(c *Config, s string) error {
			var read string
			if err := choose(&read, s, "true", "false"); err != nil {
				return err
			}
			c.Hooks.ICodePaths = read == "true"
			return nil
		}},
		{Name: "notify.command", set: func(c *Config, s string) error {
			if strings.ContainsRune(s, 0) {
				return tell("contains a zero byte")
			}
			c.Notify.Command = s
			return nil
		}},
		{Name: "notify.popup", set: func(c *Config, s string) error { return choose(&c.Notify.Popup, s, NotifyAuto, NotifyOff) }},
		{Name: "notify.desktop", set: func(c *Config, s string) error { return choose(&c.Notify.Desktop, s, NotifyAuto, NotifyOff) }},
		{Name: "language", set: func(c *Config, s string) error { return choose(&c.Language, s, "en", "zh-Hans") }},
	}
}

// Language is the language to speak: option, what config.yaml says, or "" when
// neither says one. A broken file says nothing here; whoever needs its settings
// reports it.
func Language(option string) string {
	if option != "" {
		return option
	}
	dirs, err := Resolve()
	if err != nil {
		return ""
	}
	c, err := Load(dirs.ConfigFile())
	if err != nil {
		return ""
	}
	return c.Language
}

// LanguageFlag finds the value of --language among arguments that nobody has
// parsed yet, since the words about a mistake in them depend on it; "" without
// one. The last one counts.
func LanguageFlag(args []string) string {
	value := ""
	for i, a := range args {
		if a == "--" {
			break
		}
		name, inline, is := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		switch {
		case !strings.HasPrefix(a, "-") || name != "language" && name != "-language":
		case is:
			value = inline
		case i+1 < len(args):
			value = args[i+1]
		}
	}
	return value
}

// Set gives one setting its value from a text, as a flag does, under the same
// rules as the file.
func (c *Config) Set(name, text string) error {
	for _, k := range Keys() {
		if k.Name == name {
			if err := k.set(c, text); err != nil {
				return tell("%s: %s", name, err)
			}
			return nil
		}
	}
	return tell("there is no setting %s", name)
}

func choose[T ~string](to *T, text string, choices ...T) error {
	for _, c := range choices {
		if T(text) == c {
			*to = c
			return nil
		}
	}
	return tell("must be %s or %s, not %q", choices[0], choices[1], text)
}

// maxSeconds bounds a time limit; some thirty years, far from what overflows.
const maxSeconds = 1e9

// seconds reads a time limit: a finite number, 0 or more.
func seconds(text string) (time.Duration, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 || f > maxSeconds {
		return 0, tell("must be a number of seconds from 0 (without end) to %d, not %q", int(maxSeconds), text)
	}
	return time.Duration(f * float64(time.Second)), nil
}

// maxConfig bounds config.yaml.
const maxConfig = 1 << 20

// Load reads config.yaml. No file is an empty file. What is wrong in it is a
// [*ConfigError]; nothing of a broken file is used.
func Load(file string) (Config, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Config{}, tell("not read: %s", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return Config{}, tell("not read: %s", err)
	}
	if len(data) > maxConfig {
		return Config{}, &ConfigError{File: file, Line: 1, Column: 1, Message: tell("the file is larger than 1 MiB")}
	}
	return parse(file, data)
}
