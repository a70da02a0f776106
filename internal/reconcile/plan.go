package reconcile

import (
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// plan gathers one change.
type plan struct {
	turn  *Turn
	rule  record.Rule
	write record.WriteID
	want  []record.Expect
	put   []record.Put
	err   error
}

func (p *pass) plan(rule record.Rule) *plan {
	return &plan{turn: &p.turn, rule: rule, write: p.write()}
}

// expect adds guards, each once.
func (c *plan) expect(list ...record.Expect) *plan {
	for _, e := range list {
		if !slices.Contains(c.want, e) {
			c.want = append(c.want, e)
		}
	}
	return c
}

// row guards that a row, and run that a run, is as the view shows it.
func (c *plan) row(row view.Row) *plan {
	return c.expect(record.At(record.AttemptKey(row.Ref()), row.ModRev))
}

func (c *plan) run(r *view.Run) *plan { return c.expect(record.At(record.RunKey(r.ID()), r.ModRev)) }

// absent guards that a session's key is gone, and its record as seen.
func (c *plan) absent(s absence) *plan {
	return c.expect(
		record.Absent(record.WorkerKey(s.ref.Worker, s.ref.Session)),
		record.At(record.SessionKey(s.ref.Worker, s.ref.Session), s.kept.ModRev),
	)
}

// fresh guards the creation of the task's next row, and returns it in no state
// yet.
func (c *plan) fresh(r *view.Run, t *view.Task) record.Attempt {
	next := blank(t)
	c.expect(record.Absent(record.AttemptKey(next.Ref())))
	if last, ok := t.Last(); ok {
		c.row(last)
	}
	c.run(r)
	return next
}

// move makes one step of a row and puts what comes of it.
func (c *plan) move(a record.Attempt, to record.AttemptState, cause record.Cause) *plan {
	return c.step(a, record.Step{To: to, Cause: cause})
}

func (c *plan) step(a record.Attempt, s record.Step) *plan {
	s.By, s.Who, s.At, s.Rule, s.Term, s.Write = record.Leader, c.turn.Stamp.Who, c.turn.Now, c.rule, c.turn.Stamp.Rev, c.write
	next, err := a.Move(s)
	if err != nil && c.err == nil {
		c.err = err
	}
	return c.store(record.AttemptKey(next.Ref()), next)
}

// unproven makes a row say that its process may live, and puts the mark that
// keeps the task from running again.
func (c *plan) unproven(row view.Row) {
	c.put = append(c.put, record.Put{Key: record.UnprovenKey(row.Ref()), Value: record.Unproven{
		Schema: record.Schema, Run: row.Run, Task: row.Task, Instance: row.Instance, Attempt: row.Attempt.Attempt,
		Worker: row.Worker, Session: row.Session, Fenced: row.Fenced(), TTL: row.TTL, Since: c.turn.Now, Write: c.write,
	}})
}

func (c *plan) store(k record.Key, v record.Value) *plan {
	c.put = append(c.put, record.Put{Key: k, Value: v})
	return c
}

// change is what was gathered, under the leader's own guard too.
func (c *plan) change(del ...record.Delete) (record.Change, error) {
	if c.err != nil {
		return record.Change{}, c.err
	}
	return record.NewChange(c.rule, c.write, c.turn.Stamp.expect(c.want), c.put, del...)
}

// verdict is the change as what the rules say, with the wait that it ends.
func (c *plan) verdict(w Wait) *Verdict {
	change, err := c.change()
	if err != nil {
		return &Verdict{Wait: w, Err: err}
	}
	w.Until = time.Time{}
	return &Verdict{Change: &change, Wait: w}
}

// blank is the row of the task's next attempt, in no state yet. What the
// attempts before it came to is counted from the latest row, so that a clear
// begins the counts anew.
func blank(t *view.Task) record.Attempt {
	a := record.Attempt{
		Schema: record.Schema, Run: t.Ref.Run, Task: t.Ref.Task, Instance: t.Ref.Instance, Attempt: 1, Kind: record.KindExec,
		Queue: t.Spec.QueueName(), Idempotent: t.Spec.Idempotent, OnLost: t.Spec.Lost(),
	}
	if last, ok := t.Last(); ok {
		a.Attempt = last.Attempt.Attempt + 1
	}
	latest, ok := t.Latest()
	if !ok {
		return a
	}
	a.Failures, a.Losses, a.Abandons = latest.Failures, latest.Losses, latest.Abandons
	switch t.Debt() {
	case view.DebtRetry:
		a.Failures++
	case view.DebtLoss:
		a.Losses++
	case view.DebtNone, view.DebtStop, view.DebtAbandon:
	}
	return a
}
