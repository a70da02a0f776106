package reconcile

import (
	"fmt"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// Assignment gives a ready task to a session under a token.
type Assignment struct {
	Ref     record.Ref
	Session view.SessionRef
	Token   record.Token // fresh: 128 random bits
}

// Dispatch makes the change that gives a ready task to a worker: the intent.
// It decides again from the view, which may have moved on since the pass that
// found the task ready; ok is false where the task is not ready any more, or
// its next attempt is another, or it is busy. Its write id is made of the stamp's prefix and
// the end of the token. An error is a record that makes no sense.
func Dispatch(v *view.Active, as Assignment, turn Turn) (c record.Change, ok bool, err error) {
	r, known := v.Run(as.Ref.Run)
	if !known {
		return record.Change{}, false, nil
	}
	t, known := r.Task(as.Ref.TaskRef)
	if !known {
		return record.Change{}, false, nil
	}
	p := &pass{v: v, turn: turn}
	d := p.decide(r, t)
	if d.Err != nil || d.Wait.Reason != ReasonReady || d.Change != nil || d.Ready.Ref != as.Ref {
		return record.Change{}, false, d.Err
	}
	c, err = p.intent(r, t, as)
	if err != nil {
		return record.Change{}, false, fmt.Errorf("dispatch %s: %w", as.Ref, err)
	}
	return c, true, nil
}

// intent writes the token into the waiting row, or into a new one.
func (p *pass) intent(r *view.Run, t *view.Task, as Assignment) (record.Change, error) {
	rule := record.RuleStart
	row, has := t.Latest()
	if has = has && row.Waiting(); has {
		rule = record.RuleDispatch
	}
	c := p.plan(rule)
	c.write = p.turn.Stamp.dispatch(as.Token)
	var next record.Attempt
	if has {
		next = row.Attempt
		c.row(row).run(r)
	} else {
		next = c.fresh(r, t)
	}
	if !next.Idempotent {
		c.expect(record.Empty(record.UnprovenOf(t.Ref)))
	}
	c.step(next, record.Step{To: record.Queued, Token: as.Token, Worker: as.Session.Worker, Session: as.Session.Session})
	return c.change()
}

// dispatch makes the write id of an intent. Ids need to differ only among the
// writes of one row.
func (s Stamp) dispatch(t record.Token) record.WriteID {
	return record.WriteID(s.Prefix) + record.WriteID(t[max(0, len(t)-6):])
}
