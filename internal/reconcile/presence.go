package reconcile

import (
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// absence is what the view knows about the session of a row.
type absence struct {
	ref   view.SessionRef
	kept  view.Kept[record.Session]
	known bool // there is a record
	alive bool // its key is there
	// settling: it is gone, and a living successor has yet to deliver the
	// results that it left.
	settling bool
}

// gone says that the session's key is gone and that this was noted, so that
// its record can stand in a guard.
func (a absence) gone() bool { return !a.alive && a.known && !a.kept.Record.GoneAt.IsZero() }

func (p *pass) seek(ref view.SessionRef) absence {
	a := absence{ref: ref}
	a.kept, a.known = p.v.Session(ref)
	_, a.alive = p.v.Worker(ref)
	if s := a.kept.Record; !a.alive && a.known && s.Successor != "" && !s.Settled {
		_, a.settling = p.v.Worker(view.SessionRef{Worker: ref.Worker, Session: s.Successor})
	}
	return a
}

// dead says that the processes of a lost session are proven dead: its
// successor says so, or they were fenced and the fence must have struck. Where
// time will prove it, until is when.
func (p *pass) dead(a absence, fenced bool, ttl time.Duration) (proven bool, until time.Time) {
	switch {
	case !a.gone():
		return false, time.Time{}
	case a.kept.Record.Attested != nil:
		return true, time.Time{}
	case !fenced || ttl <= 0:
		return false, time.Time{}
	}
	wait := ttl + p.turn.Policy.Margin
	if p.turn.Vigil == nil {
		return false, a.kept.Record.GoneAt.Add(wait)
	}
	p.turn.Vigil.look(p.v, a.ref, p.turn.Now)
	since, _ := p.turn.Vigil.watched(a.ref, a.kept.ModRev)
	until = since.Add(wait)
	return !p.turn.Now.Before(until), until
}

// delay says why nothing may be decided yet about a row whose session is not
// there; ok is false where nothing stands against it.
func (p *pass) delay(row view.Row, a absence) (w Wait, ok bool) {
	switch {
	case a.settling:
		return aboutSession(row, a.kept, ReasonSettling), true
	case p.turn.HoldLosses:
		return aboutSession(row, a.kept, ReasonHeld), true
	default:
		return Wait{}, false
	}
}
