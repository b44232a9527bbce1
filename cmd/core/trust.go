package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func (c cli) hooksTrust() *cobra.Command {
	var dir string
	var yes bool
	cmd := &cobra.Command{
		Use: "trust", Short: c.w.Say(words.TrustShort), Long: c.w.Say(words.TrustLong), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			book, err := c.rulebook(dir)
			if err != nil {
				return err
			}
			return book.trust(cmd.InOrStdin(), cmd.OutOrStdout(), yes)
		},
	}
	c.text(cmd, &dir, "dir", "DIR", words.FlagDir)
	cmd.Flags().BoolVar(&yes, "yes", false, c.w.Say(words.FlagYes))
	return cmd
}

func (c cli) hooksUntrust() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "untrust", Short: c.w.Say(words.UntrustShort), Long: c.w.Say(words.UntrustLong), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			book, err := c.rulebook(dir)
			if err != nil {
				return err
			}
			said := words.UntrustedBefore
			if slices.ContainsFunc(ofProject(book.store().Inspect(book.dir)), wasTrusted) {
				said = words.Untrusted
			}
			if _, err := book.store().Untrust(book.dir); err != nil {
				return c.fault(words.TrustNotKept, err)
			}
			paragraph(cmd.OutOrStdout(), " ", c.w.Say(said, card.Line(shortHome(book.dir))))
			return nil
		},
	}
	c.text(cmd, &dir, "dir", "DIR", words.FlagDir)
	return cmd
}

func wasTrusted(f hooks.FileReport) bool {
	return f.Trust == hooks.TrustTrusted || f.Trust == hooks.TrustChanged
}

// trust shows what would be trusted and asks for a yes.
func (r rulebook) trust(in io.Reader, out io.Writer, yes bool) error {
	store := r.store()
	shown := store.Inspect(r.dir)
	files := ofProject(shown)
	if len(files) == 0 {
		return r.fault(words.NothingToTrust, shortHome(r.dir))
	}
	paragraph(out, " ", card.Line(shortHome(r.dir)))
	for _, f := range files {
		if f.Err != nil {
			return r.fault(words.FileBroken, f.Err)
		}
		r.offer(out, f)
	}
	if !slices.ContainsFunc(files, func(f hooks.FileReport) bool { return f.Trust != hooks.TrustTrusted }) {
		paragraph(out, " ", r.w.Say(words.TrustedAlready))
		return nil
	}
	for _, f := range hooks.Lint(shown, os.Environ()) {
		if f.Code == hooks.FindingNotPinned {
			r.finding(out, f)
		}
	}
	paragraph(out, " ", r.w.Say(words.TrustMeans))
	if !yes {
		if err := r.agreed(in, out); err != nil {
			return err
		}
	}
	trusted, err := store.Trust(r.dir)
	if err != nil {
		return r.fault(words.TrustNotKept, err)
	}
	if !slices.Equal(digests(ofProject(trusted)), digests(files)) {
		_, err := store.Untrust(r.dir) // the yes was about other bytes
		return errors.Join(r.fault(words.ChangedMeanwhile), err)
	}
	paragraph(out, " ", r.w.Say(words.Trusted))
	return nil
}

// ofProject is what stands in the project: the rest is always on.
func ofProject(report hooks.Report) []hooks.FileReport {
	return slices.DeleteFunc(slices.Clone(report.Files), func(f hooks.FileReport) bool { return f.Trust == hooks.TrustAlways })
}

func digests(files []hooks.FileReport) []string {
	var all []string
	for _, f := range files {
		all = append(all, f.Path+" "+string(f.Digest))
		for _, s := range f.Scripts {
			all = append(all, s.Path+" "+string(s.Digest))
		}
	}
	return all
}

// offer shows a file, its scripts, what is not as it was, and its hooks.
func (r rulebook) offer(out io.Writer, f hooks.FileReport) {
	var rows table
	rows.add("   "+r.short(f.Path), digest(f.Digest), r.w.Trust(string(f.Trust)))
	for _, s := range f.Scripts {
		rows.add("   "+r.short(s.Path), digest(s.Digest), "")
	}
	rows.print(out)
	for _, change := range f.Changes {
		paragraph(out, "   ", card.Line(r.w.Tell(change)))
	}
	r.rows(f).print(out)
}

// digest is the beginning of a digest, enough to compare by eye.
func digest(d events.Digest) string {
	const shown = 12
	return string(d[:min(len(d), shown)])
}

// agreed asks for a yes on a terminal; without one there is nobody to ask.
func (r rulebook) agreed(in io.Reader, out io.Writer) error {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) {
		return r.fault(words.TrustWantsYes)
	}
	fmt.Fprint(out, " "+r.w.Say(words.TrustQuestion)+" ")
	line, err := bufio.NewReader(in).ReadString('\n')
	if said := strings.ToLower(strings.TrimSpace(line)); err == nil && (said == "y" || said == "yes") {
		return nil
	}
	return exitError{exitRefused, r.fault(words.NotTrusted)}
}
