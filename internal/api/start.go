package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// maxKey is the longest idempotency key, in bytes.
const maxKey = 256

// order is a run that is asked for.
type order struct {
	id       record.RunID
	workflow record.WorkflowName
	by       string
	params   map[string]string
	request  string
}

func readOrder(r *writv1.StartRunRequest) (order, error) {
	name, err := workflowName("workflow", r.GetWorkflow())
	if err != nil {
		return order{}, err
	}
	by, err := person(r.GetBy())
	if err != nil {
		return order{}, err
	}
	o := order{workflow: name, by: by, params: r.GetParams(), request: fingerprint(r.GetParams())}
	key := r.GetIdempotencyKey()
	switch {
	case len(key) > maxKey:
		return order{}, invalid("idempotency_key", "", "is %d bytes long, at most %d are allowed", len(key), maxKey)
	case r.GetId() != "":
		if err := record.CheckSuffix(r.GetId()); err != nil {
			return order{}, invalid("id", "", "%v", err)
		}
		o.id = record.MakeRunID(name, r.GetId())
	case key != "":
		o.id = record.MakeRunID(name, record.KeyPrefix+hash(key))
	default:
		o.id = record.MakeRunID(name, makeSuffix(time.Now()))
	}
	return o, nil
}

func (s *Service) start(ctx context.Context, r *writv1.StartRunRequest) (*writv1.StartRunResponse, error) {
	o, err := readOrder(r)
	if err != nil {
		return nil, err
	}
	answer, err := s.startOrder(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start run %s: %w", o.id, err)
	}
	return answer, nil
}

func (s *Service) startOrder(ctx context.Context, o order) (*writv1.StartRunResponse, error) {
	pointer := s.pointer(o.workflow)
	for range races {
		if pointer.ModRev == 0 {
			var err error
			if pointer, err = s.get(ctx, record.WorkflowKey(o.workflow)); err != nil {
				return nil, err
			}
		}
		w, ok := pointer.Value.(record.Workflow)
		if !ok {
			return nil, missing("workflow %s", o.workflow)
		}
		answer, outcome, err := s.create(ctx, o, w, pointer.ModRev)
		if err != nil {
			return s.unlessMade(ctx, o, err)
		}
		if answer == nil {
			answer, err = s.existing(ctx, o, outcome)
		}
		if err != nil || answer != nil {
			return answer, err
		}
		pointer, _ = outcome.Find(record.WorkflowKey(o.workflow))
	}
	return nil, ErrContended
}

// unlessMade fails with what stands against a new run, unless the run was made
// before: a repeated request gets the same answer, whatever has changed since.
func (s *Service) unlessMade(ctx context.Context, o order, reason error) (*writv1.StartRunResponse, error) {
	if !errors.Is(reason, ErrFull) && len(problemsIn(reason)) == 0 {
		return nil, reason
	}
	var seen record.Outcome
	for _, key := range []record.Key{record.RunKey(o.id), record.EndedKey(o.id)} {
		stored, err := s.get(ctx, key)
		if err != nil {
			return nil, err
		}
		seen.Seen = append(seen.Seen, stored)
	}
	answer, err := s.existing(ctx, o, seen)
	if answer == nil && err == nil {
		err = reason
	}
	return answer, err
}

// pointer is a workflow's pointer as the mirror shows it; the guard of what is
// decided by it finds where that is old.
func (s *Service) pointer(name record.WorkflowName) (found record.Stored) {
	s.mirror.Read(func(v *view.Active) {
		if kept, ok := v.Workflow(name); ok {
			found = record.Stored{Key: record.WorkflowKey(name), Value: kept.Record, CreateRev: kept.CreateRev, ModRev: kept.ModRev}
		}
	})
	return found
}

// create makes the run. Without an answer and an error it lost its compare.
func (s *Service) create(ctx context.Context, o order, w record.Workflow, modRev int64) (*writv1.StartRunResponse, record.Outcome, error) {
	flow, err := s.revision(ctx, o.workflow, w.Revision)
	if err != nil {
		return nil, record.Outcome{}, err
	}
	params, problems := spec.CheckParams(flow, o.params)
	if len(problems) > 0 {
		return nil, record.Outcome{}, invalidSpec(problems)
	}
	if err := s.cluster.Admit(); err != nil {
		return nil, record.Outcome{}, err
	}
	run, err := o.run(w, flow)
	if err != nil {
		return nil, record.Outcome{}, err
	}
	id := run.Wrote()
	c, err := record.NewChange(record.RuleCreate, id, []record.Expect{
		record.Absent(record.RunKey(o.id)), record.Absent(record.EndedKey(o.id)), record.At(record.WorkflowKey(o.workflow), modRev),
	}, []record.Put{
		{Key: record.RunKey(o.id), Value: run},
		{Key: record.InputKey(o.id), Value: record.Input{Schema: record.Schema, Run: o.id, Params: params, Write: id}},
	})
	if err != nil {
		return nil, record.Outcome{}, err
	}
	outcome, err := s.commit(ctx, c)
	if err != nil || outcome.Verdict != record.Committed {
		return nil, outcome, err
	}
	return &writv1.StartRunResponse{Run: toRun(run, outcome.Rev, nil), Created: true}, outcome, nil
}

// run is the record of a new run. Where a limit stands against it, it is
// queued: the leader alone lets runs begin under max_active_runs (I12).
func (o order) run(w record.Workflow, flow *spec.Workflow) (record.Run, error) {
	now, to := time.Now().UTC(), record.RunRunning
	if flow.MaxActiveRuns > 0 || w.Paused != nil {
		to = record.RunQueued
	}
	run, err := record.Run{
		Schema: record.Schema, Run: o.id, Workflow: o.workflow, Revision: w.Revision, Trigger: record.TriggerManual, By: o.by, Request: o.request,
	}.Move(record.RunMove{To: to, By: record.API, Who: o.by, At: now, Rule: record.RuleCreate, Write: writeID()})
	if err != nil {
		return record.Run{}, err
	}
	if to == record.RunRunning && flow.Timeout > 0 {
		run.Deadline = now.Add(flow.Timeout.Std())
	}
	return run, nil
}

// existing answers where the id is taken: with the run, where it was made by
// the same request. Without an answer and an error, something else stood in
// the way.
func (s *Service) existing(ctx context.Context, o order, outcome record.Outcome) (*writv1.StartRunResponse, error) {
	var run record.Run
	var rev int64
	active, _ := outcome.Find(record.RunKey(o.id))
	ended, _ := outcome.Find(record.EndedKey(o.id))
	switch {
	case active.ModRev != 0:
		run, _ = active.Value.(record.Run)
		rev = active.ModRev
		s.reach(ctx, rev)
	case ended.ModRev != 0:
		head, _ := ended.Value.(record.Ended)
		run, rev = head.Run, head.RunRev
		run.Phase = record.PhaseNone // see head
	default:
		return nil, nil
	}
	if run.Request != o.request {
		return nil, fmt.Errorf("%w: by %s at %s, with other parameters (hint: use another key or id)",
			ErrTaken, strconv.Quote(run.By), run.CreatedAt.UTC().Format(time.RFC3339))
	}
	return &writv1.StartRunResponse{Run: toRun(run, rev, nil)}, nil
}
