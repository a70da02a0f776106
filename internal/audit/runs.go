package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/writ-sched/writ/internal/record"
)

// checkRun asks about one run record that was put or deleted.
func (a *Auditor) checkRun(s *step, c runChange) {
	if !c.has {
		return // see checkEndings
	}
	if c.after.Run != c.key.Run {
		a.breach(Table, s.rev, c.key, "the record says that it is run %q, expected the name of its key", c.after.Run)
		return
	}
	switch {
	case c.had:
	case c.after.Phase == record.PhaseReopening:
		a.sum.Reopened++
		delete(a.retained, c.key.Run)
		if !a.reopened(s, &c) {
			return
		}
	default:
		a.sum.Runs++
		a.checkDate(s, c)
		delete(a.retained, c.key.Run)
	}
	a.checkRunStep(s, c)
}

// reopened finds what a reopened run was when it ended; false where that is
// not known.
func (a *Auditor) reopened(s *step, c *runChange) bool {
	past := a.past[c.key.Run]
	if len(past) == 0 {
		if !a.partial {
			a.breach(Table, s.rev, c.key, "a run is reopened that never ended, expected an ended document")
		}
		return false
	}
	c.before, c.had = past[len(past)-1].rec, true
	return true
}

// checkDate asks I9 of a run that is made: its id is free, and so is its
// logical date.
func (a *Auditor) checkDate(s *step, c runChange) {
	a.checked("I9")
	id, r := c.key.Run, c.after
	if a.retained[id] {
		a.breach("I9", s.rev, c.key, "a run is made whose ended document is retained, expected another id")
		return
	}
	if r.LogicalDate.IsZero() {
		return
	}
	d := date{workflow: r.Workflow, at: r.LogicalDate.Unix(), round: max(r.Round, 1)}
	other, taken := a.dated[d]
	_, active := a.runs[other]
	switch want := record.MakeRunID(r.Workflow, record.DateSuffix(r.LogicalDate, r.Round)); {
	case taken && other != id && (active || a.retained[other]):
		a.breach("I9", s.rev, c.key, "a second run of %s for its logical date and round, expected only %s", r.Workflow, other)
	case id != want && (r.Trigger == record.TriggerSchedule || r.Trigger == record.TriggerBackfill):
		a.breach("I9", s.rev, c.key, "the run of a logical date has an id of its own, expected %s", want)
	default:
		a.dated[d] = id
	}
}

// checkRunStep asks whether the run relation knows what was done.
func (a *Auditor) checkRunStep(s *step, c runChange) {
	a.checked(Table)
	b, r := c.before, c.after
	n := len(r.Transitions)
	if n == 0 {
		a.breach(Table, s.rev, c.key, "the run has no transition, expected the one that made it")
		return
	}
	t := r.Transitions[n-1]
	kept := appended(b.Transitions, t)
	switch {
	case c.had && identity(b) != identity(r):
		a.breach(Table, s.rev, c.key, "workflow, revision, trigger, date or creation of the run is changed, expected them to stay")
	case t.State != string(r.State) || t.Write == "":
		a.breach(Table, s.rev, c.key, "the run is %s, its last transition says %q by write %q, expected both to agree and a write id", r.State, t.State, t.Write)
	case !slices.EqualFunc(kept, r.Transitions, sameTransition):
		a.breach(Table, s.rev, c.key, "%d transitions became %d, expected one more behind the same", len(b.Transitions), n)
	case !a.legalRun(b, r, t.By):
		a.breach(Table, s.rev, c.key, "moved from %s to %s by %s (rule %s), expected a transition of the state table", standing(b), standing(r), t.By, t.Rule)
	case r.State.Terminal():
		a.checkOutcome(s, c)
	case r.State == record.RunRunning && (b.State == record.RunQueued || !c.had):
		a.checkActive(s, c)
	case b.Phase == record.PhaseReopening:
		a.checkWhole(s, c)
	}
}

// standing is the state of a run with its phase.
func standing(r record.Run) string {
	switch {
	case r.State == record.RunNone:
		return "none"
	case r.Phase == record.PhaseNone:
		return string(r.State)
	default:
		return fmt.Sprintf("%s (%s)", r.State, r.Phase)
	}
}

// appended is what a run keeps of its transitions: the first and the latest.
func appended(list []record.Transition, t record.Transition) []record.Transition {
	all := append(slices.Clone(list), t)
	if n := len(all); n > record.MaxTransitions {
		all = slices.Delete(all, 1, 1+n-record.MaxTransitions)
	}
	return all
}

// origin are the fields of a run that never change.
type origin struct {
	run              record.RunID
	workflow         record.WorkflowName
	revision, round  int
	created, logical int64
	trigger          record.RunTrigger
	backfill, asked  string
	parent           record.Ref
}

func identity(r record.Run) origin {
	o := origin{
		run: r.Run, workflow: r.Workflow, revision: r.Revision, round: r.Round, created: instant(r.CreatedAt),
		logical: instant(r.LogicalDate), trigger: r.Trigger, backfill: r.Backfill, asked: r.Request,
	}
	if r.Parent != nil {
		o.parent = *r.Parent
	}
	return o
}

// checkActive asks I12 of a run that begins.
func (a *Auditor) checkActive(s *step, c runChange) {
	if c.run.flow == nil {
		return
	}
	a.checked("I12")
	limit, n := c.run.flow.workflow.MaxActiveRuns, a.active[c.after.Workflow]
	if limit > 0 && n > limit {
		a.breach("I12", s.rev, c.key, "it begins as one of %d active runs of %s, expected at most %d", n, c.after.Workflow, limit)
	}
}

// checkOutcome asks of a run that ends that nothing of it is left (I10), and
// that its outcome is that of its tasks.
func (a *Auditor) checkOutcome(s *step, c runChange) {
	a.checked("I10")
	r := c.run
	for _, ref := range sortedTasks(r) {
		t := r.tasks[ref]
		if w := t.rows[t.last]; w.here() && !w.State.Terminal() {
			a.breach("I10", s.rev, c.key, "the run ends while %s is %s, expected nothing to live", w.Ref(), w.State)
			return
		}
	}
	if r.flow == nil || c.after.State == record.RunCancelled {
		return
	}
	spoiled := false
	for i := range r.flow.workflow.Tasks {
		t := &r.flow.workflow.Tasks[i]
		if r.fanned[t.ID] {
			continue
		}
		w, ok := r.closed(t.ID)
		if !ok {
			a.breach("I10", s.rev, c.key, "the run ends while task %s is not closed, expected every task to be terminal", t.ID)
			return
		}
		spoiled = spoiled || !t.AllowFailure && (w.State == record.Failed || w.State == record.UpstreamFailed)
	}
	late := c.after.Cause.Code == record.CauseRunTimeout
	if won := c.after.State == record.RunSuccess; won && spoiled || !won && !spoiled && !late {
		a.breach(Table, s.rev, c.key, "the run ends %s, expected it to fail exactly where a task without allow_failure did", c.after.State)
	}
}

func sortedTasks(r *run) []record.TaskRef {
	return slices.SortedFunc(maps.Keys(r.tasks), compareTasks)
}
