package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// What is wrong can be said in another language, down to its smallest part, and
// is in English as an error.
func TestB125WhatIsWrongIsSaidInAnyLanguage(t *testing.T) {
	var say func(text string, args ...any) string
	say = func(text string, args ...any) string { // a language that shouts
		args = slices.Clone(args)
		for i, a := range args {
			if m, ok := a.(interface {
				In(func(string, ...any) string) string
			}); ok {
				args[i] = m.In(say)
			}
		}
		return fmt.Sprintf(strings.NewReplacer("%S", "%s", "%D", "%d", "%Q", "%q").Replace(strings.ToUpper(text)), args...)
	}
	_, _, _, err := read("hooks.yaml", "hooks: [{id: a, event: 5}]\n")
	bad, ok := errors.AsType[*ConfigError](err)
	if !ok {
		t.Fatal(err)
	}
	const place = "/h/hooks.yaml:1:24: hooks[0].event: "
	if got := bad.In(say); got != place+"MUST BE A STRING (IN QUOTES IF NEED BE), NOT A NUMBER" {
		t.Error(got)
	}
	if got := err.Error(); got != place+"must be a string (in quotes if need be), not a number" {
		t.Error(got)
	}
	lost := &NotTrusted{Dir: "/p", Changes: []Change{{"a", ChangedGone}, {"b", ChangedLink}}, Hint: tell("look at them, then run: fermata hooks trust")}
	if got := lost.In(say); got != "THE HOOKS OF /p ARE NOT TRUSTED ANY MORE: a IS GONE, b LEADS TO ANOTHER PLACE; LOOK AT THEM, THEN RUN: FERMATA HOOKS TRUST" {
		t.Error(got)
	}
	if got := lost.Error(); got != "the hooks of /p are not trusted any more: a is gone, b leads to another place; look at them, then run: fermata hooks trust" {
		t.Error(got)
	}
	if err := missing("its script is not readable: %s", fs.ErrPermission); !errors.Is(err, fs.ErrPermission) {
		t.Error("the cause is lost:", err)
	}
}
