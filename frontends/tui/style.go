package tui

import (
	"image/color"

	"charm.land/lipgloss/v2"
)

// styles are the few ways in which text can look. Every state they show also
// has a word or a sign, so that nothing is lost without colours. The colours
// are the terminal's own, which its owner made readable; only the warning
// differs, since yellow cannot be read on white.
type styles struct {
	dim, accent, warn, strong, key, cursor lipgloss.Style
}

func newStyles(dark bool) styles {
	var warn color.Color = lipgloss.Yellow
	if !dark {
		warn = lipgloss.Red
	}
	return styles{
		dim:    lipgloss.NewStyle().Faint(true),
		accent: lipgloss.NewStyle().Foreground(lipgloss.Cyan),
		warn:   lipgloss.NewStyle().Foreground(warn),
		strong: lipgloss.NewStyle().Bold(true),
		key:    lipgloss.NewStyle().Foreground(lipgloss.Cyan).Bold(true),
		cursor: lipgloss.NewStyle().Reverse(true),
	}
}
