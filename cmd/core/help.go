package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// speak gives the whole tree of commands the person's language, in place of the
// library's own words.
func (c cli) speak(root *cobra.Command) {
	root.PersistentFlags().String("language", "", c.w.Setting("language"))
	root.PersistentFlags().BoolP("help", "h", false, c.w.Say(words.FlagHelp))
	root.Flags().BoolP("version", "v", false, c.w.Say(words.FlagVersion))
	root.SetVersionTemplate(c.name + " " + version + "\n")
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { c.printHelp(cmd) })
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND…]", Short: c.w.Say(words.HelpShort), Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return c.unknownCommand(cmd, strings.Join(args, " "))
			}
			c.printHelp(cmd)
			return nil
		},
	})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return c.badFlag(cmd, err) })
}

func (c cli) checkLanguage(cmd *cobra.Command) error {
	f := cmd.Flag("language")
	if f == nil || !f.Changed {
		return nil
	}
	var config place.Config
	if err := config.Set(f.Name, f.Value.String()); err != nil {
		return c.fault(words.WrongUse, err)
	}
	return nil
}

// group is what a command does that only holds others: alone it tells which.
func (c cli) group(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return c.unknownCommand(cmd, args[0])
	}
	c.printHelp(cmd)
	return nil
}

// unknownCommand says that a command has no such one, and which it may be.
func (c cli) unknownCommand(of *cobra.Command, word string) error {
	of.SuggestionsMinimumDistance = 2 // letters
	if near := of.SuggestionsFor(word); word != "" && len(near) > 0 {
		return c.fault(words.DidYouMean, word, of.CommandPath(), c.w.List(near))
	}
	return c.fault(words.UnknownCommand, word, of.CommandPath())
}

// exactly wants so many arguments.
func (c cli) exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return c.fault(words.WrongArguments, usageLine(cmd), cmd.CommandPath())
	}
}

func (c cli) badFlag(cmd *cobra.Command, err error) error {
	if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 {
		return c.unknownCommand(cmd, before[0])
	}
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return c.fault(words.UnknownFlag, dashed(unknown.GetSpecifiedName()), cmd.CommandPath())
	case errors.As(err, &bare):
		return c.fault(words.FlagWantsValue, dashed(bare.GetSpecifiedName()))
	case errors.As(err, &wrong):
		return c.fault(words.FlagWrongValue, wrong.GetValue(), dashed(wrong.GetFlag().Name))
	}
	return c.fault(words.WrongUse, err)
}

func dashed(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
}

// valueName is where a flag keeps the name of its value.
const valueName = "value"

// text adds a flag with a text as its value.
func (c cli) text(cmd *cobra.Command, to *string, name, value string, help words.Key) {
	cmd.Flags().StringVar(to, name, "", c.w.Say(help))
	_ = cmd.Flags().SetAnnotation(name, valueName, []string{value}) // the flag is there
}

// json adds the flag that asks for JSON.
func (c cli) json(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, c.w.Say(words.FlagJSON))
}

func usageLine(cmd *cobra.Command) string {
	line := cmd.UseLine()
	return strings.TrimSuffix(line, " [flags]")
}

// printHelp tells what a command does and how it is called.
func (c cli) printHelp(cmd *cobra.Command) {
	out := page{cmd.OutOrStdout()}
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	paragraph(out, "", about)
	usage := usageLine(cmd)
	if cmd.HasAvailableSubCommands() {
		usage += " COMMAND"
	}
	fmt.Fprintf(out, "\n%s\n  %s\n", c.w.Say(words.HelpUsage), usage)
	var commands, flags table
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			commands.add("  "+sub.Name(), sub.Short)
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags.add(flagRow(f)...) })
	if !cmd.Flags().HasFlags() {
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { flags.add(flagRow(f)...) })
	}
	if len(commands) > 0 {
		fmt.Fprintln(out, "\n"+c.w.Say(words.HelpCommands))
		commands.print(out)
	}
	fmt.Fprintln(out, "\n"+c.w.Say(words.HelpFlags))
	printFlags(out, flags)
	if len(commands) > 0 {
		fmt.Fprintln(out)
		paragraph(out, "", c.w.Say(words.HelpMore, cmd.CommandPath()))
	}
}

// printFlags prints long names on a line of their own.
func printFlags(out io.Writer, flags table) {
	const wide = 30
	if widths := flags.widths(); len(widths) > 0 && widths[0] <= wide {
		flags.print(out)
		return
	}
	for _, row := range flags {
		fmt.Fprintln(out, row[0])
		paragraph(out, strings.Repeat(" ", 10), row[1])
	}
}

func flagRow(f *pflag.Flag) []string {
	name := "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	if value := f.Annotations[valueName]; len(value) > 0 {
		name += " " + value[0]
	} else if f.NoOptDefVal == "" {
		name += " VALUE"
	}
	return []string{name, f.Usage}
}
