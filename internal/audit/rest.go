package audit

import (
	"maps"
	"slices"

	"github.com/writ-sched/writ/internal/record"
)

// checkRest asks I8 at a quiet end of the history: whatever is active waits
// for something that the records show.
func (a *Auditor) checkRest() {
	for _, id := range slices.Sorted(maps.Keys(a.runs)) {
		r := a.runs[id]
		if !r.here() {
			continue
		}
		a.checked("I8")
		if text := a.stuck(r); text != "" {
			a.breach("I8", a.rev, record.RunKey(id), "the run is %s, and %s", standing(r.rec), text)
		}
	}
}

// stuck says why nothing will move a run, or is empty.
func (a *Auditor) stuck(r *run) string {
	switch {
	case r.rec.Phase != record.PhaseNone:
		return "no pass carries it on, expected that within one"
	case r.rec.Paused != nil:
		return ""
	case r.rec.State == record.RunQueued:
		if r.flow == nil {
			return ""
		}
		if limit := r.flow.workflow.MaxActiveRuns; limit > 0 && a.active[r.id.Workflow()] >= limit {
			return ""
		}
		return "nothing stands against its beginning, expected it to run"
	}
	for _, t := range r.tasks {
		if w := t.rows[t.last]; w.here() && !w.State.Terminal() {
			return ""
		}
	}
	if r.rec.State == record.RunCancelling {
		return "nothing of it lives, expected it to be cancelled"
	}
	if r.flow == nil {
		return ""
	}
	for i := range r.flow.workflow.Tasks {
		t := &r.flow.workflow.Tasks[i]
		if r.fanned[t.ID] || r.startable(t.ID) {
			return ""
		}
	}
	return "no task is live, due, owed an attempt or startable, expected its end"
}

// startable says that a task can get its next attempt as things stand.
func (r *run) startable(id record.TaskID) bool {
	w, ok := r.latest(record.TaskRef{Run: r.id, Task: id})
	if ok {
		return owed(r.flow.tasks[id], w)
	}
	o, known := r.verdict(id)
	return !known || o == runs
}
