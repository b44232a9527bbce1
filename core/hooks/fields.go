package hooks

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/fermata-hitl/fermata/events"
)

func (f fileReader) run(v value, h Hook) Run {
	if !v.present() {
		return Run{}
	}
	// Which keys are known depends on the type, so it is read first.
	kind := ""
	for _, e := range v.entries() {
		if e.key == "type" {
			kind = e.value.choice("", string(RunVerdict), string(RunScript), string(RunCommand), string(RunShell))
		}
	}
	common := []string{"type", "env", "cwd", "result_from"}
	r := Run{Type: RunType(kind)}
	var o object
	switch r.Type {
	case RunVerdict:
		o = v.object("type", "action", "reason")
		r.Action = o.field("action").required().choice("", "allow", "block", "ask")
		r.Reason = o.field("reason").text("")
		if !h.decides() {
			o.fail("a verdict decides only with mode blocking on before_tool_call or user_prompt_submit")
		}
		return r
	case RunScript:
		o = v.object(append(common, "path", "args")...)
		r.Path = o.field("path").required().name()
	case RunCommand:
		o = v.object(append(common, "argv", "args")...)
		argv := o.field("argv").required()
		if r.Argv = words(argv); argv.present() && (len(r.Argv) == 0 || r.Argv[0] == "") {
			argv.fail("must begin with the program")
		}
	case RunShell:
		o = v.object(append(common, "shell")...)
		shell := o.field("shell").required()
		r.Shell = shell.name()
		fits(shell, r.Shell)
	default:
		v.object(append(common, "action", "reason", "path", "argv", "args", "shell")...).field("type").required()
		return r
	}
	r.Args = words(o.field("args"))
	r.Env = environment(o.field("env"))
	r.Cwd = o.field("cwd").text("")
	r.ResultFrom = ResultFrom(o.field("result_from").choice(string(FromFile), string(FromFile), string(FromStdout)))
	return r
}

func words(v value) []string {
	var out []string
	for _, e := range v.list() {
		s := e.text("")
		fits(e, s)
		out = append(out, s)
	}
	return out
}

// fits refuses what the system could not pass to a process.
func fits(v value, s string) {
	if len(s) > maxArgument {
		v.fail("is longer than 32 KiB; put it into a file")
	}
	if strings.ContainsRune(s, 0) {
		v.fail("contains a zero byte")
	}
}

func environment(v value) map[string]string {
	env := map[string]string{}
	for _, e := range v.entries() {
		s := e.value.text("")
		fits(e.value, s)
		switch {
		case e.key == "" || strings.ContainsAny(e.key, "=\x00"):
			e.value.fail("is no name for a variable")
		case ownVariable(e.key):
			// A hook whose result file is another than the one that is read
			// would have no opinion, which allows.
			e.value.fail("is set by Fermata for each run")
		}
		env[e.key] = s
	}
	return env
}

func (f fileReader) match(v value, h Hook) match {
	o := v.object("profile", "profiles", "tool_kind", "tool_name", "args", "agent", "cwd")
	m := match{
		profile:  o.field("profile").name(),
		profiles: o.field("profiles").texts(),
		toolKind: strings.TrimPrefix(o.field("tool_kind").name(), "chrys."),
		toolName: o.field("tool_name").name(),
		agent:    f.agent(o.field("agent")),
		cwd:      o.field("cwd").name(),
	}
	f.labels(o)
	if cwd := o.field("cwd"); m.cwd != "" && !doublestar.ValidatePattern(m.cwd) {
		cwd.fail("is no valid pattern for a path")
	} else {
		f.directory(cwd, m.cwd)
	}
	if m.toolKind != "" && !slices.Contains(events.ToolKinds(), m.toolKind) {
		f.complain(o.field("tool_kind"), "%q is no kind of tool, so the rule would never hold; known: %s", m.toolKind, joined("%s, %s", events.ToolKinds()...))
	}
	conditions := o.field("args").entries()
	for _, e := range conditions {
		m.args = append(m.args, f.condition(e, h))
	}
	m.foreignNames(conditions)
	for _, key := range []string{"tool_kind", "tool_name", "args"} {
		if c := o.field(key); c.present() && !toolEvent(h.Event) {
			c.matchesNothing("%s is not about a tool, so the hook never runs", h.Event)
		}
	}
	return m
}

func (f fileReader) agent(v value) events.Agent {
	var known []string
	for _, a := range events.Agents() {
		known = append(known, string(a))
	}
	return events.Agent(v.choice("", known...))
}

// toolEvents carry a tool that can be matched.
func toolEvent(e events.HookEvent) bool {
	switch e {
	case events.BeforeToolCall, events.AfterToolCall, events.ToolError, events.ApprovalRequested, events.ApprovalResolved:
		return true
	}
	return false
}

func (f fileReader) condition(e entry, h Hook) condition {
	o := e.value.object("equals", "contains", "regex")
	c := condition{name: e.key}
	f.oneLine(e.value, e.key)
	for _, key := range []string{"equals", "contains", "regex"} {
		f.lines(o.field(key))
	}
	if v := o.field("equals"); v.present() {
		s := v.text("")
		c.equals = &s
	}
	c.contains = o.field("contains").text("")
	if v := o.field("regex"); v.present() {
		c.pattern = newPattern(v.text(""))
		if c.pattern.err != nil && h.Enabled {
			v.warn(FindingBadRegex, "%s; the hook fails whenever everything else matches", c.pattern.err)
		}
	}
	if f.icode && h.Enabled {
		for _, key := range []string{"equals", "contains"} {
			v := o.field(key)
			v.warnPythonShape(v.text(""))
		}
		v := o.field("regex")
		v.warnPythonShape(plainText(v.text("")))
	}
	return c
}

// warnPythonShape warns of a condition that relies on how Python's str() shows
// lists and objects: with single quotes and a space behind commas and colons.
func (v value) warnPythonShape(text string) {
	for _, sign := range []string{"['", "{'", "']", "'}", "', '", "': ", "[True", "[False", "[None"} {
		if strings.Contains(text, sign) {
			v.warn(FindingPythonText, "looks like a list or object as Python shows it; they are compared as JSON text here, such as [\"a\",{\"b\":1}]")
			return
		}
	}
}

// plainText is about what a regex looks for: escapes are taken off and the
// brackets of classes left out.
func plainText(regex string) string {
	var out strings.Builder
	escaped := false
	for _, r := range regex {
		switch {
		case escaped:
			out.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped = true
		case r != '[' && r != ']':
			out.WriteRune(r)
		}
	}
	return out.String()
}
