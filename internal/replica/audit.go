package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/audit"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store"
	"github.com/writ-sched/writ/internal/view"
)

// Reign is one term as the records tell of it: who wrote under it, and when
// first and last.
type Reign struct {
	Term        int64
	Who         string // replica/<id>
	First, Last time.Time
}

// Audited is the verdict over a history.
type Audited struct {
	Violations []audit.Violation
	Summary    audit.Summary
	// From is the first revision that was read as history, To the last.
	From, To int64
	// Truncated is set where earlier history is gone, so that only the records
	// as they stand could be checked.
	Truncated bool
	Reigns    []Reign
}

// auditor checks what the store still knows.
type auditor struct {
	store *store.Store
}

// audit reads the whole history, or what is left of it, and checks it.
func (a auditor) audit(ctx context.Context) (Audited, error) {
	first, revisions, err := a.survey(ctx)
	if err != nil {
		return Audited{}, err
	}
	check := audit.New(audit.Options{})
	for _, rev := range revisions {
		w, err := a.store.Spec(ctx, rev.Workflow, rev.Number)
		if err != nil {
			return Audited{}, fmt.Errorf("audit: %w", err)
		}
		check.Spec(rev.Workflow, rev.Number, w)
	}
	whole, err := a.whole(ctx)
	if err != nil {
		return Audited{}, err
	}
	if !whole {
		return a.records(ctx, check)
	}
	reigns := map[int64]*Reign{}
	to, err := a.store.History(ctx, 0, func(e record.Events) error {
		for _, event := range e.Events {
			reign(reigns, event.Value)
		}
		return check.Feed(e)
	})
	if err != nil {
		return Audited{}, fmt.Errorf("audit the history: %w", err)
	}
	return Audited{Violations: check.Report(), Summary: check.Summary(), From: first, To: to, Reigns: inOrder(reigns)}, nil
}

// survey finds the first revision of the history and which specs it needs.
func (a auditor) survey(ctx context.Context) (int64, []view.Revision, error) {
	var first int64
	needed := map[view.Revision]bool{}
	_, err := a.store.History(ctx, 0, func(e record.Events) error {
		for _, event := range e.Events {
			if first == 0 {
				first = event.ModRev
			}
			switch v := event.Value.(type) {
			case record.Run:
				needed[view.Revision{Workflow: v.Workflow, Number: v.Revision}] = true
			case record.Ended:
				needed[view.Revision{Workflow: v.Run.Workflow, Number: v.Run.Revision}] = true
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, fmt.Errorf("read the history: %w", err)
	}
	list := make([]view.Revision, 0, len(needed))
	for rev := range needed {
		list = append(list, rev)
	}
	slices.SortFunc(list, func(x, y view.Revision) int {
		return cmp.Or(cmp.Compare(x.Workflow, y.Workflow), cmp.Compare(x.Number, y.Number))
	})
	return first, list, nil
}

// whole says that nothing of the history was compacted away.
func (a auditor) whole(ctx context.Context) (bool, error) {
	_, err := a.store.History(ctx, 1, func(record.Events) error { return errEnough })
	switch {
	case err == nil || errors.Is(err, errEnough):
		return true, nil
	case errors.Is(err, store.ErrCompacted):
		return false, nil
	default:
		return false, fmt.Errorf("read the history: %w", err)
	}
}

var errEnough = errors.New("enough was read")

// records checks the records as they stand, where the history is not whole.
func (a auditor) records(ctx context.Context, check *audit.Auditor) (Audited, error) {
	var all []record.Stored
	rev, err := a.store.Snapshot(ctx, func(s record.Stored) error {
		all = append(all, s)
		return nil
	})
	if err != nil {
		return Audited{}, fmt.Errorf("list the records: %w", err)
	}
	reigns := map[int64]*Reign{}
	for _, s := range all {
		reign(reigns, s.Value)
	}
	if err := check.Begin(rev, all, false); err != nil {
		return Audited{}, fmt.Errorf("audit the records: %w", err)
	}
	if err := a.documents(ctx, check); err != nil {
		return Audited{}, err
	}
	return Audited{Violations: check.Report(), Summary: check.Summary(), From: rev, To: rev, Truncated: true, Reigns: inOrder(reigns)}, nil
}

// documents gives the auditor every ended run.
func (a auditor) documents(ctx context.Context, check *audit.Auditor) error {
	var after record.Key
	for {
		lines, err := a.store.List(ctx, record.AllOf(record.FamilyIndex), after, sweepPage)
		if err != nil {
			return fmt.Errorf("list ended runs: %w", err)
		}
		for _, stored := range lines {
			after = stored.Key
			line, ok := stored.Value.(record.IndexLine)
			if !ok {
				continue
			}
			if err := a.document(ctx, check, line.Run); err != nil {
				return err
			}
		}
		if len(lines) < sweepPage {
			return nil
		}
	}
}

func (a auditor) document(ctx context.Context, check *audit.Auditor, run record.RunID) error {
	stored, err := a.store.Get(ctx, record.EndedKey(run))
	if err != nil {
		return fmt.Errorf("read ended run %s: %w", run, err)
	}
	head, ok := stored.Value.(record.Ended)
	if !ok {
		return nil // swept, or reopened, since the line was read
	}
	w, err := a.store.Spec(ctx, head.Run.Workflow, head.Run.Revision)
	if err != nil {
		return fmt.Errorf("read ended run %s: %w", run, err)
	}
	check.Spec(head.Run.Workflow, head.Run.Revision, w)
	pages := make([]record.EndedPage, 0, head.Pages)
	for n := 1; n <= head.Pages; n++ {
		stored, err := a.store.Get(ctx, record.PageKey(run, n))
		if err != nil {
			return fmt.Errorf("read ended run %s: %w", run, err)
		}
		if page, ok := stored.Value.(record.EndedPage); ok {
			pages = append(pages, page)
		}
	}
	check.Ended(head, pages)
	return nil
}

// reign notes who wrote under which term.
func reign(reigns map[int64]*Reign, v record.Value) {
	var steps []record.Transition
	switch v := v.(type) {
	case record.Attempt:
		steps = v.Transitions
	case record.Run:
		steps = v.Transitions
	}
	for _, t := range steps {
		if t.Term == 0 {
			continue
		}
		r, ok := reigns[t.Term]
		if !ok {
			r = &Reign{Term: t.Term, Who: t.By, First: t.At, Last: t.At}
			reigns[t.Term] = r
		}
		if t.At.Before(r.First) {
			r.First = t.At
		}
		if t.At.After(r.Last) {
			r.Last = t.At
		}
	}
}

func inOrder(reigns map[int64]*Reign) []Reign {
	list := make([]Reign, 0, len(reigns))
	for _, r := range reigns {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b Reign) int { return cmp.Compare(a.Term, b.Term) })
	return list
}
