package tui

import "github.com/fermata-hitl/fermata/frontends/words"

// helpView names every key, and what the signs mean.
func (m *Model) helpView() []string {
	say := func(k words.Key) string { return m.w.Say(k) }
	fields := []field{{value: say(words.HelpList), head: true}}
	fields = append(fields,
		field{name: "↑ ↓ j k", value: say(words.HelpMove)},
		field{name: "Enter", value: say(words.HelpOpen)},
		field{name: "space", value: say(words.HelpTick)},
		field{name: "a", value: say(words.HelpTickAll)},
		field{name: "n", value: say(words.HelpNext)},
		field{name: "Tab", value: say(words.HelpTab)},
		field{name: "/", value: say(words.HelpFilter)},
		field{name: "h", value: say(words.HelpHooks)},
		field{name: "m", value: say(words.HelpMouse)},
		field{name: "q", value: say(words.HelpQuit)},
	)
	fields = append(fields, field{}, field{value: say(words.HelpQuestion), head: true},
		field{name: "c", value: say(words.Continue)},
		field{name: "x", value: say(words.Cancel)},
		field{name: "w", value: say(words.CancelWords)},
		field{name: "?", value: say(words.HelpWhy)},
		field{name: "Esc", value: say(words.HelpLater)},
		field{name: "↑ ↓", value: say(words.HelpScroll)},
		field{name: "Tab", value: say(words.HelpFocus)},
		field{name: "o", value: say(words.HelpPager)},
		field{name: "y", value: say(words.HelpCopy)},
		field{name: "n N", value: say(words.HelpTurn)},
	)
	fields = append(fields, field{}, field{value: say(words.HelpSigns), head: true},
		field{name: "?", value: say(words.SignWaiting)},
		field{name: "●", value: say(words.SignRunning)},
		field{name: "✓", value: say(words.SignWentOn)},
		field{name: "✕", value: say(words.SignRefused)},
		field{name: "⌛", value: say(words.SignNoAnswer)},
		field{name: "–", value: say(words.SignWithdrawn)},
		field{name: "·", value: say(words.SignNobody)},
	)
	return m.pageView(say(words.HelpTitle), fields)
}
