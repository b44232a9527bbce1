package frontends

// Complete reports whether a core knows this frontend and every open question
// in its scope is in the Inbox.
func (b *Inbox) Complete() bool { return b.Attached() && len(b.behind()) == 0 }
