package batch

import "github.com/writ-sched/writ/internal/record"

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
// write id says so: the same token, or the same state, is not enough.
func Judge(c record.Change, seen []record.Stored) record.Outcome {
	found := record.Outcome{Verdict: record.Conflict, Seen: seen}
	for _, p := range c.Put {
		if at, ok := found.Find(p.Key); ok && record.Bears(at.Value, c.Write) {
			return record.Outcome{Verdict: record.Committed, Rev: at.ModRev}
		}
	}
	return found
}
