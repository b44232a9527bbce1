package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func (c cli) hooks() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hooks", Short: c.w.Say(words.HooksShort), Long: c.w.Say(words.HooksLong), Args: cobra.ArbitraryArgs, RunE: c.group,
	}
	cmd.AddCommand(c.hooksList(), c.hooksCheck(), c.hooksRun(), c.hooksTrust(), c.hooksUntrust(), c.hooksInit())
	return cmd
}

// storeOptions says where this user's hooks files are.
func storeOptions(dirs place.Dirs, config place.Config) hooks.StoreOptions {
	o := hooks.StoreOptions{
		GlobalDir: dirs.Config, TrustFile: filepath.Join(dirs.State, "trust.json"),
		ICode: config.Hooks.ICodePaths, OnInvalidWarn: config.Hooks.OnInvalid == place.InvalidWarn,
	}
	if home, err := os.UserHomeDir(); err == nil && o.ICode {
		o.ICodeGlobal = filepath.Join(home, ".chrys", "hooks")
	}
	return o
}

// rulebook is the hooks files as they concern one directory.
type rulebook struct {
	cli
	options hooks.StoreOptions
	dir     string // absolute
}

// rulebook is opened for a directory; "" is the working directory.
func (c cli) rulebook(dir string) (rulebook, error) {
	dirs, err := c.dirs()
	if err != nil {
		return rulebook{}, err
	}
	config, err := c.config(dirs)
	if err != nil {
		return rulebook{}, err
	}
	abs, err := filepath.Abs(dir) // of "" the working directory
	if err != nil {
		return rulebook{}, err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return rulebook{}, c.fault(words.NoDirectory, abs)
	}
	return rulebook{c, storeOptions(dirs, config), abs}, nil
}

func (r rulebook) store() *hooks.Store { return hooks.NewStore(r.options) }

// short is a path as it is shown: from the directory that is looked at, or from
// the home directory.
func (r rulebook) short(path string) string {
	dir := r.dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for _, from := range []string{r.dir, dir} {
		if rel, err := filepath.Rel(from, path); err == nil && filepath.IsLocal(rel) {
			return card.Line(rel)
		}
	}
	return card.Line(shortHome(path))
}

func shortHome(path string) string {
	home, err := os.UserHomeDir()
	if rel, under := strings.CutPrefix(path, home+"/"); err == nil && under {
		return "~/" + rel
	}
	return path
}

// hookLine is one hook, or one file that cannot be read, in `hooks list --json`.
type hookLine struct {
	Scope       events.Scope     `json:"scope"`
	File        string           `json:"file"`
	Trust       hooks.TrustState `json:"trust"`
	Error       string           `json:"error,omitempty"`
	Line        int              `json:"line,omitempty"`
	ID          string           `json:"id,omitempty"`
	Event       events.HookEvent `json:"event,omitempty"`
	Mode        hooks.Mode       `json:"mode,omitempty"`
	Enabled     bool             `json:"enabled"`
	Run         hooks.RunType    `json:"run,omitempty"`
	Does        string           `json:"does,omitempty"`
	Description string           `json:"description,omitempty"`
}

func (c cli) hooksList() *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: c.w.Say(words.ListShort), Long: c.w.Say(words.ListLong), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			book, err := c.rulebook(dir)
			if err != nil {
				return err
			}
			report := book.store().Inspect(book.dir)
			if asJSON {
				return printHooks(cmd.OutOrStdout(), report)
			}
			book.list(cmd.OutOrStdout(), report)
			return nil
		},
	}
	c.text(cmd, &dir, "dir", "DIR", words.FlagDir)
	c.json(cmd, &asJSON)
	return cmd
}

func printHooks(out io.Writer, report hooks.Report) error {
	for _, f := range report.Files {
		file := hookLine{Scope: f.Scope, File: f.Path, Trust: f.Trust}
		if f.Err != nil {
			file.Error = f.Err.Error()
			if err := printJSON(out, file); err != nil {
				return err
			}
		}
		for _, h := range f.Hooks {
			line := file
			line.Line, line.ID, line.Event, line.Mode, line.Enabled = h.Ref.Line, h.Ref.ID, h.Event, h.Mode, h.Enabled
			line.Run, line.Does, line.Description = h.Run.Type, runs(h.Run), h.Description
			if err := printJSON(out, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// list prints each file, and below it what is in it.
func (r rulebook) list(out io.Writer, report hooks.Report) {
	if len(report.Files) == 0 {
		r.none(out)
		return
	}
	for i, f := range report.Files {
		if i > 0 {
			paragraph(out, "", "")
		}
		paragraph(out, " ", r.w.Scope(string(f.Scope))+"  "+r.short(f.Path)+"  "+r.w.Trust(string(f.Trust)))
		for _, change := range f.Changes {
			paragraph(out, "   ", card.Line(r.w.Tell(change)))
		}
		if f.Err != nil {
			paragraph(out, "   ", card.Escape(r.w.Say(words.FileBroken, f.Err)))
		}
		r.rows(f).print(out)
	}
}

// none tells where a hooks file would be looked for.
func (r rulebook) none(out io.Writer) {
	paragraph(out, " ", r.w.Say(words.NoHooks, card.Line(shortHome(r.options.GlobalDir)), card.Line(shortHome(r.dir))))
}

func (r rulebook) rows(f hooks.FileReport) table {
	var rows table
	for _, h := range f.Hooks {
		does := r.does(h)
		if !h.Enabled {
			does = r.w.Say(words.HookOff)
		}
		rows.add("   :"+strconv.Itoa(h.Ref.Line), card.Line(h.Ref.ID), string(h.Event), string(h.Mode), does)
	}
	return rows
}

// does tells in words what a hook does.
func (r rulebook) does(h hooks.Hook) string {
	if h.Run.Type == hooks.RunVerdict {
		return r.w.Does(h.Run.Action)
	}
	return r.w.Say(words.HookRuns, card.Line(runs(h.Run)))
}

// runs is the program of a hook, or the verdict of one that has none.
func runs(run hooks.Run) string {
	switch run.Type {
	case hooks.RunVerdict:
		return run.Action
	case hooks.RunScript:
		return strings.Join(append([]string{run.Path}, run.Args...), " ")
	case hooks.RunCommand:
		return strings.Join(slices.Concat(run.Argv, run.Args), " ")
	case hooks.RunShell:
	}
	return run.Shell
}

// findingLine is one finding in `hooks check --json`.
type findingLine struct {
	Severity hooks.Severity    `json:"severity"`
	Code     hooks.FindingCode `json:"code"`
	File     string            `json:"file"`
	Line     int               `json:"line,omitempty"`
	Hook     string            `json:"hook,omitempty"`
	Message  string            `json:"message"`
}

func (c cli) hooksCheck() *cobra.Command {
	var dir string
	var strict, asJSON bool
	cmd := &cobra.Command{
		Use: "check", Short: c.w.Say(words.CheckShort), Long: c.w.Say(words.CheckLong), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			book, err := c.rulebook(dir)
			if err != nil {
				return err
			}
			report := book.store().Inspect(book.dir)
			found := hooks.Lint(report, os.Environ())
			if asJSON {
				err = printFindings(cmd.OutOrStdout(), found)
			} else {
				book.findings(cmd.OutOrStdout(), report, found)
			}
			if mistakes, warnings := counted(found); err == nil && (mistakes > 0 || strict && warnings > 0) {
				return exitError{code: exitFault}
			}
			return err
		},
	}
	c.text(cmd, &dir, "dir", "DIR", words.FlagDir)
	cmd.Flags().BoolVar(&strict, "strict", false, c.w.Say(words.FlagStrict))
	c.json(cmd, &asJSON)
	return cmd
}

func counted(found []hooks.Finding) (mistakes, warnings int) {
	for _, f := range found {
		if f.Severity == hooks.SeverityError {
			mistakes++
		} else {
			warnings++
		}
	}
	return mistakes, warnings
}

func printFindings(out io.Writer, found []hooks.Finding) error {
	for _, f := range found {
		line := findingLine{f.Severity, f.Code, f.File, f.Line, f.Hook, f.Message.Error()}
		if err := printJSON(out, line); err != nil {
			return err
		}
	}
	return nil
}

// findings prints each with its code and what it means, and below it the details.
func (r rulebook) findings(out io.Writer, report hooks.Report, found []hooks.Finding) {
	if len(report.Files) == 0 {
		r.none(out)
		return
	}
	for _, f := range found {
		r.finding(out, f)
	}
	if len(found) == 0 {
		for _, f := range report.Files {
			paragraph(out, " ", r.w.Say(words.CheckClean, r.short(f.Path), len(f.Hooks)))
		}
		return
	}
	mistakes, warnings := counted(found)
	paragraph(out, " ", r.w.Say(words.CheckFound, mistakes, warnings))
}

func (r rulebook) finding(out io.Writer, f hooks.Finding) {
	at := r.short(f.File)
	if f.Line > 0 {
		at += ":" + strconv.Itoa(f.Line)
	}
	if f.Hook != "" {
		at += "  " + card.Line(f.Hook)
	}
	meaning := r.w.Coded(r.w.Finding(string(f.Code)), string(f.Code))
	paragraph(out, " ", r.w.Severity(string(f.Severity))+"  "+at+"  "+meaning)
	paragraph(out, "   ", card.Escape(r.w.Tell(f.Message)))
}
