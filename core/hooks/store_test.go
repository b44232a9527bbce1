package hooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

func TestStoreFollowsTheFile(t *testing.T) {
	dir := t.TempDir()
	store := NewStore(StoreOptions{GlobalDir: dir})
	none := load(t, store)
	if len(none.Hooks) != 0 || none.Digest == "" {
		t.Errorf("without a file: %+v", none)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hooks.json", `{"hooks": []}`)
	write("hooks.yml", rule())
	yml := load(t, store)
	if len(yml.Hooks) != 1 || yml.Digest == none.Digest {
		t.Errorf("hooks.yml goes before hooks.json: %+v", yml)
	}
	if load(t, store) != yml {
		t.Error("an unchanged file must give the same set")
	}
	// Same size, same time: only the text tells.
	info, err := os.Stat(filepath.Join(dir, "hooks.yml"))
	if err != nil {
		t.Fatal(err)
	}
	write("hooks.yml", strings.Replace(rule(), "id: a", "id: b", 1))
	if err := os.Chtimes(filepath.Join(dir, "hooks.yml"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if changed := load(t, store); changed.Digest == yml.Digest || changed.Hook(0).Ref.ID != "b" {
		t.Error("the change was not seen")
	}
	write("hooks.yaml", "hooks:\n")
	var ce *ConfigError
	for range 2 {
		if _, err := store.For("/w"); !errors.As(err, &ce) || ce.File != filepath.Join(dir, "hooks.yaml") {
			t.Fatal("a broken file must be an error each time:", err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "hooks.yaml")); err != nil {
		t.Fatal(err)
	}
	if load(t, store).Hook(0).Ref.ID != "b" {
		t.Error("the file behind it counts again")
	}
}

func TestStoreRefusesWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "hooks.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	var ce *ConfigError
	if _, err := NewStore(StoreOptions{GlobalDir: dir}).For("/w"); !errors.As(err, &ce) {
		t.Error("a directory:", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStore(StoreOptions{GlobalDir: file}).For("/w"); !errors.As(err, &ce) {
		t.Error("a file in the directory's place:", err)
	}
}

func load(t *testing.T, s *Store) *Set {
	t.Helper()
	set, err := s.For("/w")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestStoreOrder(t *testing.T) {
	g := newGround(t)
	places := []string{g.at(".fermata"), g.at(".chrys/hooks"), g.home, g.o.ICodeGlobal}
	for i, dir := range places {
		g.write(filepath.Join(dir, "hooks.yaml"), named(fmt.Sprint("h", i))+"  - {id: same, event: after_turn, run: {type: shell, shell: a}}\n")
	}
	g.trust()
	set := g.set()
	if got := ids(set); got != "h0 same h1 same h2 same h3 same" {
		t.Error(got)
	}
	for i, h := range set.Hooks {
		scope := events.ScopeProject
		if i >= 4 {
			scope = events.ScopeGlobal
		}
		if h.Ref.Index != i || h.Ref.Scope != scope || filepath.Dir(h.Ref.File) != places[i/2] {
			t.Errorf("%d: %+v", i, h.Ref)
		}
	}
	if len(set.Plan(shellCall)) != 4 {
		t.Error(set.Plan(shellCall))
	}
	if got := findings(set.Warnings); got != " same_id,  same_id,  same_id" {
		t.Errorf("%q", got)
	}
	if w := set.Warnings[0]; w.File != g.at(".chrys/hooks/hooks.yaml") || !strings.Contains(w.Message.Error(), g.at(".fermata/hooks.yaml")) || w.Hook != "same" {
		t.Errorf("%+v", w)
	}
}

func TestStoreSettingsMergeByField(t *testing.T) {
	g := newGround(t)
	for dir, settings := range map[string]string{
		g.at(".fermata"):     "{shutdown_grace_seconds: 1}",
		g.at(".chrys/hooks"): "{shutdown_grace_seconds: 2, max_parallel_hooks: 2}",
		g.home:               "{max_parallel_hooks: 3, outbox_max_retries: 0}",
		g.o.ICodeGlobal:      "{outbox_max_retries: 4, shutdown_grace_seconds: 4}",
	} {
		g.write(filepath.Join(dir, "hooks.yaml"), "settings: "+settings+"\n")
	}
	want := Settings{ShutdownGrace: 4 * time.Second, MaxParallel: 3, OutboxRetryAge: time.Minute}
	if d := cmp.Diff(want, g.set().Settings); d != "" {
		t.Error("untrusted:", d)
	}
	r := g.trust()
	want = Settings{ShutdownGrace: time.Second, MaxParallel: 2, OutboxRetryAge: time.Minute}
	if d := cmp.Diff(want, g.set().Settings); d != "" {
		t.Error("trusted:", d)
	}
	if d := cmp.Diff(Settings{ShutdownGrace: time.Second, MaxParallel: 4, OutboxRetryAge: time.Minute, OutboxMaxRetries: 3}, r.Files[0].Settings); d != "" {
		t.Error("the report of one file:", d)
	}
}

// The settings in force are, field by field, those of the first file that
// writes the field down.
func TestSettingsMergeIsFieldByField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) *int {
			if n := rapid.IntRange(-1, 9).Draw(t, name); n >= 0 {
				return &n
			}
			return nil
		}
		seconds := func(name string) *time.Duration {
			if n := number(name); n != nil {
				d := time.Duration(*n) * time.Second
				return &d
			}
			return nil
		}
		var files []parsed
		want := DefaultSettings()
		for range rapid.IntRange(0, maxSources).Draw(t, "files") {
			files = append(files, parsed{contents: contents{settings: given{seconds("grace"), number("parallel"), seconds("age"), number("retries")}}})
		}
		for _, file := range slices.Backward(files) {
			s := file.settings
			for _, f := range []struct{ to, from any }{
				{&want.ShutdownGrace, s.shutdownGrace}, {&want.OutboxRetryAge, s.outboxRetryAge},
			} {
				if from := f.from.(*time.Duration); from != nil {
					*f.to.(*time.Duration) = *from
				}
			}
			if s.maxParallel != nil {
				want.MaxParallel = *s.maxParallel
			}
			if s.outboxMaxRetries != nil {
				want.OutboxMaxRetries = *s.outboxMaxRetries
			}
		}
		set := &Set{Settings: DefaultSettings()}
		set.join(files)
		if set.Settings != want {
			t.Fatalf("%+v, want %+v", set.Settings, want)
		}
	})
}

// One physical file is one file, and the global one.
func TestStoreCountsAFileOnce(t *testing.T) {
	for name, link := range map[string]func(old, new string) error{"hard link": os.Link, "symbolic link": os.Symlink} {
		g := newGround(t)
		global := g.write(filepath.Join(g.o.ICodeGlobal, "hooks.yaml"), named("guard"))
		g.ok(link(global, g.at(".chrys/hooks/hooks.yaml")))
		set := g.set()
		if ids(set) != "guard" || set.Hooks[0].Ref.Scope != events.ScopeGlobal || len(set.Notices) != 0 {
			t.Errorf("%s: %s %q", name, ids(set), set.Notices)
		}
		if r := g.store().Inspect(g.project); len(r.Files) != 1 || r.Files[0].Trust != TrustAlways {
			t.Errorf("%s: %+v", name, r)
		}
		if _, err := g.store().Trust(g.project); err == nil {
			t.Errorf("%s: a global file needs no trust", name)
		}
		// Fermata's own place for the same file has the safer defaults.
		g.ok(link(global, filepath.Join(g.home, "hooks.yaml")))
		if set := g.set(); ids(set) != "guard" || set.Hooks[0].OnError != OnErrorBlock || set.Hooks[0].Ref.File != filepath.Join(g.home, "hooks.yaml") {
			t.Errorf("%s: %+v", name, set.Hooks)
		}
	}
	// The home directory is the working directory.
	g := newGround(t)
	g.write(filepath.Join(g.o.ICodeGlobal, "hooks.yaml"), named("guard"))
	if set, err := g.store().For(g.root); err != nil || ids(set) != "guard" || set.Hooks[0].Ref.Scope != events.ScopeGlobal {
		t.Error(err, set)
	}
}

func TestStoreOnInvalidWarn(t *testing.T) {
	g := newGround(t)
	broken := g.write(filepath.Join(g.home, "hooks.yaml"), "hooks:\n")
	g.write(filepath.Join(g.o.ICodeGlobal, "hooks.yaml"), named("icode"))
	var bad *ConfigError
	if _, err := g.store().For(g.project); !errors.As(err, &bad) || bad.Code() != events.CodeHooksConfigInvalid {
		t.Error(err)
	}
	g.o.OnInvalidWarn = true
	set := g.set()
	if ids(set) != "icode" || len(set.Notices) != 1 || !strings.Contains(set.Notices[0].Error(), broken+":1:7") {
		t.Errorf("%s %q", ids(set), set.Notices)
	}
	g.write(broken, named("own"))
	whole := g.set()
	if ids(whole) != "own icode" || len(whole.Notices) != 0 || whole.Digest == set.Digest {
		t.Error(ids(whole), whole.Notices)
	}
	g.ok(os.Remove(broken))
	g.ok(os.Mkdir(broken, 0o700))
	if set := g.set(); ids(set) != "icode" || len(set.Notices) != 1 {
		t.Error(ids(set), set.Notices)
	}
}

// Everything that decides is in the digest, and nothing else.
func TestStoreDigest(t *testing.T) {
	g := newGround(t)
	store := g.store()
	last := events.Digest("")
	step := func(what string, differs bool, change func()) {
		t.Helper()
		change()
		set, err := store.For(g.project)
		g.ok(err)
		if (set.Digest != last) != differs {
			t.Errorf("%s: the digest differs is %v", what, !differs)
		}
		last = set.Digest
	}
	step("nothing", true, func() {})
	step("a global file", true, func() { g.write(filepath.Join(g.home, "hooks.yaml"), named("a")) })
	step("the same again", false, func() { g.write(filepath.Join(g.home, "hooks.yaml"), named("a")) })
	step("a comment", true, func() { g.write(filepath.Join(g.home, "hooks.yaml"), named("a")+"#\n") })
	step("another place", true, func() { g.ok(os.Rename(filepath.Join(g.home, "hooks.yaml"), filepath.Join(g.home, "hooks.yml"))) })
	step("a project that nobody trusted", false, func() { g.write(".fermata/hooks.yaml", scripted("p", "x.sh")) })
	step("its script", false, func() { g.write(".fermata/x.sh", "") })
	step("trust", true, func() { g.trust() })
	step("another project's trust", false, func() {
		g.ok(os.Mkdir(filepath.Join(g.root, ".fermata"), 0o700))
		g.write(filepath.Join(g.root, ".fermata", "hooks.yaml"), named("a"))
		_, err := g.store().Trust(g.root)
		g.ok(err)
	})
	step("another script, trusted", true, func() {
		g.write(".fermata/x.sh", "exit\n")
		g.trust()
	})
	step("another file beside it", false, func() { g.write(".fermata/hooks.json", "{}") })
	step("settings", true, func() {
		g.write(filepath.Join(g.o.ICodeGlobal, "hooks.json"), `{"settings": {"max_parallel_hooks": 1}}`)
	})
}

// Once it has been quiet for a while nothing is read, and whatever then happens
// is seen at once.
func TestStoreReadsOnlyWhatChanged(t *testing.T) {
	g := newGround(t)
	g.write(filepath.Join(g.home, "hooks.yaml"), named("global"))
	g.write(".fermata/hooks.yaml", scripted("own", "check.sh"))
	script := g.write(".fermata/check.sh", "exit 0\n")
	link := filepath.Join(g.root, "link")
	g.ok(os.Symlink("p", link))
	g.trust()
	store := g.store()
	<-time.After(grain + calmFor)
	read := func(cwd string) *reading {
		t.Helper()
		if _, err := store.For(cwd); err != nil {
			t.Fatal(err)
		}
		return store.directory(cwd).last.Load()
	}
	for _, cwd := range []string{g.project, link, g.root, "/nowhere"} {
		first := read(cwd)
		for range 3 {
			if read(cwd) != first {
				t.Fatal("it was read again:", cwd)
			}
		}
	}
	first := read(g.project)
	if g.ok(os.Chmod(script, 0o700)); read(g.project) == first {
		t.Error("a touched script was not looked at")
	}
	g.ok(os.Remove(link))
	g.ok(os.Symlink(g.root, link))
	if set := read(link).set; ids(set) != "global" {
		t.Error("the link leads elsewhere, but the hooks are", ids(set))
	}
}

func TestStoreKeepsABoundedNumberOfDirectories(t *testing.T) {
	g := newGround(t)
	g.write(filepath.Join(g.home, "hooks.yaml"), named("global"))
	store := g.store()
	for i := range 3 * maxDirs {
		set, err := store.For(filepath.Join(g.root, fmt.Sprint(i)))
		if err != nil || ids(set) != "global" {
			t.Fatal(err)
		}
		if _, err := store.For(g.project); err != nil {
			t.Fatal(err)
		}
	}
	if len(store.dirs) != maxDirs || store.dirs[g.project] == nil {
		t.Errorf("%d directories; the one in use is kept: %v", len(store.dirs), store.dirs[g.project] != nil)
	}
}

func TestStoreFromManyAtOnce(t *testing.T) {
	g := newGround(t)
	global := filepath.Join(g.home, "hooks.yaml")
	g.write(global, named("a"))
	g.write(".fermata/hooks.yaml", named("own"))
	g.trust()
	store := g.store()
	var all sync.WaitGroup
	for i := range 16 {
		cwd := []string{g.project, g.root, filepath.Join(g.root, "x"), "/"}[i%4]
		all.Go(func() {
			for range 20 {
				set, err := store.For(cwd)
				if err != nil || len(set.Hooks) < 1 || len(set.Hooks) > 2 {
					t.Error(err, set)
					return
				}
			}
		})
	}
	g.ok(os.WriteFile(global+".new", []byte(named("b")), 0o600))
	g.ok(os.Rename(global+".new", global))
	all.Wait()
	if set, err := store.For(g.project); err != nil || ids(set) != "own b" {
		t.Error(err, set)
	}
}

// An agent that writes an untrusted file all the time holds nobody up.
func TestStoreDoesNotWaitForWhatDoesNotCount(t *testing.T) {
	g := newGround(t)
	file := g.write(".fermata/hooks.yaml", "x")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				_ = os.WriteFile(file, []byte(fmt.Sprint(i)), 0o600)
			}
		}
	}()
	store := g.store()
	begun := time.Now()
	for range 20 {
		if set, err := store.For(g.project); err != nil || len(set.Notices) != 1 {
			t.Fatal(err, set)
		}
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Error("it took", took)
	}
	close(stop)
	<-done
}

func TestStoreWithoutAProject(t *testing.T) {
	g := newGround(t)
	g.write(".fermata/hooks.yaml", named("own"))
	t.Chdir(g.project)
	for _, cwd := range []string{"", ".", "p"} {
		set, err := g.store().For(cwd)
		if err != nil || ids(set) != "" || len(set.Notices) != 0 {
			t.Errorf("%q: %v %+v", cwd, err, set)
		}
	}
}

func TestWatchers(t *testing.T) {
	set := setOf(t, `
hooks:
  - {id: blocks, event: after_tool_call, run: {type: shell, shell: a}, execution: {mode: blocking}}
  - {id: async, event: after_tool_call, run: {type: shell, shell: a}, execution: {mode: async, delivery: durable}, match: {tool_kind: shell}}
  - {id: off, enabled: false, event: after_tool_call, run: {type: shell, shell: a}}
  - {id: detached, event: after_tool_call, run: {type: shell, shell: a}, execution: {detach: true}}
  - {id: other, event: after_tool_call, run: {type: shell, shell: a}, match: {tool_kind: search}}
  - {id: undecided, event: after_tool_call, run: {type: shell, shell: a}, match: {args: {command: {regex: '('}}}}
  - {id: before, event: before_tool_call, run: {type: shell, shell: a}, execution: {mode: fire_and_forget}}
`)
	sub := shellCall
	sub.Event = events.AfterToolCall
	watchers := set.Watchers(sub)
	var got []string
	for _, w := range watchers {
		if set.Hook(w.Hook.Index).Ref != w.Hook {
			t.Errorf("%+v", w)
		}
		got = append(got, fmt.Sprintf("%s %s %v", w.Hook.ID, w.Mode, w.Durable))
	}
	want := []string{"async async true", "detached fire_and_forget false", "undecided fire_and_forget false"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if plan := set.Plan(sub); len(plan) != 1 || plan[0].ID != "blocks" {
		t.Error("blocking hooks of an observed event are a plan too:", plan)
	}
	if w := set.Watchers(shellCall); len(w) != 1 || w[0].Hook.ID != "before" {
		t.Error(w)
	}
}
