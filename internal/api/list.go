package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// sieve says which runs are asked for.
type sieve struct {
	workflow record.WorkflowName
	states   map[writv1.RunState]bool // empty: all
}

func readSieve(m *writv1.ListRunsRequest) (sieve, error) {
	f := sieve{states: map[writv1.RunState]bool{}}
	if m.GetWorkflow() != "" {
		name, err := workflowName("workflow", m.GetWorkflow())
		if err != nil {
			return f, err
		}
		f.workflow = name
	}
	for _, state := range m.GetStates() {
		if _, known := writv1.RunState_name[int32(state)]; !known || state == writv1.RunState_RUN_STATE_UNSPECIFIED {
			return f, invalid("states", "", "%d is no state of a run", state)
		}
		f.states[state] = true
	}
	return f, nil
}

func (f sieve) passes(workflow record.WorkflowName, state record.RunState) bool {
	return (f.workflow == "" || f.workflow == workflow) && (len(f.states) == 0 || f.states[toRunState(state)])
}

// newer orders the places of a list: newest first, and by id where two are of
// the same time.
func newer(a, b runPlace) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Run, b.Run))
}

// line is a run with its place in the list.
type line struct {
	at  runPlace
	run *writv1.Run
}

func (s *Service) listRuns(ctx context.Context, m *writv1.ListRunsRequest) (*writv1.ListRunsResponse, error) {
	size, err := pageSize(m.GetPageSize(), defaultRuns)
	if err != nil {
		return nil, err
	}
	f, err := readSieve(m)
	if err != nil {
		return nil, err
	}
	var after runPlace
	if err := readToken(m.GetPageToken(), &after); err != nil {
		return nil, err
	}
	// One more than asked for tells whether there are more.
	var page []line
	if !after.Ended {
		page = s.activeLines(f, after, size+1)
		after = runPlace{Ended: true}
	}
	if len(page) <= size {
		ended, err := s.endedLines(ctx, f, after, size+1-len(page), page)
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		page = append(page, ended...)
	}
	answer := &writv1.ListRunsResponse{}
	if len(page) > size {
		page = page[:size]
		answer.NextPageToken = writeToken(page[size-1].at)
	}
	for _, l := range page {
		answer.Runs = append(answer.Runs, l.run)
	}
	return answer, nil
}

// activeLines are the newest active runs behind a place.
func (s *Service) activeLines(f sieve, after runPlace, limit int) []line {
	var list []line
	s.mirror.Read(func(v *view.Active) {
		var runs []*view.Run
		if f.workflow != "" {
			runs = v.RunsOf(f.workflow)
		} else {
			runs = v.Runs()
		}
		place := func(r *view.Run) runPlace { return runPlace{At: r.Record.CreatedAt, Run: r.ID()} }
		runs = slices.DeleteFunc(slices.Clone(runs), func(r *view.Run) bool {
			return !f.passes(r.Record.Workflow, r.Record.State) || !after.At.IsZero() && newer(place(r), after) <= 0
		})
		slices.SortFunc(runs, func(a, b *view.Run) int { return newer(place(a), place(b)) })
		for _, r := range runs[:min(limit, len(runs))] {
			told := toRun(r.Record, r.ModRev, r.Counts())
			told.Transitions = nil
			list = append(list, line{at: place(r), run: told})
		}
	})
	return list
}

// indexPage is how many lines of the index are read at once.
const indexPage = 500

// endedLines are the runs behind a place that ended last. The index has its
// newest hour first, but within an hour the runs by their ids: an hour is read
// to its end, and no more of it kept than is asked for.
func (s *Service) endedLines(ctx context.Context, f sieve, after runPlace, limit int, besides []line) ([]line, error) {
	var from record.Key
	if !after.At.IsZero() {
		from = record.IndexKey(after.At, "") // before all of its hour
	}
	var list, hour []line
	var at int64
	for {
		stored, err := s.store.List(ctx, record.AllOf(record.FamilyIndex), from, indexPage)
		if err != nil {
			return nil, unread(ctx, err)
		}
		for _, one := range stored {
			from = one.Key
			if one.Key.Hour != at {
				if list, hour = append(list, newest(hour, limit)...), nil; len(list) >= limit {
					return list[:limit], nil
				}
				at = one.Key.Hour
			}
			if l, ok := endedLine(one, f, after); ok && !shown(besides, l) {
				hour = append(hour, l)
			}
		}
		hour = newest(hour, limit)
		if len(stored) < indexPage {
			list = append(list, hour...)
			return list[:min(limit, len(list))], nil
		}
	}
}

// newest keeps the first lines of a list.
func newest(list []line, limit int) []line {
	slices.SortFunc(list, func(a, b line) int { return newer(a.at, b.at) })
	return list[:min(limit, len(list))]
}

func endedLine(stored record.Stored, f sieve, after runPlace) (line, bool) {
	told, ok := stored.Value.(record.IndexLine)
	if !ok || !f.passes(told.Workflow, told.State) {
		return line{}, false
	}
	l := line{at: runPlace{Ended: true, At: told.EndedAt, Run: told.Run}, run: toLine(told)}
	return l, after.At.IsZero() || newer(l.at, after) > 0
}

// shown says that a page has the run already: it ended after the mirror was
// read.
func shown(page []line, l line) bool {
	return slices.ContainsFunc(page, func(p line) bool { return p.run.GetRun() == l.run.GetRun() })
}
