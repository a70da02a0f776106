package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

const (
	// maxKept bounds the clears and the unproven deaths that a run may be
	// reopened with: they are restored in one Txn, of which etcd takes 128
	// operations.
	maxKept = 100
	// maxClear bounds the record of a clear, in bytes: half of what a Txn of the
	// store may hold.
	maxClear = 256 << 10
)

func (s *Service) clear(ctx context.Context, m *writv1.ClearTasksRequest) (*writv1.ClearTasksResponse, error) {
	if len(m.GetTasks()) == 0 {
		return nil, invalid("tasks", "writ task retry needs no names", "names no task, expected at least one")
	}
	o, rev, cleared, err := s.again(ctx, "clear tasks of", m.GetRun(), m.GetBy(), m.GetWhy(), func(o *operation) ([]int, error) {
		var picked []int
		for _, name := range m.GetTasks() {
			t, err := o.task(name)
			if err != nil {
				return nil, err
			}
			picked = append(picked, t.Index)
		}
		if m.GetDownstream() {
			picked = append(picked, o.run.Graph.Downstream(picked...)...)
		}
		return picked, nil
	})
	if err != nil {
		return nil, err
	}
	return &writv1.ClearTasksResponse{Run: toRun(o.next, rev, nil), Tasks: cleared}, nil
}

func (s *Service) retry(ctx context.Context, m *writv1.RetryTasksRequest) (*writv1.RetryTasksResponse, error) {
	o, rev, cleared, err := s.again(ctx, "retry tasks of", m.GetRun(), m.GetBy(), m.GetWhy(), func(o *operation) ([]int, error) {
		picked, err := o.retried(m.GetTasks())
		if err != nil {
			return nil, err
		}
		return o.prevented(picked), nil
	})
	if err != nil {
		return nil, err
	}
	return &writv1.RetryTasksResponse{Run: toRun(o.next, rev, nil), Tasks: cleared}, nil
}

// again carries out an operation that has tasks run again; pick says which, by
// their places in the graph.
func (s *Service) again(ctx context.Context, verb, run, by, why string, pick func(*operation) ([]int, error)) (*operation, int64, []string, error) {
	id, err := runID(run)
	if err != nil {
		return nil, 0, nil, err
	}
	w, err := word(by, why)
	if err != nil {
		return nil, 0, nil, err
	}
	var cleared []record.TaskID
	o, rev, err := s.operate(ctx, id, w, func(o *operation) error {
		picked, err := pick(o)
		if err != nil {
			return err
		}
		slices.Sort(picked)
		cleared = cleared[:0]
		for _, i := range slices.Compact(picked) {
			cleared = append(cleared, o.run.Graph.Task(i).ID)
		}
		return o.clear(record.RuleClear, slices.Clone(cleared))
	})
	if err != nil {
		return nil, 0, nil, fmt.Errorf("%s run %s: %w", verb, id, err)
	}
	return o, rev, texts[string](cleared), nil
}

// stuck says that a task failed or was cancelled, and gets no further attempt.
func stuck(t *view.Task) bool {
	s := t.State()
	return (s == record.Failed || s == record.Cancelled) && t.Debt() == view.DebtNone
}

// retried are the tasks that a person names for a retry or, where none is
// named, all that may be retried.
func (o *operation) retried(names []string) ([]int, error) {
	var picked []int
	for _, name := range names {
		t, err := o.task(name)
		if err != nil {
			return nil, err
		}
		if !stuck(t) {
			return nil, fmt.Errorf("task %s is %s, expected one that failed or was cancelled: %w (hint: writ task clear runs any task again)",
				name, standing(t), ErrEarly)
		}
		picked = append(picked, t.Index)
	}
	if len(names) > 0 {
		return picked, nil
	}
	for t := range o.run.Tasks() {
		if stuck(t) {
			picked = append(picked, t.Index)
		}
	}
	if len(picked) == 0 {
		return nil, fmt.Errorf("none of its tasks failed or was cancelled: %w (hint: writ task clear runs any task again)", ErrEarly)
	}
	return picked, nil
}

// standing is a task's state in the words of a sentence.
func standing(t *view.Task) string {
	switch {
	case t.State() == record.None:
		return "not started"
	case t.Debt() != view.DebtNone:
		return string(t.State()) + " and about to run again"
	default:
		return string(t.State())
	}
}

// prevented adds what lies below the picked tasks and did not run for what they
// came to.
func (o *operation) prevented(picked []int) []int {
	seen := map[int]bool{}
	for _, i := range picked {
		seen[i] = true
	}
	for next := slices.Clone(picked); len(next) > 0; {
		i := next[0]
		next = next[1:]
		for _, below := range o.run.Graph.Down(i) {
			if !seen[below] && notRun(o.run.At(below)) {
				seen[below] = true
				picked, next = append(picked, below), append(next, below)
			}
		}
	}
	return picked
}

// notRun says that the trigger rule or a cancel closed a task, not its own end.
func notRun(t *view.Task) bool {
	row, ok := t.Latest()
	return ok && row.Token == "" &&
		(row.State == record.UpstreamFailed || row.State == record.Skipped || row.State == record.Cancelled)
}

// clear writes a clear with the run record. An ended run begins to be reopened.
func (o *operation) clear(rule record.Rule, tasks []record.TaskID) error {
	if o.ended {
		return o.reopen(rule, tasks)
	}
	seq := o.run.Record.Clears + 1
	if seq > maxKept {
		return fmt.Errorf("it was cleared %d times, which is as often as may be: %w (hint: start a new run)", seq-1, ErrEarly)
	}
	if err := o.rewrite(rule, func(r *record.Run) { r.Clears = seq }); err != nil {
		return err
	}
	return o.cleared(seq, tasks)
}

// cleared puts the clear itself.
func (o *operation) cleared(seq int, tasks []record.TaskID) error {
	c := record.Clear{
		Schema: record.Schema, Run: o.run.ID(), Seq: seq, Tasks: tasks, By: o.word.By, Why: o.word.Why, At: o.word.At, Write: o.write,
	}
	text, err := json.Marshal(tasks)
	if err != nil {
		return err
	}
	if len(text) > maxClear {
		return invalid("tasks", "clear fewer tasks at a time, or start a new run", "the names of %d tasks take %d bytes, at most %d are allowed",
			len(tasks), len(text), maxClear)
	}
	key := record.ClearKey(o.run.ID(), seq)
	o.guard(record.Absent(key))
	o.put = append(o.put, record.Put{Key: key, Value: c})
	return nil
}

// reopen makes the change by which an ended run lives again: its head gives
// way to the run record, the clears and the marks; the leader restores the rows.
func (o *operation) reopen(rule record.Rule, tasks []record.TaskID) error {
	if err := o.service.cluster.Admit(); err != nil {
		return err
	}
	id, head := o.run.ID(), o.head
	seq := head.Run.Clears + 1
	if n := seq + len(head.Unproven); n > maxKept {
		return fmt.Errorf("it has %d clears and %d attempts without proof of death, at most %d are taken along: %w (hint: start a new run)",
			seq, len(head.Unproven), maxKept, ErrEarly)
	}
	next, err := head.Run.Move(record.RunMove{
		To: record.RunRunning, Phase: record.PhaseReopening, By: record.Operator, Who: o.word.By, At: o.word.At,
		Rule: record.RuleReopen, Write: o.write,
	})
	if err != nil {
		return err
	}
	// What held or ended its first life is over; the timeout begins anew when
	// the rows are back.
	next.Clears, next.Paused, next.Cancelling, next.Deadline = seq, nil, nil, time.Time{}
	o.rule, o.next = rule, next
	o.guard(record.At(record.EndedKey(id), o.rev), record.Absent(record.RunKey(id)))
	o.put = append(o.put, record.Put{Key: record.RunKey(id), Value: next})
	for _, c := range head.Clears {
		c.Clear.Rev = c.CreateRev
		o.put = append(o.put, record.Put{Key: record.ClearKey(id, c.Clear.Seq), Value: c.Clear})
	}
	for _, m := range head.Unproven {
		ref := record.TaskRef{Run: id, Task: m.Task, Instance: m.Instance}.At(m.Attempt)
		o.put = append(o.put, record.Put{Key: record.UnprovenKey(ref), Value: m})
	}
	o.del = append(o.del, record.Remove(record.EndedKey(id)), record.Remove(record.IndexKey(head.Run.EndedAt, id)))
	return o.cleared(seq, tasks)
}
