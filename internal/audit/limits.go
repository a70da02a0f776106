package audit

import (
	"github.com/writ-sched/writ/internal/record"
)

// checkLimits asks I12 of a token that was written: the slots of its session,
// its pool and its concurrency keys. A limit that is lowered stops what comes
// after it and ends nothing, so it is asked here only.
func (a *Auditor) checkLimits(s *step, c rowChange) {
	w := c.after
	if k := a.session(sessionRef{w.Worker, w.Session}); k.alive {
		a.checked("I12")
		if k.live > k.slots {
			a.breach("I12", s.rev, c.key, "session %s holds %d attempts, expected at most its %d slots", w.Session, k.live, k.slots)
		}
	}
	if p := a.pools[w.Pool]; w.Pool != "" && p != nil && p.known {
		a.checked("I12")
		if p.live > p.slots {
			a.breach("I12", s.rev, c.key, "pool %s has %d attempts, expected at most %d", w.Pool, p.live, p.slots)
		}
	}
	if len(w.Keys) == 0 {
		return
	}
	a.checked("I12")
	placed := map[string]bool{}
	for _, k := range s.holders {
		if h := a.holders[k]; h.Attempt == w.Ref() {
			placed[h.Holder] = true
		}
	}
	for _, key := range w.Keys {
		if !placed[key] {
			a.breach("I12", s.rev, c.key, "a token is written without a place of the concurrency key %q, expected one in the same revision", key)
		}
	}
}

// checkHolders asks I12 of the places that this step filled or freed: what
// holds one lives, and what lives keeps it.
func (a *Auditor) checkHolders(s *step) {
	for _, k := range s.holders {
		a.checked("I12")
		if h := a.holders[k]; !a.lives(h.Attempt) {
			a.breach("I12", s.rev, k, "the place is held by %s, which is not live, expected a row with a token", h.Attempt)
		}
	}
	for _, h := range s.freed {
		a.checked("I12")
		if a.lives(h.Attempt) {
			a.breach("I12", s.rev, record.HolderKey(h.Holder, h.Slot), "the place of %s is freed while it lives", h.Attempt)
		}
	}
}

func (a *Auditor) lives(ref record.Ref) bool {
	r, ok := a.runs[ref.Run]
	if !ok || r.tasks[ref.TaskRef] == nil {
		return false
	}
	return r.tasks[ref.TaskRef].rows[ref.N].Live()
}
