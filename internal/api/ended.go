package api

import (
	"context"
	"fmt"
	"maps"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// tries is how often a run is looked for that moves between the mirror, the
// active records and the ended ones.
const tries = 5

// find calls show with a run, active or ended, and the view that has it; ended
// says which. show is called at most once, and under the mirror's lock where the
// run is active.
func (s *Service) find(ctx context.Context, id record.RunID, show func(v *view.Active, r *view.Run, ended bool)) error {
	for range tries {
		found, loaded := false, false
		s.mirror.Read(func(v *view.Active) {
			r, ok := v.Run(id)
			if found, loaded = ok, ok && r.Loaded(); loaded {
				show(v, r, false)
			}
		})
		if loaded {
			return nil
		}
		// The run record is read before the document: a run that is in neither
		// was swept or never there.
		stored, err := s.get(ctx, record.RunKey(id))
		if err != nil {
			return err
		}
		if stored.ModRev != 0 {
			if err := s.settle(ctx, id, found, stored.ModRev); err != nil {
				return err
			}
			continue
		}
		head, err := s.head(ctx, id)
		if err != nil {
			return err
		}
		v, whole, err := s.document(ctx, head)
		if err != nil {
			return err
		}
		if r, ok := v.Run(id); ok && whole {
			show(v, r, true)
			return nil
		}
	}
	return fmt.Errorf("run %s moves between records: %w", id, ErrContended)
}

// settle waits for the mirror to show an active run and the spec of it.
func (s *Service) settle(ctx context.Context, id record.RunID, found bool, rev int64) error {
	if !found {
		s.reach(ctx, rev)
		return nil
	}
	feed := s.mirror.Feed()
	defer feed.Close()
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	for {
		waits := false
		s.mirror.Read(func(v *view.Active) {
			r, ok := v.Run(id)
			waits = ok && !r.Loaded()
		})
		if !waits {
			return nil
		}
		select {
		case <-feed.Wake():
		case <-ctx.Done():
			return fmt.Errorf("run %s: its spec is not loaded: %w", id, ErrSilent)
		}
	}
}

// head reads the head of an ended run's document.
func (s *Service) head(ctx context.Context, id record.RunID) (record.Ended, error) {
	stored, err := s.get(ctx, record.EndedKey(id))
	if err != nil {
		return record.Ended{}, err
	}
	head, ok := stored.Value.(record.Ended)
	if !ok {
		return record.Ended{}, missing("run %s", id)
	}
	head.Run.Phase = record.PhaseNone // that of the moment before the document was there
	return head, nil
}

// document reads the pages of an ended run and makes a view of them, in which
// the run stands as it stood at its end. whole is false where a page is gone:
// the run was swept, or reopened, meanwhile.
func (s *Service) document(ctx context.Context, head record.Ended) (v *view.Active, whole bool, err error) {
	id := head.Run.Run
	list := []record.Stored{{Key: record.RunKey(id), Value: head.Run, CreateRev: head.RunRev, ModRev: head.RunRev}}
	for n := 1; n <= head.Pages; n++ {
		stored, err := s.get(ctx, record.PageKey(id, n))
		if err != nil {
			return nil, false, err
		}
		page, ok := stored.Value.(record.EndedPage)
		if !ok {
			return view.New(), false, nil
		}
		for _, row := range page.Rows {
			list = append(list, record.Stored{Key: record.AttemptKey(row.Attempt.Ref()), Value: row.Attempt, CreateRev: row.CreateRev, ModRev: row.ModRev})
		}
	}
	for _, c := range head.Clears {
		list = append(list, record.Stored{Key: record.ClearKey(id, c.Clear.Seq), Value: c.Clear, CreateRev: c.CreateRev, ModRev: c.CreateRev})
	}
	w, err := s.revision(ctx, head.Run.Workflow, head.Run.Revision)
	if err != nil {
		return nil, false, err
	}
	v = view.FromList(head.RunRev, list)
	v.Load(view.Revision{Workflow: head.Run.Workflow, Number: head.Run.Revision}, spec.Compile(w))
	return v, true, nil
}

// params reads what a run was started with.
func (s *Service) params(ctx context.Context, id record.RunID) (map[string]string, error) {
	stored, err := s.get(ctx, record.InputKey(id))
	if err != nil {
		return nil, err
	}
	input, _ := stored.Value.(record.Input)
	return maps.Clone(input.Params), nil
}
