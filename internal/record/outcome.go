package record

// Verdict is how a change went.
type Verdict string

// The verdicts. There is no fourth, and none of them is an error.
const (
	// Committed: the change is durable.
	Committed Verdict = "committed"
	// Conflict: an expectation did not hold, and nothing was written.
	Conflict Verdict = "conflict"
	// Unknown: the change may have been made, or may still be made later. Only
	// the same change sent again can tell.
	Unknown Verdict = "unknown"
)

// Outcome is what became of a change.
type Outcome struct {
	Verdict Verdict
	// Rev, of a commit, is a revision at which the change is visible: its own
	// or, where its answer was lost, that at which it was found to be made.
	Rev int64
	// Seen, of a conflict, holds what the expected single keys were at that
	// moment, in the order of the expectations, and after them the keys that
	// the change would have put. Absent ones have ModRev 0 and no Value.
	Seen []Stored
}

// Find returns what a conflict saw under k.
func (o Outcome) Find(k Key) (Stored, bool) {
	for _, s := range o.Seen {
		if s.Key == k {
			return s, true
		}
	}
	return Stored{}, false
}

// Stored is a value as it stands in the store.
type Stored struct {
	Key       Key
	Value     Value // nil where the key is absent
	CreateRev int64
	ModRev    int64
	Lease     int64
}

// Event says that a key was put or, with a nil Value, deleted at ModRev.
type Event struct {
	Key       Key
	Value     Value
	CreateRev int64
	ModRev    int64
	Lease     int64
}

// Events is everything of one or more whole revisions up to Rev: a revision is
// never split over two of them.
type Events struct {
	Rev    int64
	Events []Event
}
