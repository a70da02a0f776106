package reconcile

import (
	"time"

	"github.com/writ-sched/writ/internal/view"
)

// Vigil remembers since when this replica has watched each lost session's
// record stand unchanged. A fence wait counts on this replica's own clock from
// its own first sight of the record, never from the time written in it:
// another replica's clock may be an hour off, and an attempt that is given up
// early overlaps the next (I7). A change of the record begins the wait anew.
//
// The leader makes one when it begins to lead, with NewVigil, hands it to
// every pass, and reads now from one clock that only moves forward.
type Vigil struct {
	since map[view.SessionRef]watch
}

type watch struct {
	rev int64
	at  time.Time
}

// NewVigil returns a Vigil that has watched nothing yet.
func NewVigil() *Vigil { return &Vigil{since: map[view.SessionRef]watch{}} }

// look notes what the view shows of one session.
func (g *Vigil) look(v *view.Active, s view.SessionRef, now time.Time) {
	kept, known := v.Session(s)
	_, living := v.Worker(s)
	switch {
	case !known || living || kept.Record.GoneAt.IsZero():
		delete(g.since, s)
	case g.since[s].rev != kept.ModRev:
		g.since[s] = watch{rev: kept.ModRev, at: now}
	}
}

// watched returns since when the record at rev was seen; ok is false where it
// was not.
func (g *Vigil) watched(s view.SessionRef, rev int64) (at time.Time, ok bool) {
	if g == nil {
		return time.Time{}, false
	}
	w, ok := g.since[s]
	return w.at, ok && w.rev == rev
}
