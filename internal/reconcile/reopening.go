package reconcile

import (
	"fmt"
	"strconv"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// restoreRows is how many rows one change of a reopening restores. etcd takes
// 128 operations and compares in a Txn; half of it leaves room for neighbours.
const restoreRows = 60

// RestorePage makes the changes that put the rows of one page of the ended
// document back, of a run in phase reopening. Each row carries its first
// create revision, so that clears and WRIT_FENCE see it as it was. Rows that
// the view shows already are left out; every replica makes the same rows, so
// anyone may carry on where another stopped.
func RestorePage(r *view.Run, page record.EndedPage, s Stamp) ([]record.Change, error) {
	if r.Record.Phase != record.PhaseReopening {
		return nil, fmt.Errorf("restore run %s: it is in phase %q, expected %q", r.ID(), r.Record.Phase, record.PhaseReopening)
	}
	shown := map[record.Ref]bool{}
	for row := range r.Rows() {
		shown[row.Ref()] = true
	}
	var list []record.Change
	var part []record.EndedRow
	for i, row := range page.Rows {
		if !shown[row.Attempt.Ref()] {
			part = append(part, row)
		}
		if len(part) == restoreRows || i == len(page.Rows)-1 && len(part) > 0 {
			c, err := restore(r, part, s)
			if err != nil {
				return nil, fmt.Errorf("restore page %d of run %s: %w", page.Page, r.ID(), err)
			}
			list, part = append(list, c), nil
		}
	}
	return list, nil
}

// restore puts rows back as they were. The write id stands in no row, since a
// terminal row never changes; the run record, which is compared, bears that of
// the reopening, and a row that is there already was put back by this.
func restore(r *view.Run, rows []record.EndedRow, s Stamp) (record.Change, error) {
	c := record.Change{Rule: record.RuleReopen, Expect: []record.Expect{record.At(record.RunKey(r.ID()), r.ModRev)}}
	for _, row := range rows {
		a, key := row.Attempt, record.AttemptKey(row.Attempt.Ref())
		a.Fence = row.CreateRev
		c.Expect = append(c.Expect, record.Absent(key))
		c.Put = append(c.Put, record.Put{Key: key, Value: a})
	}
	c.Expect = s.expect(c.Expect)
	// The last write of the first row: what a lost answer is settled by.
	c.Write = rows[0].Attempt.Wrote()
	return c, c.Check()
}

// Restored makes the end of a reopening, once every row of the document is
// back: the phase ends, the run has its timeout anew, and the document's pages
// are deleted.
func Restored(r *view.Run, attempts int, turn Turn) (record.Change, error) {
	if r.Attempts() < attempts || !r.Loaded() {
		return record.Change{}, fmt.Errorf("end the reopening of run %s: it has %d rows, expected %d and its spec", r.ID(), r.Attempts(), attempts)
	}
	c := (&pass{turn: turn}).plan(record.RuleReopen).run(r)
	c.write = fixedWrite(string(r.ID()), strconv.FormatInt(r.ModRev, 10), "restored")
	next, err := r.Record.Move(c.runMove(record.RunRunning, record.PhaseNone, record.Cause{}))
	if err != nil {
		return record.Change{}, fmt.Errorf("end the reopening of run %s: %w", r.ID(), err)
	}
	next.Pages, next.Deadline = 0, time.Time{}
	if r.Timeout() > 0 {
		next.Deadline = turn.Now.Add(r.Timeout()) // the first life's has passed, it may be
	}
	return c.store(record.RunKey(r.ID()), next).change(record.RemoveAll(record.OfRun(record.FamilyPage, r.ID())))
}
