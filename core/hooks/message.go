package hooks

import "fmt"

// sentence is a text that a person may read: English, with the verbs of package
// fmt. Whoever shows it in another language knows it by its English, so every
// text of this type stands in the catalogue of the frontends, and a test there
// finds it by its type. It must be a constant.
type sentence string

// Message is a sentence with its arguments, which may be messages themselves.
// As an error it speaks English.
type Message struct {
	text sentence
	args []any
}

func tell(text sentence, args ...any) Message { return Message{text, args} }

// In gives the message in the language of say, which takes an English sentence
// and its arguments as [fmt.Sprintf] does, and leaves them as they are.
func (m Message) In(say func(text string, args ...any) string) string {
	return say(string(m.text), m.args...)
}

// Error is the message in English.
func (m Message) Error() string { return m.In(fmt.Sprintf) }

// Unwrap lists the errors among the arguments.
func (m Message) Unwrap() []error {
	var causes []error
	for _, a := range m.args {
		if err, ok := a.(error); ok {
			causes = append(causes, err)
		}
	}
	return causes
}

// joined names several things one after the other; pair joins two of them.
func joined[T any](pair sentence, items ...T) Message {
	var m Message
	for i, item := range items {
		if i == 0 {
			m = tell("%s", item)
		} else {
			m = tell(pair, m, item)
		}
	}
	return m
}
