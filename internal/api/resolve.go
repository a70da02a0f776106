package api

import (
	"context"
	"fmt"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func (s *Service) resolve(ctx context.Context, m *writv1.ResolveTaskRequest) (*writv1.ResolveTaskResponse, error) {
	id, err := runID(m.GetRun())
	if err != nil {
		return nil, err
	}
	if m.GetTask() == "" {
		return nil, invalid("task", "", "names no task")
	}
	if m.GetAs() == writv1.Resolution_RESOLUTION_UNSPECIFIED && !m.GetDead() {
		return nil, invalid("as", "success, failed or retry; or dead, where the attempt has ended", "says nothing")
	}
	w, err := word(m.GetBy(), m.GetWhy())
	if err != nil {
		return nil, err
	}
	ref := record.TaskRef{Task: record.TaskID(m.GetTask()), Instance: record.Instance(m.GetInstance())}
	fail := func(err error) (*writv1.ResolveTaskResponse, error) {
		return nil, fmt.Errorf("resolve task %s of run %s: %w", ref.Name(), id, err)
	}
	if _, _, err = s.operate(ctx, id, w, func(o *operation) error { return o.resolve(ref.Name(), m.GetAs(), m.GetDead()) }); err != nil {
		return fail(err)
	}
	answer := &writv1.ResolveTaskResponse{}
	err = s.find(ctx, id, func(_ *view.Active, r *view.Run, _ bool) {
		answer.Run = toRun(r.Record, r.ModRev, r.Counts())
		if t, ok := r.Task(record.TaskRef{Run: id, Task: ref.Task, Instance: ref.Instance}); ok {
			answer.Task = toStatus(t)
		}
	})
	if err != nil {
		return fail(err)
	}
	return answer, nil
}

// resolve decides about a task whose worker is gone.
func (o *operation) resolve(name string, as writv1.Resolution, dead bool) error {
	t, err := o.task(name)
	if err != nil {
		return err
	}
	row, ok := t.Last()
	if ok && row.State == record.Running && !o.ended {
		return o.resolveRunning(row, as, dead)
	}
	marks := o.run.Marks(t.Ref)
	switch {
	case as != writv1.Resolution_RESOLUTION_UNSPECIFIED:
		return fmt.Errorf("its latest attempt is %s, expected one that runs by its record and whose worker is gone: %w (hint: writ task retry and writ task clear run it again)",
			standing(t), ErrEarly)
	case len(marks) == 0:
		return fmt.Errorf("no death of its attempts lacks proof: %w", ErrEarly)
	case o.ended:
		return fmt.Errorf("the run has ended, so nothing waits for it: %w (hint: writ task retry makes it live again)", ErrEnded)
	}
	return o.vouch(marks)
}

// vouch lifts the marks of deaths that a person vouches for. The run record
// keeps who did.
func (o *operation) vouch(marks []view.Mark) error {
	for _, m := range marks {
		key := record.UnprovenKey(m.Ref())
		o.guard(record.At(key, m.ModRev))
		o.del = append(o.del, record.Remove(key))
	}
	return o.rewrite(record.RuleResolve, func(*record.Run) {})
}

// resolveRunning ends an attempt in its worker's stead. The session's key must
// be gone: while it lives, its own word is to be had.
func (o *operation) resolveRunning(row view.Row, as writv1.Resolution, dead bool) error {
	if _, alive := o.view.Worker(row.Holder()); alive {
		return fmt.Errorf("its worker %s lives and runs it: %w (hint: cancel the run or clear the task, and the worker ends it; or stop the worker)",
			row.Worker, ErrEarly)
	}
	to := record.Failed
	switch as {
	case writv1.Resolution_RESOLUTION_SUCCESS:
		to = record.Success
	case writv1.Resolution_RESOLUTION_RETRY:
		if err := o.clear(record.RuleResolve, []record.TaskID{row.Task}); err != nil {
			return err
		}
	case writv1.Resolution_RESOLUTION_FAILED:
	case writv1.Resolution_RESOLUTION_UNSPECIFIED:
		return invalid("as", "success, failed or retry", "says nothing, though the attempt has not ended")
	}
	if o.run.Record.Phase != record.PhaseNone {
		return errSettling
	}
	text := "resolved as " + string(to)
	if o.word.Why != "" {
		text += ": " + o.word.Why
	}
	next, err := row.Move(record.Step{
		To: to, By: record.Operator, Who: o.word.By, At: o.word.At, Rule: record.RuleResolve, Write: o.write,
		Cause: record.Because(record.CauseResolved, text),
	})
	if err != nil {
		return err
	}
	if !dead && !row.Idempotent && row.Kind == record.KindExec {
		next.Unproven = true
		o.put = append(o.put, record.Put{Key: record.UnprovenKey(row.Ref()), Value: record.Unproven{
			Schema: record.Schema, Run: row.Run, Task: row.Task, Instance: row.Instance, Attempt: row.Attempt.Attempt, Worker: row.Worker,
			Session: row.Session, Fenced: row.Fenced(), TTL: row.TTL, Since: o.word.At, Write: o.write,
		}})
	}
	key := record.AttemptKey(row.Ref())
	o.rule = record.RuleResolve
	if as != writv1.Resolution_RESOLUTION_RETRY {
		o.guard(record.At(record.RunKey(row.Run), o.run.ModRev))
	}
	o.guard(record.At(key, row.ModRev), record.Absent(record.WorkerKey(row.Worker, row.Session)))
	o.put = append(o.put, record.Put{Key: key, Value: next})
	return nil
}
