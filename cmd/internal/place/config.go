// Package place tells where Fermata's files are, reads config.yaml, and starts
// a core. Its half package run is for agent-hook.
package place

import (
	"errors"
	"fmt"
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

// Config is config.yaml.
type Config struct {
	Mode         Mode // default power
	Confirmation Confirmation
	Language     string // en or zh-Hans; "" as the locale says
}

// Confirmation is how questions wait for a person.
type Confirmation struct {
	Timeout    time.Duration // 0, the default: without end
	WhenNobody string        // default reject
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{Mode: ModePower, Confirmation: Confirmation{WhenNobody: NobodyReject}}
}

// Key is one setting. Name is its path in config.yaml.
type Key struct {
	Name string
	Help string
	set  func(c *Config, text string) error
	// number: in YAML it is a number, else a string.
	number bool
}

// Flag is the name of the key as a command line flag.
func (k Key) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(k.Name) }

// Keys lists every setting, in the order of the documentation.
func Keys() []Key {
	return []Key{
		{Name: "mode", Help: "what the log survives: power (default) or process", set: func(c *Config, s string) error {
			return choose(&c.Mode, s, ModePower, ModeProcess)
		}},
		{Name: "confirmation.timeout_seconds", number: true, Help: "seconds that a question waits for a person; 0 (default) is without end", set: func(c *Config, s string) (err error) {
			c.Confirmation.Timeout, err = seconds(s)
			return err
		}},
		{Name: "confirmation.when_nobody", Help: "what happens to a question that nobody can be shown: reject (default) or wait", set: func(c *Config, s string) error {
			return choose(&c.Confirmation.WhenNobody, s, NobodyReject, NobodyWait)
		}},
		{Name: "language", Help: "en or zh-Hans; as the locale says if it is not set", set: func(c *Config, s string) error {
			return choose(&c.Language, s, "en", "zh-Hans")
		}},
	}
}

// Set gives one setting its value from a text, as a flag does, under the same
// rules as the file.
func (c *Config) Set(name, text string) error {
	for _, k := range Keys() {
		if k.Name == name {
			if err := k.set(c, text); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("%s: no such setting", name)
}

func choose[T ~string](to *T, text string, choices ...T) error {
	for _, c := range choices {
		if T(text) == c {
			*to = c
			return nil
		}
	}
	return fmt.Errorf("must be %s or %s, not %q", choices[0], choices[1], text)
}

// maxSeconds bounds a time limit; some thirty years, far from what overflows.
const maxSeconds = 1e9

// seconds reads a time limit: a finite number, 0 or more.
func seconds(text string) (time.Duration, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 || f > maxSeconds {
		return 0, fmt.Errorf("must be a number of seconds from 0 (without end) to %d, not %q", int(maxSeconds), text)
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
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	if len(data) > maxConfig {
		return Config{}, &ConfigError{File: file, Line: 1, Column: 1, Message: "the file is larger than 1 MiB"}
	}
	return parse(file, data)
}
