package api

import (
	"context"
	"fmt"

	"github.com/writ-sched/writ/internal/record"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func (s *Service) pause(ctx context.Context, m *writv1.PauseRunRequest) (*writv1.PauseRunResponse, error) {
	run, err := s.hold(ctx, "pause", m.GetRun(), m.GetBy(), m.GetWhy(), func(o *operation) error {
		if o.run.Record.Paused != nil && !o.ended {
			return nil
		}
		return o.rewrite(record.RulePause, func(r *record.Run) { r.Paused = &o.word })
	})
	return &writv1.PauseRunResponse{Run: run}, err
}

func (s *Service) resume(ctx context.Context, m *writv1.ResumeRunRequest) (*writv1.ResumeRunResponse, error) {
	run, err := s.hold(ctx, "resume", m.GetRun(), m.GetBy(), "", func(o *operation) error {
		if o.run.Record.Paused == nil && !o.ended {
			return nil
		}
		return o.rewrite(record.RulePause, func(r *record.Run) { r.Paused = nil })
	})
	return &writv1.ResumeRunResponse{Run: run}, err
}

// hold carries out an operation that is about the run alone.
func (s *Service) hold(ctx context.Context, verb, run, by, why string, decide func(*operation) error) (*writv1.Run, error) {
	id, err := runID(run)
	if err != nil {
		return nil, err
	}
	w, err := word(by, why)
	if err != nil {
		return nil, err
	}
	o, rev, err := s.operate(ctx, id, w, decide)
	if err != nil {
		return nil, fmt.Errorf("%s run %s: %w", verb, id, err)
	}
	return toRun(o.next, rev, nil), nil
}
