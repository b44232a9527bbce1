package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func (c cli) hooksInit() *cobra.Command {
	var dir string
	var packs []string
	cmd := &cobra.Command{
		Use: "init", Short: c.w.Say(words.InitShort), Long: c.w.Say(words.InitLong, c.w.List(hooks.Packs())), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, p := range packs {
				if !slices.Contains(hooks.Packs(), p) {
					return c.fault(words.UnknownPack, p, c.w.List(hooks.Packs()))
				}
			}
			if len(packs) == 0 {
				packs = hooks.Packs()
			}
			text, err := hooks.Starter(packs...)
			if err != nil {
				return err
			}
			file, err := c.writeStarter(dir, text)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			paragraph(out, " ", c.w.Say(words.InitWritten, card.Line(shortHome(file)), c.w.List(packs)))
			if dir == "" {
				paragraph(out, " ", c.w.Say(words.InitNext, c.name))
			} else {
				paragraph(out, " ", c.w.Say(words.InitNextTrust, c.name, card.Line(dir)))
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&packs, "pack", nil, c.w.Say(words.FlagPack))
	_ = cmd.Flags().SetAnnotation("pack", valueName, []string{"PACK,…"}) // the flag is there
	c.text(cmd, &dir, "dir", "DIR", words.FlagInitDir)
	return cmd
}

// writeStarter writes the first hooks file of a project, or with "" the global
// one. It never touches one that is there.
func (c cli) writeStarter(project, text string) (string, error) {
	book, err := c.rulebook(project)
	if err != nil {
		return "", err
	}
	dir := book.options.GlobalDir
	if project != "" {
		dir = filepath.Join(book.dir, ".fermata")
	}
	for _, name := range hooks.FileNames() {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return "", c.fault(words.InitExists, shortHome(filepath.Join(dir, name)))
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", c.fault(words.InitNotWritten, err)
	}
	file := filepath.Join(dir, hooks.FileNames()[0])
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", c.fault(words.InitNotWritten, err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", c.fault(words.InitNotWritten, err)
	}
	return file, nil
}
