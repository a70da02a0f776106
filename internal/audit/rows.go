package audit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/writ-sched/writ/internal/record"
)

// checkRow asks about one row that was put or deleted, in the state after its
// revision.
func (a *Auditor) checkRow(s *step, c rowChange) {
	switch {
	case !c.after.here():
		a.checkDeleted(s, c)
	case c.after.Ref() != refOf(c.key):
		a.breach("I3", s.rev, c.key, "the row says that it is %s, expected the name of its key", c.after.Ref())
	case c.before.here():
		a.checkMoved(s, c)
	case c.after.Fence != 0:
		a.checkRestored(s, c)
	default:
		a.checkCreated(s, c)
	}
	if c.after.here() {
		a.count(c)
	}
}

// count adds to the summary.
func (a *Auditor) count(c rowChange) {
	w := c.after
	if !c.before.here() && w.Fence == 0 {
		a.sum.Attempts++
	}
	a.meet(w.Transitions)
	if c.before.here() && c.before.State.Terminal() || w.Fence != 0 {
		return
	}
	a.sum.Abandoned += bit(w.State == record.Abandoned)
	a.sum.Refused += bit(w.Refused != nil && (!c.before.here() || c.before.Refused == nil))
	a.sum.Lost += bit(w.State == record.Failed && lost(w))
	a.sum.Unproven += bit(w.Unproven)
}

func lost(w row) bool {
	return slices.Contains([]record.CauseCode{record.CauseWorkerLost, record.CauseFenced, record.CauseSessionGone, record.CauseLossLimit}, w.Cause.Code)
}

// checkDeleted: rows go with their run, in the last step of its ending.
func (a *Auditor) checkDeleted(s *step, c rowChange) {
	a.checked("I3")
	if !slices.ContainsFunc(s.ended, func(e *ending) bool { return e.rec.Run == c.run.id }) {
		a.breach("I3", s.rev, c.key, "the row (%s) is deleted while its run stands, expected it to go with the run only", c.before.State)
	}
}

// checkCreated asks about a row that is new.
func (a *Auditor) checkCreated(s *step, c rowChange) {
	w := c.after
	prev, ok := a.checkNumber(s, c)
	if len(w.Transitions) != 1 {
		a.breach("I3", s.rev, c.key, "a new row has %d transitions, expected one", len(w.Transitions))
		return
	}
	if !a.checkStep(s, c) {
		return
	}
	if w.Token != "" {
		a.checkToken(s, c)
	}
	if ok && a.checkStanding(s, c) {
		a.checkReason(s, c, prev)
	}
	a.checkMarks(s, c)
}

// checkNumber asks I2: the number follows on the last, whose row is terminal.
func (a *Auditor) checkNumber(s *step, c rowChange) (prev row, ok bool) {
	a.checked("I2")
	t, n := c.run.tasks[c.after.TaskRef()], c.after.Attempt.Attempt
	prev = t.rows[n-1]
	switch {
	case n < 1, n > 1 && !prev.here():
		a.breach("I2", s.rev, c.key, "attempt %d is created where attempt %d has no row, expected numbers from 1 without a hole", n, n-1)
		return prev, false
	case t.last > n && !s.begin:
		a.breach("I2", s.rev, c.key, "attempt %d is created where attempt %d has a row, expected the next number", n, t.last)
		return prev, false
	case n > 1 && !prev.State.Terminal():
		a.breach("I2", s.rev, c.key, "attempt %d is created while attempt %d is %s, expected that to be terminal", n, n-1, prev.State)
		return prev, false
	default:
		return prev, true
	}
}

// checkStep asks whether the last transition of a row is one of the relation
// (I3), by a rule and a name that may make it (I4).
func (a *Auditor) checkStep(s *step, c rowChange) bool {
	a.checked("I3")
	w := c.after
	t := w.Transitions[len(w.Transitions)-1]
	from, to := stage(c.before), stage(w)
	known, fits := a.legal(from, to, w.Kind, t)
	switch {
	case t.State != string(w.State) || t.Write == "":
		a.breach("I3", s.rev, c.key, "the row is %s, its last transition says %q by write %q, expected both to agree and a write id", w.State, t.State, t.Write)
		return false
	case !known:
		a.breach("I3", s.rev, c.key, "moved from %s to %s by %s (rule %s), expected a transition of the state table", from, to, t.By, t.Rule)
		return false
	}
	a.checked("I4")
	by, spoken := strings.CutPrefix(t.By, "session/")
	switch {
	case !fits:
		a.breach("I4", s.rev, c.key, "moved from %s to %s by rule %s of %s, expected the word of its session or a rule that makes that step", from, to, t.Rule, t.By)
	case spoken && w.Token == "":
		a.breach("I4", s.rev, c.key, "session %s reports on a row without a token", by)
	case spoken && !a.speaksFor(record.SessionID(by), w.Session):
		a.breach("I4", s.rev, c.key, "session %s reports on a token of session %s, expected that one or its successor", by, w.Session)
	default:
		return true
	}
	return false
}

// checkToken asks I3 of a token that was written, and the limits of who it was
// written for.
func (a *Auditor) checkToken(s *step, c rowChange) {
	w := c.after
	a.checked("I3")
	if old, ok := a.tokens[w.Token]; ok && old.ref != w.Ref() {
		a.breach("I3", s.rev, c.key, "its token is that of %s, written at revision %d, expected one of its own", old.ref, old.rev)
	} else if !ok {
		a.tokens[w.Token] = issue{ref: w.Ref(), row: w, rev: w.mod}
	}
	if w.Worker == "" || w.Session == "" {
		a.breach("I3", s.rev, c.key, "its token is for worker %q, session %q, expected both to be named", w.Worker, w.Session)
	}
	if s.begin {
		return
	}
	a.checked("I7")
	if m, ok := c.run.unproven(w.TaskRef()); ok && !w.Idempotent {
		a.breach("I7", s.rev, c.key, "a token is written while the death of %s is not proven, expected its mark to be gone", m)
	}
	a.checkLimits(s, c)
}

// checkStanding asks whether the run lets a row be made or dispatched. A row
// that closes a task is let pass by a run that is being cancelled.
func (a *Auditor) checkStanding(s *step, c rowChange) bool {
	r, w := c.run, c.after
	a.checked("I11")
	switch {
	case !r.here():
		a.breach("I6", s.rev, c.key, "an attempt (%s) of a run that has no record", w.State)
	case r.rec.State == record.RunCancelling || r.rec.State == record.RunCancelled:
		if w.State == record.Cancelled && r.rec.State == record.RunCancelling {
			return true
		}
		a.breach("I11", s.rev, c.key, "an attempt (%s) of a run that is %s, expected none after the cancel", stage(w), r.rec.State)
	case r.rec.State != record.RunRunning || r.rec.Phase != record.PhaseNone:
		a.breach("I6", s.rev, c.key, "an attempt (%s) of a run that is %s, expected a running one in no phase", stage(w), standing(r.rec))
	case r.rec.Paused != nil && w.Token != "":
		a.breach("I6", s.rev, c.key, "a token is written while %s holds the run", r.rec.Paused.By)
	default:
		return true
	}
	return false
}

// checkReason asks why a row was made: after a success never (I5), after
// another end where an attempt is owed, otherwise by the trigger rule (I6).
func (a *Auditor) checkReason(s *step, c rowChange, prev row) {
	r, w := c.run, c.after
	if r.counts(prev) {
		a.checked("I5")
		switch {
		case prev.State == record.Success:
			a.breach("I5", s.rev, c.key, "attempt %d follows on a success (revision %d) that no clear covers", w.Attempt.Attempt, prev.mod)
		case r.flow == nil || r.flow.tasks[w.Task] == nil:
			a.sum.Blind++
		case w.State == record.Skipped || w.State == record.UpstreamFailed:
			a.breach("I6", s.rev, c.key, "ended %s after attempt %d (%s), expected the trigger rule to be asked before any attempt", w.State, prev.Attempt.Attempt, prev.State)
		case !owed(r.flow.tasks[w.Task], prev):
			a.breach("I6", s.rev, c.key, "attempt %d follows on one that ended %s (%s), expected none to be owed", w.Attempt.Attempt, prev.State, cmp.Or(prev.Cause.Code, "no cause"))
		}
		return
	}
	if w.State == record.Cancelled {
		a.checked("I6")
		if r.rec.State != record.RunCancelling && w.Cause.Code != record.CauseRunTimeout {
			a.breach("I6", s.rev, c.key, "closed as cancelled while the run is %s, expected a cancel or a run timeout", r.rec.State)
		}
		return
	}
	o, known := r.verdict(w.Task)
	if !known || w.Instance != "" {
		a.sum.Blind++
		return
	}
	a.checked("I6")
	want := runs
	switch w.State {
	case record.Skipped:
		want = skips
	case record.UpstreamFailed:
		want = fails
	default:
	}
	if o != want {
		a.breach("I6", s.rev, c.key, "its row is %s, but the trigger rule %s of its upstreams says: %s", w.State, r.flow.tasks[w.Task].Rule(), o)
	}
}

// checkMoved asks about a row that was changed.
func (a *Auditor) checkMoved(s *step, c rowChange) {
	b, w := c.before, c.after
	a.checked("I3")
	if b.State.Terminal() {
		a.breach("I3", s.rev, c.key, "a %s row is written again (%s), expected it never to change", b.State, cmp.Or(changed(b.Attempt, w.Attempt), "nothing differs"))
		return
	}
	if field := rewritten(b.Attempt, w.Attempt); field != "" {
		a.breach("I3", s.rev, c.key, "%s of the row is changed, expected it to stay", field)
		return
	}
	if len(w.Transitions) != len(b.Transitions)+1 || !slices.EqualFunc(b.Transitions, w.Transitions[:len(b.Transitions)], sameTransition) {
		a.breach("I3", s.rev, c.key, "%d transitions became %d, expected one more behind the same", len(b.Transitions), len(w.Transitions))
		return
	}
	if !a.checkStep(s, c) {
		return
	}
	switch {
	case b.Token == "" && w.Token != "":
		a.checkToken(s, c)
		if a.checkStanding(s, c) && !c.run.counts(w) {
			a.breach("I6", s.rev, c.key, "a token is written into a row that a clear covers")
		}
	case b.State == record.Queued && w.State == record.Running:
		a.checkClaim(s, c)
	case w.State == record.Abandoned:
		next := c.run.tasks[w.TaskRef()].rows[w.Attempt.Attempt+1]
		if next.create != s.rev {
			a.breach("I3", s.rev, c.key, "abandoned without attempt %d, expected both in one revision", w.Attempt.Attempt+1)
		}
	}
	a.checkMarks(s, c)
}

// checkClaim asks I11 of a claim, and that nothing is started that its worker
// refused.
func (a *Auditor) checkClaim(s *step, c rowChange) {
	a.checked("I11")
	if st := c.run.rec.State; st != record.RunRunning {
		a.breach("I11", s.rev, c.key, "claimed while the run is %s, expected no claim after the cancel", cmp.Or(st, "gone"))
	}
	if c.before.Refused != nil {
		a.breach("I4", s.rev, c.key, "claimed though %s refused the token, expected the row to be abandoned", c.before.Refused.By)
	}
}

// checkMarks asks, for I7, that a row that ends without proof has its mark.
func (a *Auditor) checkMarks(s *step, c rowChange) {
	if !c.after.Unproven || c.after.Idempotent {
		return
	}
	a.checked("I7")
	if _, ok := c.run.marks[c.after.Ref()]; !ok {
		a.breach("I7", s.rev, c.key, "ended %s without proof and without %s, expected the mark in the same revision",
			c.after.State, name(record.UnprovenKey(c.after.Ref())))
	}
}
