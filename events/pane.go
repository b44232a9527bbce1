package events

import "strings"

// Pane is a place in a terminal multiplexer.
type Pane struct {
	Multiplexer string // "tmux" or "zellij"
	// Server is tmux's socket, an absolute path, or zellij's session name.
	Server string
	ID     string // tmux's pane, as in "%3"; zellij's, as in "3"
}

// maxPane bounds a pane as it is written, bytes.
const maxPane = 512

// String is the pane as it travels, "tmux:%3:/tmp/tmux-1000/default"; "" for the zero
// Pane.
func (p Pane) String() string {
	if p == (Pane{}) {
		return ""
	}
	return p.Multiplexer + ":" + p.ID + ":" + p.Server
}

// ParsePane reads what [Pane.String] wrote. Nothing else is accepted: what it names
// is handed to a program.
func ParsePane(s string) (Pane, bool) {
	if len(s) > maxPane {
		return Pane{}, false
	}
	multiplexer, rest, _ := strings.Cut(s, ":")
	id, server, _ := strings.Cut(rest, ":")
	number := id
	switch multiplexer {
	case "tmux":
		var ok bool
		if number, ok = strings.CutPrefix(id, "%"); !ok || !strings.HasPrefix(server, "/") {
			return Pane{}, false
		}
	case "zellij":
		if strings.HasPrefix(server, "-") || strings.Contains(server, "/") {
			return Pane{}, false
		}
	default:
		return Pane{}, false
	}
	if number == "" || strings.Trim(number, "0123456789") != "" || server == "" || !printable(server) {
		return Pane{}, false
	}
	return Pane{multiplexer, server, id}, true
}

// printable reports whether s is graphic ASCII throughout, spaces included.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
