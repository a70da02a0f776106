package reconcile

import (
	"time"

	"github.com/writ-sched/writ/internal/view"
)

// BreakerPolicy says when so many sessions went at once that the store is
// likelier to have stalled than they are to have died.
type BreakerPolicy struct {
	// Least is how many sessions must have gone, and Share which part of all.
	Least int
	Share float64
	// Window is how close together, and Grace how long nothing is then declared
	// lost.
	Window, Grace time.Duration
}

// BreakerDefaults are DESIGN's numbers for sessions of that time to live.
func BreakerDefaults(ttl time.Duration) BreakerPolicy {
	return BreakerPolicy{Least: 3, Share: 0.5, Window: ttl, Grace: ttl}
}

// Breaker watches sessions go and come back. It opens when many went at once,
// and closes after the grace, or when all of them are back. It needs no leader:
// every replica that watches the same records comes to much the same, on its
// own clock. Make it with NewBreaker; its owner keeps callers apart.
type Breaker struct {
	policy BreakerPolicy
	began  bool
	// awake are the living sessions that take attempts: one that drains, or was
	// replaced by its successor, goes by its own will.
	awake map[view.SessionRef]bool
	gone  map[view.SessionRef]time.Time
	until time.Time
}

// NewBreaker returns a Breaker that has watched nothing yet.
func NewBreaker(policy BreakerPolicy) *Breaker {
	return &Breaker{policy: policy, awake: map[view.SessionRef]bool{}, gone: map[view.SessionRef]time.Time{}}
}

// Look takes in what was touched, and says whether losses are to be held, and
// until when that is so whatever happens. It is called in the order of the
// view's revisions, with a clock that only moves forward.
func (b *Breaker) Look(v *view.Active, touched view.Touched, now time.Time) (open bool, until time.Time) {
	list := touched.Sessions
	if touched.Full {
		list = b.all(v)
	}
	fresh := false
	for _, ref := range list {
		fresh = b.look(v, ref, now) || fresh
	}
	b.began = b.began || touched.Full
	for ref, at := range b.gone {
		if now.Sub(at) > b.policy.Window && !now.Before(b.until) {
			delete(b.gone, ref)
		}
	}
	switch n := b.recent(now); {
	case len(b.gone) == 0:
		b.until = time.Time{}
	case fresh && n >= b.policy.Least && float64(n) >= b.policy.Share*float64(n+len(b.awake)):
		b.until = now.Add(b.policy.Grace)
	}
	return now.Before(b.until), b.until
}

// all are the sessions that are known here or there.
func (b *Breaker) all(v *view.Active) []view.SessionRef {
	var list []view.SessionRef
	for _, w := range v.Workers() {
		list = append(list, view.SessionRef{Worker: w.Record.Worker, Session: w.Record.Session})
	}
	for _, s := range v.Sessions() {
		list = append(list, view.SessionRef{Worker: s.Record.Worker, Session: s.Record.Session})
	}
	for ref := range b.awake {
		list = append(list, ref)
	}
	for ref := range b.gone {
		list = append(list, ref)
	}
	return list
}

// look takes in one session, and says whether it is newly gone.
func (b *Breaker) look(v *view.Active, ref view.SessionRef, now time.Time) (fresh bool) {
	if w, alive := v.Worker(ref); alive {
		delete(b.gone, ref)
		delete(b.awake, ref)
		if w.Record.Draining == nil {
			b.awake[ref] = true
		}
		return false
	}
	kept, known := v.Session(ref)
	awake := b.awake[ref]
	delete(b.awake, ref)
	switch {
	case !known || kept.Record.Successor != "":
		delete(b.gone, ref)
		return false
	case !awake && (b.began || b.old(kept.Record.GoneAt, now)):
		return false
	}
	if _, noted := b.gone[ref]; noted {
		return false
	}
	b.gone[ref] = now
	return true
}

// old says that a session had gone long before the watch began.
func (b *Breaker) old(goneAt, now time.Time) bool {
	return !goneAt.IsZero() && now.Sub(goneAt) > b.policy.Window
}

func (b *Breaker) recent(now time.Time) int {
	n := 0
	for _, at := range b.gone {
		if now.Sub(at) <= b.policy.Window {
			n++
		}
	}
	return n
}
