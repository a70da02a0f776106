package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// Row is an attempt row with the revisions of its key.
type Row struct {
	record.Attempt
	CreateRev int64
	ModRev    int64
}

// FirstRev is the create revision that counts for clears and for WRIT_FENCE.
func (r Row) FirstRev() int64 { return r.Attempt.FirstRev(r.CreateRev) }

// Holder names the session that the row was dispatched to.
func (r Row) Holder() SessionRef { return SessionRef{Worker: r.Worker, Session: r.Session} }

// Task is one task of a run: its rows, and what they come to.
type Task struct {
	Ref record.TaskRef
	// Index is the task's place in the graph.
	Index int
	Spec  *spec.Task

	rows   []Row // by number; replaced as a whole, so that it may be kept
	cover  int64 // rows whose first revision is lower do not count
	latest int   // index of the row that counts, or -1
	up     spec.Tally
	above  time.Time // when the last upstream to close was closed
}

// Rows returns every row by number, those under a clear included.
func (t *Task) Rows() []Row { return t.rows }

// Last returns the row with the highest number, whether it counts or not.
func (t *Task) Last() (Row, bool) {
	if len(t.rows) == 0 {
		return Row{}, false
	}
	return t.rows[len(t.rows)-1], true
}

// Latest returns the row that the task's state is taken from: the last one,
// unless a clear covers it.
func (t *Task) Latest() (Row, bool) {
	if t.latest < 0 {
		return Row{}, false
	}
	return t.rows[t.latest], true
}

// Counts says that a row counts for the task's state: no clear covers it.
func (t *Task) Counts(r Row) bool { return r.FirstRev() >= t.cover }

// Cleared is the revision of the newest clear over the task, or zero.
func (t *Task) Cleared() int64 { return t.cover }

// State is the state of the latest row that counts; record.None without one.
func (t *Task) State() record.AttemptState {
	if t.latest < 0 {
		return record.None
	}
	return t.rows[t.latest].State
}

// Debt says which further attempt the task is owed, by its latest row that
// counts and its spec alone.
func (t *Task) Debt() Debt {
	if t.latest < 0 {
		return DebtNone
	}
	return Owed(t.Spec, t.rows[t.latest].Attempt)
}

// Class is what the task counts as for those below it.
func (t *Task) Class() spec.Class {
	if t.latest < 0 {
		return spec.ClassOpen
	}
	return ClassOf(t.Spec, t.rows[t.latest].Attempt)
}

// Upstream is the tally of the classes of the task's direct upstreams.
func (t *Task) Upstream() spec.Tally { return t.up }

// ClosedAbove is when the last of the closed upstreams entered its state; zero
// without one. A close that a clear has undone may still count.
func (t *Task) ClosedAbove() time.Time { return t.above }

// weigh counts one upstream in under its class.
func (t *Task) weigh(up *Task) {
	c := up.Class()
	t.up.Add(c)
	if c == spec.ClassOpen {
		return
	}
	if at := up.rows[up.latest].EnteredAt; at.After(t.above) {
		t.above = at
	}
}

// spoils says that the task makes its run fail.
func (t *Task) spoils() bool {
	s := t.State()
	return (s == record.Failed || s == record.UpstreamFailed) && !t.Spec.AllowFailure && t.Class() != spec.ClassOpen
}

// settle finds the row that counts.
func (t *Task) settle() {
	t.latest = -1
	if n := len(t.rows) - 1; n >= 0 && t.Counts(t.rows[n]) {
		t.latest = n
	}
}

func find(rows []Row, n int) (Row, bool) {
	i, ok := place(rows, n)
	if !ok {
		return Row{}, false
	}
	return rows[i], true
}

func place(rows []Row, n int) (int, bool) {
	return slices.BinarySearchFunc(rows, n, func(r Row, n int) int { return cmp.Compare(r.Attempt.Attempt, n) })
}

// with returns rows with row put in; rows itself stays as it is.
func with(rows []Row, row Row) []Row {
	i, ok := place(rows, row.Attempt.Attempt)
	next := slices.Clone(rows)
	if ok {
		next[i] = row
		return next
	}
	return slices.Insert(next, i, row)
}

// without returns rows less the n-th attempt; rows itself stays as it is.
func without(rows []Row, n int) []Row {
	i, ok := place(rows, n)
	if !ok {
		return rows
	}
	return slices.Delete(slices.Clone(rows), i, i+1)
}
