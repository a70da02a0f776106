package audit

import (
	"github.com/writ-sched/writ/internal/record"
)

// checkSnapshot asks of the state that a history begins with what it says by
// itself: numbers, tokens, and that each row came about by transitions of the
// relation.
func (a *Auditor) checkSnapshot(s *step) {
	for id, r := range a.runs {
		if !r.here() {
			continue
		}
		a.sum.Runs++
		if d := r.rec.LogicalDate; !d.IsZero() {
			a.dated[date{workflow: r.rec.Workflow, at: d.Unix(), round: max(r.rec.Round, 1)}] = id
		}
	}
	a.recall()
	for _, c := range s.rows {
		a.count(c)
		if c.after.Ref() != refOf(c.key) {
			a.breach("I3", s.rev, c.key, "the row says that it is %s, expected the name of its key", c.after.Ref())
			continue
		}
		if c.run.rec.Phase != record.PhaseReopening {
			a.checkNumber(s, c)
		}
		if c.after.Token != "" {
			a.checkToken(s, c)
		}
		a.checkPast(s, c)
	}
}

// recall makes endings of the documents in the snapshot, so that a reopening
// is held against them.
func (a *Auditor) recall() {
	for _, d := range a.docs {
		id := d.head.Run.Run
		if r, ok := a.runs[id]; ok && r.here() {
			continue
		}
		e := &ending{
			rev: d.rev, rec: d.head.Run, runRev: d.head.RunRev, rows: map[record.Ref]row{},
			clears: map[int64]record.EndedClear{}, marks: map[record.Ref]record.Unproven{},
		}
		for _, p := range d.pages {
			for _, w := range p.Rows {
				e.rows[w.Attempt.Ref()] = row{Attempt: w.Attempt, create: w.CreateRev, mod: w.ModRev}
			}
		}
		a.past[id] = append(a.past[id], e)
	}
	a.docs = nil
}

// checkPast asks of the transitions of a row that each follows on the one
// before it. Of the first to be queued it cannot be seen whether it brought
// the token.
func (a *Auditor) checkPast(s *step, c rowChange) {
	from := []record.Stage{none}
	for i, t := range c.after.Transitions {
		to := []record.Stage{record.Stage(t.State)}
		if t.State == string(record.Queued) {
			to = []record.Stage{waiting, intent}
		}
		var next []record.Stage
		for _, y := range to {
			for _, x := range from {
				if known, _ := a.legal(x, y, c.after.Kind, t); known {
					next = append(next, y)
				}
			}
		}
		if len(next) == 0 {
			a.breach("I3", s.rev, c.key, "its transition %d, to %s by %s, does not follow on the one before, expected one of the state table", i+1, t.State, t.By)
			return
		}
		from = next
	}
	if n := len(c.after.Transitions); n == 0 || c.after.Transitions[n-1].State != string(c.after.State) {
		a.breach("I3", s.rev, c.key, "the row is %s, expected its last transition to say so", c.after.State)
	}
}
