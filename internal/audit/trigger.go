package audit

import (
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// flow is a workflow by name: what the trigger rules ask of it.
type flow struct {
	workflow *spec.Workflow
	tasks    map[record.TaskID]*spec.Task
}

func newFlow(w *spec.Workflow) *flow {
	f := &flow{workflow: w, tasks: make(map[record.TaskID]*spec.Task, len(w.Tasks))}
	for i := range w.Tasks {
		f.tasks[w.Tasks[i].ID] = &w.Tasks[i]
	}
	return f
}

// outcome is what a trigger rule says.
type outcome string

const (
	undecided outcome = "wait"
	runs      outcome = "run"
	skips     outcome = "end skipped"
	fails     outcome = "end upstream_failed"
)

// ends says which ends of upstreams there are, of three: success, bad,
// skipped. No rule asks for more.
type ends struct{ good, bad, skip bool }

// final is what a rule says once every upstream is terminal.
func final(r spec.TriggerRule, e ends) outcome {
	pick := func(run bool, otherwise outcome) outcome {
		if run {
			return runs
		}
		return otherwise
	}
	missed := skips
	if e.bad {
		missed = fails
	}
	switch r {
	case spec.AllSuccess, "":
		return pick(!e.bad && !e.skip, missed)
	case spec.AllFailed:
		return pick(!e.good && !e.skip, skips)
	case spec.OneSuccess:
		return pick(e.good, missed)
	case spec.OneFailed:
		return pick(e.bad, skips)
	case spec.OneDone:
		return pick(e.good || e.bad, skips)
	case spec.NoneFailed:
		return pick(!e.bad, fails)
	case spec.NoneFailedMinOneSuccess:
		return pick(!e.bad && e.good, missed)
	case spec.NoneSkipped:
		return pick(!e.skip, skips)
	case spec.AllDone, spec.Always:
		return runs
	default:
		return undecided
	}
}

// early is whether a rule lets a task run while upstreams are open.
func early(r spec.TriggerRule, e ends) bool {
	switch r {
	case spec.Always:
		return true
	case spec.OneSuccess:
		return e.good
	case spec.OneFailed:
		return e.bad
	case spec.OneDone:
		return e.good || e.bad
	default:
		return false
	}
}

// judge says what a rule says with some upstreams open: against running it is
// decided where every way in which they can end comes to the same. Each of the
// seven sets of ends that they can add is tried; three or more open ones can
// add any.
func judge(r spec.TriggerRule, e ends, open int) outcome {
	if early(r, e) {
		return runs
	}
	if open == 0 {
		return final(r, e)
	}
	all := outcome("")
	for set := 1; set < 8; set++ {
		good, bad, skip := set&1 != 0, set&2 != 0, set&4 != 0
		if bit(good)+bit(bad)+bit(skip) > open {
			continue
		}
		o := final(r, ends{e.good || good, e.bad || bad, e.skip || skip})
		if o == runs || all != "" && all != o {
			return undecided
		}
		all = o
	}
	return all
}

// owed says that a task whose latest row it is gets a further attempt, by the
// row and the spec alone.
func owed(t *spec.Task, w row) bool {
	c := w.Cause.Code
	again := w.Idempotent || w.OnLost == record.OnLostRetry
	switch {
	case w.State == record.Abandoned:
		return true
	case w.State != record.Failed:
		return false
	case c == record.CauseWorkerStopped:
		return true
	case slices.Contains([]record.CauseCode{record.CauseWorkerLost, record.CauseFenced, record.CauseSessionGone}, c):
		limit := t.LostLimit
		if limit == 0 {
			limit = spec.DefaultLostLimit
		}
		return again && w.Losses < limit
	case c == record.CauseExitCode && w.Exit != nil && slices.Contains(t.NoRetryExitCodes, w.Exit.Code):
		return false
	default:
		return own(c) && w.Failures < t.Retries.Limit
	}
}

// own says that a failure is the task's own and may be retried.
func own(c record.CauseCode) bool {
	return slices.Contains([]record.CauseCode{
		record.CauseExitCode, record.CauseSignal, record.CauseStartError, record.CauseHandlerError, record.CauseHandlerPanic,
		record.CauseNoHandler, record.CauseResultInvalid, record.CauseTimeout,
	}, c)
}

// closed says that a task is terminal for those below it, with the row that
// says so.
func (r *run) closed(id record.TaskID) (row, bool) {
	w, ok := r.latest(record.TaskRef{Run: r.id, Task: id})
	if !ok || !w.State.Terminal() || owed(r.flow.tasks[id], w) {
		return row{}, false
	}
	return w, true
}

// verdict is what the trigger rule of a task says in the rows as they stand.
// known is false where the spec or the instances of an upstream are not.
func (r *run) verdict(id record.TaskID) (o outcome, known bool) {
	if r.flow == nil || r.flow.tasks[id] == nil {
		return undecided, false
	}
	t := r.flow.tasks[id]
	var e ends
	open := 0
	for _, up := range t.Needs {
		if r.flow.tasks[up] == nil || r.fanned[up] {
			return undecided, false
		}
		w, ok := r.closed(up)
		switch {
		case !ok:
			open++
		case w.State == record.Success, w.State == record.Failed && r.flow.tasks[up].AllowFailure:
			e.good = true
		case w.State == record.Skipped:
			e.skip = true
		default:
			e.bad = true
		}
	}
	return judge(t.TriggerRule, e, open), true
}
