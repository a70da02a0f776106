package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/record"
)

// Observed is an execution as its process lived it, from a ledger that is kept
// outside of writ.
type Observed struct {
	Token  record.Token
	Worker record.WorkerName
	// Start and End are of one clock over all observations. An End of zero is
	// an execution that nobody saw end; it overlaps nothing.
	Start, End time.Time
	// Rev is a revision that the store had reached when the process started,
	// where the ledger knows one; 0 otherwise.
	Rev int64
}

// Observe gives one execution that was seen.
func (a *Auditor) Observe(o Observed) { a.observed = append(a.observed, o) }

// checkObserved asks I1 and I7 of what was seen from outside.
func (a *Auditor) checkObserved() {
	perTask := map[record.TaskRef][]Observed{}
	for _, o := range a.observed {
		at, ok := a.tokens[o.Token]
		if !ok && a.partial {
			continue // its row may have gone before the history
		}
		a.checked("I1")
		key := record.AttemptKey(at.ref)
		switch {
		case !ok:
			a.breach("I1", a.rev, record.WorkerKey(o.Worker, ""), "an execution with the token %s was seen, expected a row that bears it", o.Token)
			continue
		case o.Rev != 0 && o.Rev < at.rev:
			a.breach("I1", at.rev, key, "its execution was seen at revision %d, expected the row to be committed before it", o.Rev)
		case o.Worker != "" && o.Worker != at.row.Worker:
			a.breach("I1", at.rev, key, "it was executed by worker %s, expected %s, which the row names", o.Worker, at.row.Worker)
		}
		if !at.row.Idempotent {
			perTask[at.ref.TaskRef] = append(perTask[at.ref.TaskRef], o)
		}
	}
	for _, list := range perTask {
		a.checkOverlap(list)
	}
}

// checkOverlap asks I7 of the executions of one task.
func (a *Auditor) checkOverlap(list []Observed) {
	a.checked("I7")
	slices.SortFunc(list, func(x, y Observed) int {
		return cmp.Or(x.Start.Compare(y.Start), x.End.Compare(y.End), cmp.Compare(x.Token, y.Token))
	})
	var last Observed // of those before, the one that ended last
	for _, o := range list {
		if !last.End.IsZero() && o.Start.Before(last.End) {
			at := a.tokens[o.Token]
			a.breach("I7", at.rev, record.AttemptKey(at.ref), "it was executed from %s, while %s ran until %s, expected their times to be disjoint",
				o.Start.UTC().Format(time.RFC3339Nano), a.tokens[last.Token].ref, last.End.UTC().Format(time.RFC3339Nano))
		}
		if o.End.After(last.End) {
			last = o
		}
	}
}
