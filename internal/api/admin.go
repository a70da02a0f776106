package api

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/writ-sched/writ/internal/explain"
	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func (s *Service) explain(ctx context.Context, m *writv1.ExplainRunRequest) (*writv1.ExplainRunResponse, error) {
	id, err := runID(m.GetRun())
	if err != nil {
		return nil, err
	}
	asked := record.TaskRef{Run: id}
	if m.GetTask() != "" {
		if asked.Task, asked.Instance, err = record.ParseTaskName(m.GetTask()); err != nil {
			return nil, invalid("task", "", "%v", err)
		}
	}
	answer, known := &writv1.ExplainRunResponse{}, true
	err = s.find(ctx, id, func(v *view.Active, r *view.Run, _ bool) {
		answer.Run, answer.Revision = toRun(r.Record, r.ModRev, r.Counts()), v.Rev()
		if asked.Task != "" {
			_, known = r.Task(asked)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("explain run %s: %w", id, err)
	}
	if !known {
		return nil, missing("task %s of run %s", asked.Name(), id)
	}
	losses, due := s.config.Holds()
	s.mirror.Read(func(v *view.Active) {
		for _, a := range explain.Explain(v, explain.Question{
			Run: id, Task: asked.Task, Now: time.Now(), Policy: s.config.Policy, HoldLosses: losses, HoldDue: due,
		}) {
			if asked.Task == "" || a.Task.Task == "" || a.Task == asked {
				answer.Reasons = append(answer.Reasons, s.reason(a))
			}
		}
		if r, ok := v.Run(id); ok {
			answer.Run, answer.Revision = toRun(r.Record, r.ModRev, r.Counts()), v.Rev()
		}
	})
	return answer, nil
}

func (s *Service) reason(a explain.Answer) *writv1.Reason {
	m := &writv1.Reason{Code: a.Reason, Text: a.Text, Since: toTime(a.Since), Revision: a.Rev}
	if a.Task.Task != "" {
		m.Task = a.Task.Name()
	}
	if a.Key != (record.Key{}) {
		m.Record = s.config.KeyName(a.Key)
	}
	return m
}

func (s *Service) listWorkers(context.Context, *writv1.ListWorkersRequest) (*writv1.ListWorkersResponse, error) {
	answer := &writv1.ListWorkersResponse{}
	s.mirror.Read(func(v *view.Active) { answer.Workers = workers(v) })
	return answer, nil
}

func workers(v *view.Active) []*writv1.WorkerStatus {
	list := []*writv1.WorkerStatus{}
	for _, w := range v.Workers() {
		ref := view.SessionRef{Worker: w.Record.Worker, Session: w.Record.Session}
		memory, _ := v.Session(ref)
		list = append(list, toWorker(w.Record, v.Occupied(ref), memory.Record.Replica))
	}
	return list
}

func (s *Service) status(ctx context.Context, _ *writv1.GetStatusRequest) (*writv1.GetStatusResponse, error) {
	answer, err := s.cluster.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("status: %w", unread(ctx, err))
	}
	losses, due := s.config.Holds()
	s.mirror.Read(func(v *view.Active) {
		answer.Revision, answer.Workers = v.Rev(), workers(v)
		for _, r := range v.Runs() {
			answer.ActiveRuns++
			answer.LiveAttempts += int32(r.Live())
		}
		pass := reconcile.Pass(v, view.Touched{Full: true}, reconcile.Turn{
			Now: time.Now(), Policy: s.config.Policy, HoldLosses: losses, HoldDue: due,
			Stamp: reconcile.Stamp{Who: "status", Prefix: "statusstatusstatus"},
		})
		answer.ReadyTasks = int32(len(pass.Ready))
		answer.ReadyByQueue = map[string]int32{}
		var oldest time.Time
		for _, r := range pass.Ready {
			answer.ReadyByQueue[string(r.Queue)]++
			if oldest.IsZero() || r.Since.Before(oldest) {
				oldest = r.Since
			}
		}
		if !oldest.IsZero() {
			answer.OldestReady = durationpb.New(max(0, time.Since(oldest)))
		}
	})
	if losses {
		answer.Holds = append(answer.Holds, "losses")
	}
	if due {
		answer.Holds = append(answer.Holds, "due times")
	}
	return answer, nil
}

func (s *Service) audit(ctx context.Context, m *writv1.AuditRequest) (*writv1.AuditResponse, error) {
	if m.GetRun() != "" {
		if _, err := runID(m.GetRun()); err != nil {
			return nil, err
		}
	}
	answer, err := s.cluster.Audit(ctx, m.GetRun())
	if err != nil {
		return nil, fmt.Errorf("audit: %w", unread(ctx, err))
	}
	return answer, nil
}
