package journal

// BatchesOf sends entries in batches of at least n and never alone, whatever the
// log's options say.
func (j *Journal) BatchesOf(n int) { j.Group(n, 0) }

// Group sends some entries alone and as many as least together.
func (j *Journal) Group(least, abreast int) {
	j.group = &group{least: least, abreast: abreast, commit: j.commitBatch}
}
