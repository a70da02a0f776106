package reconcile

import (
	"fmt"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// session notes that a session's key is gone.
//
// When: the key of a session is absent, and its record does not say so; or
// there is no record though a row or a mark names the session.
// Then: the record gets GoneAt, which every wait for its death begins at.
// Guard: the key absent; the record as seen, or absent.
// Keeps: I7, since a registration meanwhile rewrites the record and voids the
// wait; I8, since a row of a session without a record could never be ended.
//
// It forgets a session, too.
//
// When: the key is absent, nothing names the session, no successor settles
// what it left, and some time has passed.
// Then: the record is deleted.
// Guard: the key absent; the record as seen, which a registration rewrites, so
// no row can have come to name the session since.
// Keeps: promise 4, records in the measure of active work.
func (p *pass) session(ref view.SessionRef) {
	if p.turn.Busy.Session(ref.Worker, ref.Session) {
		return
	}
	a := p.seek(ref)
	if p.turn.Vigil != nil {
		p.turn.Vigil.look(p.v, ref, p.turn.Now)
	}
	switch {
	case a.alive:
	case !a.known && p.v.Named(ref):
		p.noteGone(record.RuleRepair, a, record.Session{Schema: record.Schema, Worker: ref.Worker, Session: ref.Session})
	case !a.known:
	case !a.gone():
		p.noteGone(record.RuleLost, a, a.kept.Record)
	case !p.v.Named(ref) && !a.settling:
		p.forget(a)
	}
}

func (p *pass) noteGone(rule record.Rule, a absence, s record.Session) {
	c := p.plan(rule).absent(a)
	s.GoneAt, s.Write = p.turn.Now, c.write
	p.commit(a, c.store(record.SessionKey(a.ref.Worker, a.ref.Session), s))
}

func (p *pass) forget(a absence) {
	due := a.kept.Record.GoneAt.Add(p.turn.Policy.Forget)
	if p.turn.Now.Before(due) {
		p.alarm(Alarm{At: due, Session: a.ref})
		return
	}
	p.commit(a, p.plan(record.RuleSweep).absent(a), record.Remove(record.SessionKey(a.ref.Worker, a.ref.Session)))
}

func (p *pass) commit(a absence, c *plan, del ...record.Delete) {
	change, err := c.change(del...)
	if err != nil {
		p.res.Faults = append(p.res.Faults, fmt.Errorf("decide session %s/%s: %w", a.ref.Worker, a.ref.Session, err))
		return
	}
	p.res.Changes = append(p.res.Changes, change)
}
