package api

import (
	"context"
	"fmt"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func (s *Service) getRun(ctx context.Context, m *writv1.GetRunRequest) (*writv1.GetRunResponse, error) {
	id, err := runID(m.GetRun())
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*writv1.GetRunResponse, error) { return nil, fmt.Errorf("get run %s: %w", id, err) }
	answer := &writv1.GetRunResponse{}
	err = s.find(ctx, id, func(v *view.Active, r *view.Run, _ bool) {
		answer.Run, answer.Revision = toRun(r.Record, r.ModRev, r.Counts()), v.Rev()
		for t := range r.Tasks() {
			answer.Tasks = append(answer.Tasks, toStatus(t))
		}
	})
	if err != nil {
		return fail(err)
	}
	if answer.Params, err = s.params(ctx, id); err != nil {
		return fail(err)
	}
	return answer, nil
}

func (s *Service) cancel(ctx context.Context, m *writv1.CancelRunRequest) (*writv1.CancelRunResponse, error) {
	id, err := runID(m.GetRun())
	if err != nil {
		return nil, err
	}
	by, err := person(m.GetBy())
	if err != nil {
		return nil, err
	}
	if len(m.GetWhy()) > record.MaxCauseText {
		return nil, invalid("why", "", "is %d bytes long, at most %d are allowed", len(m.GetWhy()), record.MaxCauseText)
	}
	answer, err := s.cancelAs(ctx, id, record.Hold{By: by, Why: m.GetWhy()})
	if err != nil {
		return nil, fmt.Errorf("cancel run %s: %w", id, err)
	}
	return answer, nil
}

func (s *Service) cancelAs(ctx context.Context, id record.RunID, word record.Hold) (*writv1.CancelRunResponse, error) {
	stored := s.seen(id)
	for range races {
		if stored.ModRev == 0 {
			var err error
			if stored, err = s.get(ctx, record.RunKey(id)); err != nil {
				return nil, err
			}
		}
		run, ok := stored.Value.(record.Run)
		if !ok {
			head, err := s.head(ctx, id)
			if err != nil {
				return nil, err
			}
			return cancelled(head.Run, head.RunRev)
		}
		if run.State == record.RunCancelling || run.State.Terminal() {
			return cancelled(run, stored.ModRev)
		}
		if run.Phase != record.PhaseNone {
			return nil, fmt.Errorf("it is being reopened: %w (hint: ask again)", ErrEarly)
		}
		next, c, err := cancelling(run, stored.ModRev, word)
		if err != nil {
			return nil, err
		}
		o, err := s.commit(ctx, c)
		if err != nil {
			return nil, err
		}
		if o.Verdict == record.Committed {
			return &writv1.CancelRunResponse{Run: toRun(next, o.Rev, nil)}, nil
		}
		stored, _ = o.Find(record.RunKey(id))
	}
	return nil, ErrContended
}

// seen is a run record as the mirror shows it.
func (s *Service) seen(id record.RunID) (found record.Stored) {
	s.mirror.Read(func(v *view.Active) {
		if r, ok := v.Run(id); ok {
			found = record.Stored{Key: record.RunKey(id), Value: r.Record, CreateRev: r.CreateRev, ModRev: r.ModRev}
		}
	})
	return found
}

// cancelled answers for a run whose end was asked for before. That it has
// ended as cancelled is what was asked for, too: the request may be a repeated
// one.
func cancelled(run record.Run, rev int64) (*writv1.CancelRunResponse, error) {
	if run.State.Terminal() && run.State != record.RunCancelled {
		return nil, fmt.Errorf("it is %s since %s: %w", run.State, run.EndedAt.UTC().Format(time.RFC3339), ErrEnded)
	}
	return &writv1.CancelRunResponse{Run: toRun(run, rev, nil)}, nil
}

// cancelling is the step to the state of that name, with who asked and why.
func cancelling(run record.Run, rev int64, word record.Hold) (record.Run, record.Change, error) {
	word.At = time.Now().UTC()
	id := writeID()
	next, err := run.Move(record.RunMove{
		To: record.RunCancelling, By: record.Operator, Who: word.By, At: word.At, Rule: record.RuleCancel, Write: id,
		Cause: record.Because(record.CauseCancelled, word.Why),
	})
	if err != nil {
		return run, record.Change{}, err
	}
	next.Cancelling = &word
	key := record.RunKey(run.Run)
	c, err := record.NewChange(record.RuleCancel, id, []record.Expect{record.At(key, rev)}, []record.Put{{Key: key, Value: next}})
	return next, c, err
}
