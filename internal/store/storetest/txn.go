package storetest

import (
	"errors"
	"slices"
	"strings"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/record"
)

// errLease means that a put names a lease that is gone.
var errLease = errors.New("requested lease not found")

// txn makes changes as one Txn: all compares see the state before it, and what
// is written has one revision. It is called with the lock.
func (f *Fake) txn(changes []record.Change) batch.Done {
	holds := make([]bool, len(changes))
	for i, c := range changes {
		holds[i] = !slices.ContainsFunc(c.Expect, func(e record.Expect) bool { return !f.holds(e) })
		if holds[i] && slices.ContainsFunc(c.Put, func(p record.Put) bool { return p.Lease != 0 && f.leases[p.Lease] == nil }) {
			return batch.Done{Class: batch.Refused, Err: errLease}
		}
	}
	outcomes := make([]record.Outcome, len(changes))
	for i, c := range changes {
		if !holds[i] {
			outcomes[i] = batch.Judge(c, f.seen(c))
		}
	}
	before := f.rev
	for i, c := range changes {
		if holds[i] {
			f.apply(c, before+1)
		}
	}
	for i := range changes {
		if holds[i] {
			outcomes[i] = record.Outcome{Verdict: record.Committed, Rev: f.rev}
		}
	}
	if f.rev > before {
		f.advance()
	}
	return batch.Done{Class: batch.Answered, Outcomes: outcomes}
}

// holds says whether an expectation holds now.
func (f *Fake) holds(e record.Expect) bool {
	at := f.records[e.Key]
	switch e.Want {
	case record.WantAbsent:
		return at.ModRev == 0
	case record.WantPresent:
		return at.ModRev != 0
	case record.WantRev:
		return at.ModRev == e.Rev
	case record.WantCreateRev:
		return at.CreateRev == e.Rev
	case record.WantEmpty, record.WantUnchanged:
		for k, at := range f.records {
			if e.Range.Has(k) && (e.Want == record.WantEmpty || at.ModRev > e.Rev) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// seen reads what the Else of a change reads.
func (f *Fake) seen(c record.Change) []record.Stored {
	keys := batch.Reads(c)
	list := make([]record.Stored, len(keys))
	for i, k := range keys {
		list[i] = f.records[k]
		list[i].Key = k
	}
	return list
}

// apply writes a change at a revision.
func (f *Fake) apply(c record.Change, rev int64) {
	for _, p := range c.Put {
		f.rev = rev
		f.put(p)
	}
	for _, d := range c.Delete {
		for _, k := range f.matching(d) {
			f.rev = rev
			f.drop(k)
		}
	}
}

// matching lists the keys that a delete finds, in order.
func (f *Fake) matching(d record.Delete) []record.Key {
	if !d.Over {
		if _, ok := f.records[d.Key]; !ok {
			return nil
		}
		return []record.Key{d.Key}
	}
	var keys []record.Key
	for k := range f.records {
		if d.Range.Has(k) {
			keys = append(keys, k)
		}
	}
	f.sort(keys)
	return keys
}

// sort puts keys into the order of their strings.
func (f *Fake) sort(keys []record.Key) {
	slices.SortFunc(keys, func(a, b record.Key) int { return strings.Compare(f.space.Key(a), f.space.Key(b)) })
}
