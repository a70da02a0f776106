package keeper

// Tape is a tape for tests.
type Tape = tape

// NewTape returns an open tape that keeps head bytes of the beginning and tail
// bytes of the end at least.
func NewTape(path string, head, tail int64) (*Tape, error) {
	t := &tape{path: path, head: head, tail: tail}
	return t, t.open()
}

// Write appends to the tape.
func (t *tape) Write(p []byte) (int, error) {
	t.write(p)
	return len(p), nil
}

// Close ends the tape and returns what was lost.
func (t *tape) Close(note string) error {
	t.close(note)
	return t.err
}

// Descendants is descendants.
func Descendants(procs []Proc, ancestor int) map[int][]Proc { return descendants(procs, ancestor) }
