package batch

import (
	"slices"

	"github.com/writ-sched/writ/internal/record"
)

// Reads lists the keys that the Else of a change reads: the single keys that it
// expects something of and, behind them, those that it puts, each once.
func Reads(c record.Change) []record.Key {
	seen := make(map[record.Key]bool, len(c.Expect)+len(c.Put))
	var keys []record.Key
	add := func(k record.Key) {
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	for _, e := range c.Expect {
		if !e.Ranged() {
			add(e.Key)
		}
	}
	for _, p := range c.Put {
		add(p.Key)
	}
	return keys
}

// Width is how wide the child Txn of a change is, as etcd counts: the greatest
// number of its compares, of its writes, or of its reads.
func Width(c record.Change) int {
	return max(len(c.Expect), len(c.Put)+len(c.Delete), len(Reads(c)))
}

// Judge says what became of a change whose expectations did not hold, given what
// stood under its Reads. It may have met its own first try, and only a stored
// write id says so: the same token, or the same state, is not enough. Blobs that
// are written once bear none; for them the same bytes are.
func Judge(c record.Change, seen []record.Stored) record.Outcome {
	found := record.Outcome{Verdict: record.Conflict, Seen: seen}
	if c.WriteOnce() {
		if rev, ok := standing(c, found); ok {
			return record.Outcome{Verdict: record.Committed, Rev: rev}
		}
		return found
	}
	for _, p := range c.Put {
		if at, ok := found.Find(p.Key); ok && record.Bears(at.Value, c.Write) {
			return record.Outcome{Verdict: record.Committed, Rev: at.ModRev}
		}
	}
	return found
}

// standing says whether every blob that c puts is there, and the last revision
// of one of them.
func standing(c record.Change, found record.Outcome) (int64, bool) {
	last := int64(0)
	for _, p := range c.Put {
		at, ok := found.Find(p.Key)
		have, blob := at.Value.(record.Blob)
		if !ok || !blob || !slices.Equal(have, p.Value.(record.Blob)) {
			return 0, false
		}
		last = max(last, at.ModRev)
	}
	return last, true
}
