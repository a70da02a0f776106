package leader

import (
	"cmp"
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// about returns what a change writes, as something to be looked at: a change
// that lost its race raises no event.
func about(c record.Change) view.Touched {
	var t view.Touched
	for _, p := range c.Put {
		t = note(t, p.Key)
	}
	for _, d := range c.Delete {
		if !d.Over {
			t = note(t, d.Key)
		}
	}
	compareTasks := func(a, b record.TaskRef) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Instance, b.Instance))
	}
	slices.SortFunc(t.Tasks, compareTasks)
	t.Tasks = slices.Compact(t.Tasks)
	slices.Sort(t.Runs)
	t.Runs = slices.Compact(t.Runs)
	slices.Sort(t.Counted)
	t.Counted = slices.Compact(t.Counted)
	slices.SortFunc(t.Sessions, view.SessionRef.Compare)
	t.Sessions = slices.Compact(t.Sessions)
	return t
}

func note(t view.Touched, k record.Key) view.Touched {
	switch k.Family {
	case record.FamilyAttempt, record.FamilyUnproven:
		t.Tasks = append(t.Tasks, record.TaskRef{Run: k.Run, Task: k.Task, Instance: k.Instance})
		t.Counted = append(t.Counted, k.Run)
	case record.FamilyRun:
		t.Runs = append(t.Runs, k.Run)
	case record.FamilyWorker, record.FamilySession:
		t.Sessions = append(t.Sessions, view.SessionRef{Worker: record.WorkerName(k.Name), Session: k.Session})
	default:
		// Nothing that a rule decides about by itself.
	}
	return t
}
