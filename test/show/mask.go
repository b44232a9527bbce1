package main

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// masked are the parts of a screen that differ from run to run, and what
// stands in their place.
var masked = []struct {
	is *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$`), "2026-01-31 09:30:00"},
	{regexp.MustCompile(`^(?:\d+:)?\d{1,2}:\d\d$`), "0:00"},
	{regexp.MustCompile(`^[\d.]+ m?s$`), "0.0 s"},
	{regexp.MustCompile(`^[\d.]+ 毫?秒$`), "0.0 秒"},
	{regexp.MustCompile(`^uid:\d+$`), "uid:0"},
	{regexp.MustCompile(`^/tmp/fs`), stageDir},
	{regexp.MustCompile(`^[0-9a-z]{26}$`), strings.Repeat("0", 26)},
}

// varies finds what one of masked is about.
var varies = regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b|\b(?:\d+:)?\d{1,2}:\d\d\b|` +
	`\b\d+(?:\.\d+)? (?:ms\b|s\b|毫秒|秒)|\buid:\d+\b|/tmp/fs\d{6}\b|\b[0-9a-z]{26}\b`)

// stageDir stands for the directory of a stage, and is as long.
const stageDir = "/tmp/fs000000"

// gaps are where a line has room to spare.
var gaps = regexp.MustCompile(`  +`)

// mask replaces times and names that no two runs have in common. Where a
// replacement is shorter or longer, the gap before it grows or shrinks, or the
// one behind it, so that what is lined up stays so.
func mask(text string) string {
	lines := strings.Split(ruled.ReplaceAllString(text, "$1"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(maskLine(line), " ")
	}
	return strings.Join(lines, "\n")
}

// ruled are rows of hooks that start no program. Deciding takes them no time that
// is worth showing, or a millisecond where a machine is busy.
var ruled = regexp.MustCompile(`(?m)^(.* [✓✕⌛] +(?:ask|files)-[a-z-]+) +[\d.]+ (?:m?s|毫?秒)$`)

func maskLine(line string) string {
	for from := 0; ; {
		at := varies.FindStringIndex(line[from:])
		if at == nil {
			return line
		}
		before, was, after := line[:from+at[0]], line[from+at[0]:from+at[1]], line[from+at[1]:]
		now := substitute(was)
		if by := ansi.StringWidth(was) - ansi.StringWidth(now); by != 0 {
			before, after = spread(before, after, by)
		}
		line = before + now + after
		from = len(before + now)
	}
}

func substitute(was string) string {
	for _, m := range masked {
		if at := m.is.FindStringSubmatchIndex(was); at != nil {
			return string(m.is.ExpandString(nil, m.by, was, at))
		}
	}
	return was
}

// spread makes the nearest gap so many columns wider; there is none in a
// sentence at the left edge, which gets shorter or longer.
func spread(before, after string, by int) (string, string) {
	widen := func(s string, at []int) string {
		return s[:at[0]] + strings.Repeat(" ", max(at[1]-at[0]+by, 1)) + s[at[1]:]
	}
	if all := gaps.FindAllStringIndex(before, -1); len(all) > 0 {
		return widen(before, all[len(all)-1]), after
	}
	if at := gaps.FindStringIndex(after); at != nil {
		return before, widen(after, at)
	}
	return before, after
}
