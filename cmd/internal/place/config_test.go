package place_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
)

func load(t *testing.T, text string) (place.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return place.Load(file)
}

func TestB8B9Config(t *testing.T) {
	def := place.Default()
	full := place.Config{
		Mode: place.ModeProcess, Language: "zh-Hans",
		Confirmation: place.Confirmation{Timeout: 90500 * time.Millisecond, WhenNobody: place.NobodyWait},
		Hooks:        place.Hooks{OnInvalid: place.InvalidWarn, ICodePaths: false},
		Notify:       place.Notify{Command: "paplay bell.oga", Popup: place.NotifyAuto, Desktop: place.NotifyOff},
	}
	for text, want := range map[string]place.Config{
		"": def, "# nothing\n": def, "---\n": def, "confirmation:\n  timeout_seconds: 0\n": def, "confirmation: {timeout_seconds: 0.0}": def,
		"mode: process\nconfirmation:\n  timeout_seconds: 90.5\n  when_nobody: wait\nhooks:\n  on_invalid: warn\n  icode_paths: false\n" +
			"notify:\n  command: paplay bell.oga\n  popup: auto\n  desktop: off\nlanguage: zh-Hans\n": full,
		"hooks:\n  on_invalid: refuse\n  icode_paths: true\n": def,
	} {
		got, err := load(t, text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	got, err := place.Load(filepath.Join(t.TempDir(), "absent.yaml"))
	if err != nil || got != def {
		t.Errorf("no file: %+v, %v", got, err)
	}
}

func TestB9ConfigErrorsTellWhere(t *testing.T) {
	const timeout = "confirmation.timeout_seconds"
	for text, want := range map[string]struct {
		line, column int
		path, word   string
	}{
		"mode: fast\n":                               {1, 7, "mode", "power or process"},
		"mode: 1\n":                                  {1, 7, "mode", "a word"},
		"mode: power\nmode: power\n":                 {2, 1, "mode", "twice"},
		"language: de\n":                             {1, 11, "language", "zh-Hans"},
		"colour: red\n":                              {1, 1, "colour", "unknown key"},
		"Mode: power\n":                              {1, 1, "Mode", "unknown key"},
		"languge: en\n":                              {1, 1, "languge", "did you mean language"},
		"notfy:\n  popup: auto\n":                    {1, 1, "notfy", "did you mean notify"},
		"hooks:\n  icode_path: true\n":               {2, 3, "hooks.icode_path", "did you mean hooks.icode_paths"},
		"confirmation:\n  timeout: 5\n":              {2, 3, "confirmation.timeout", "unknown key"},
		"confirmation: 5\n":                          {1, 15, "confirmation", "mapping"},
		"confirmation:\n  timeout_seconds: -1\n":     {2, 20, timeout, "from 0"},
		"confirmation:\n  timeout_seconds: -0.001\n": {2, 20, timeout, "from 0"},
		"confirmation:\n  timeout_seconds: .inf\n":   {2, 20, timeout, "from 0"},
		"confirmation:\n  timeout_seconds: -.inf\n":  {2, 20, timeout, "from 0"},
		"confirmation:\n  timeout_seconds: .nan\n":   {2, 20, timeout, "from 0"},
		"confirmation:\n  timeout_seconds: 1e300\n":  {2, 20, timeout, "from 0"},
		"confirmation:\n  timeout_seconds: \"5\"\n":  {2, 20, timeout, "a number"},
		"confirmation:\n  timeout_seconds: NaN\n":    {2, 20, timeout, "a number"},
		"confirmation:\n  timeout_seconds: [5]\n":    {2, 20, timeout, "single value"},
		"confirmation:\n  timeout_seconds:\n":        {2, 19, timeout, "a number"},
		"confirmation:\n  when_nobody: maybe\n":      {2, 16, "confirmation.when_nobody", "reject or wait"},
		"hooks:\n  on_invalid: ignore\n":             {2, 15, "hooks.on_invalid", "refuse or warn"},
		"hooks:\n  icode_paths: \"true\"\n":          {2, 16, "hooks.icode_paths", "true or false"},
		"hooks:\n  icode_paths: 1\n":                 {2, 16, "hooks.icode_paths", "true or false"},
		"notify:\n  popup: on\n":                     {2, 10, "notify.popup", "auto or off"},
		"notify:\n  desktop: true\n":                 {2, 12, "notify.desktop", "a word"},
		"notify:\n  command: \"a\\0b\"\n":            {2, 12, "notify.command", "zero byte"},
		"notify:\n  sound: ding\n":                   {2, 3, "notify.sound", "unknown key"},
		"- mode\n":                                   {1, 1, "", "mapping"},
		"mode: power\n---\nmode: process\n":          {2, 1, "", "second document"},
	} {
		_, err := load(t, text)
		var at *place.ConfigError
		if !errors.As(err, &at) {
			t.Errorf("%q: %v, want a *ConfigError", text, err)
			continue
		}
		if at.Line != want.line || at.Column != want.column || at.Path != want.path || !strings.Contains(at.Message.Error(), want.word) {
			t.Errorf("%q: %v, want %+v", text, err, want)
		}
	}
	for _, text := range []string{"mode: [\n", "\tmode: power\n", "a: *b\n", "mode: \xff\n"} {
		var at *place.ConfigError
		if _, err := load(t, text); !errors.As(err, &at) || at.Line < 1 || at.Column < 1 {
			t.Errorf("%q: %v, want a *ConfigError", text, err)
		}
	}
}

// A flag obeys the rules of the file.
func TestB9SetIsAsStrict(t *testing.T) {
	for _, text := range []string{"-1", "inf", "+Inf", "NaN", "nan", "1e300", "", "5s"} {
		c := place.Default()
		if err := c.Set("confirmation.timeout_seconds", text); err == nil || c != place.Default() {
			t.Errorf("%q was taken: %+v", text, c)
		}
	}
	c := place.Default()
	if err := c.Set("confirmation.timeout_seconds", "2.5"); err != nil || c.Confirmation.Timeout != 2500*time.Millisecond {
		t.Errorf("%+v, %v", c, err)
	}
	c.Hooks.ICodePaths = false
	if err := c.Set("hooks.icode_paths", "yes"); err == nil || c.Hooks.ICodePaths {
		t.Errorf("%+v, %v", c, err)
	}
	if err := c.Set("hooks.icode_paths", "true"); err != nil || !c.Hooks.ICodePaths {
		t.Errorf("%+v, %v", c, err)
	}
	if err := c.Set("nothing", "x"); err == nil {
		t.Error("an unknown setting was taken")
	}
	for _, k := range place.Keys() {
		if strings.ContainsAny(k.Flag(), "._") {
			t.Errorf("%+v", k)
		}
	}
}

func TestB125LanguageOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FERMATA_CONFIG_DIR", dir)
	for text, want := range map[string]string{"language: zh-Hans\n": "zh-Hans", "mode: power\n": "", "language: [broken\n": ""} {
		if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := place.Language(""); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := place.Language("en"); got != "en" {
			t.Errorf("%q: an option does not go first: %q", text, got)
		}
	}
}

func TestB125LanguageAmongArguments(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "status": "", "--language": "", "--language en": "en", "status --language zh-Hans --json": "zh-Hans", "--language=zh-Hans": "zh-Hans",
		"-language en": "en", "-language=en": "en", "--help --language zh-Hans": "zh-Hans", "--language en --language=zh-Hans": "zh-Hans",
		"-- --language en": "", "language en": "", "--languages en": "", "---language en": "",
	} {
		if got := place.LanguageFlag(strings.Fields(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
