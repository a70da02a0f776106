package reconcile

import (
	"fmt"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// prove lifts the marks of deaths that are proven by now.
//
// When: an attempt ended without proof of its process's death, and its session
// is gone and attested, or was fenced and has been gone for its TTL and the
// margin, the record unchanged all that time.
// Then: the mark is deleted; the task may run again where it is owed.
// Guard: the mark as seen; the session's key absent, its record as seen.
// Keeps: I7.
func (p *pass) prove(r *view.Run, t *view.Task) {
	if p.turn.Busy.Task(t.Ref) || r.Record.Phase != record.PhaseNone {
		return
	}
	for _, m := range r.Marks(t.Ref) {
		a := p.seek(m.Holder())
		proven, until := p.dead(a, m.Fenced, m.TTL.Std())
		switch {
		case a.settling:
		case !proven && !until.IsZero():
			p.alarm(Alarm{At: until, Task: t.Ref})
		case proven:
			key := record.UnprovenKey(m.Ref())
			change, err := p.plan(record.RuleProve).expect(record.At(key, m.ModRev)).absent(a).change(record.Remove(key))
			if err != nil {
				p.res.Faults = append(p.res.Faults, fmt.Errorf("prove the death of %s: %w", m.Ref(), err))
				continue
			}
			p.res.Changes = append(p.res.Changes, change)
		}
	}
}
