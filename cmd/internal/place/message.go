package place

import "fmt"

// sentence is a text that a person may read, in English; the frontends'
// catalogue has it in other languages, and a test there finds it by its type. It
// must be a constant.
type sentence string

// Message is a sentence with its arguments. As an error it speaks English.
type Message struct {
	text sentence
	args []any
}

func tell(text sentence, args ...any) Message { return Message{text, args} }

// In gives the message in the language of say, which takes an English sentence
// and its arguments as [fmt.Sprintf] does.
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
