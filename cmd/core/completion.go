package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/frontends/words"
)

func (c cli) completion() *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: c.w.Say(words.CompletionShort), Long: c.w.Say(words.CompletionLong, c.name),
		Args: c.exactly(1), ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			write := map[string]func(io.Writer) error{
				"bash":       func(out io.Writer) error { return root.GenBashCompletionV2(out, true) },
				"zsh":        root.GenZshCompletion,
				"fish":       func(out io.Writer) error { return root.GenFishCompletion(out, true) },
				"powershell": root.GenPowerShellCompletionWithDesc,
			}[args[0]]
			if write == nil {
				return c.fault(words.UnknownShell, args[0])
			}
			return write(cmd.OutOrStdout())
		},
	}
}
