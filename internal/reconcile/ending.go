package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// EndPages makes the pages of the ended document of a run in phase ending, in
// order. Rows of such a run move no more, so every replica makes the same
// pages, under the same write ids: whoever finds a page there already has
// committed it. The caller writes one after the other, and then the head.
func EndPages(r *view.Run, s Stamp) ([]record.Change, error) {
	if err := endable(r); err != nil {
		return nil, fmt.Errorf("make the pages of run %s: %w", r.ID(), err)
	}
	var list []record.Change
	for i, rows := range cut(r) {
		page := i + 1
		key := record.PageKey(r.ID(), page)
		id := fixedWrite(string(r.ID()), strconv.FormatInt(r.ModRev, 10), strconv.Itoa(page))
		c, err := record.NewChange(record.RuleEnd, id,
			s.expect([]record.Expect{record.Absent(key), record.At(record.RunKey(r.ID()), r.ModRev)}),
			[]record.Put{{Key: key, Value: record.EndedPage{
				Schema: record.Schema, Run: r.ID(), Page: page, Rows: rows, Write: id,
			}}})
		if err != nil {
			return nil, fmt.Errorf("make page %d of run %s: %w", page, r.ID(), err)
		}
		list = append(list, c)
	}
	return list, nil
}

// endable says why the document of a run cannot be made. The order of its rows
// and the counts of its tasks are those of the spec.
func endable(r *view.Run) error {
	switch {
	case r.Record.Phase != record.PhaseEnding:
		return fmt.Errorf("it is in phase %q, expected %q", r.Record.Phase, record.PhaseEnding)
	case !r.Loaded():
		return errors.New("its spec is not loaded")
	default:
		return nil
	}
}

// EndHead makes the last change of a run in phase ending: the head of its
// document and its index line are put, and everything active of it is deleted.
// It expects the last page to be there, and the unproven deaths as the view
// shows them.
func EndHead(v *view.Active, r *view.Run, s Stamp) (record.Change, error) {
	id := r.ID()
	if err := endable(r); err != nil {
		return record.Change{}, fmt.Errorf("make the head of run %s: %w", id, err)
	}
	write := fixedWrite(string(id), strconv.FormatInt(r.ModRev, 10), "head")
	head := record.Ended{
		Schema: record.Schema, Run: r.Record, RunRev: r.ModRev, Tasks: r.Counts(), Attempts: r.Attempts(),
		Pages: r.Record.Pages, Write: write,
	}
	marks := record.OfRun(record.FamilyUnproven, id)
	expect := []record.Expect{
		record.At(record.RunKey(id), r.ModRev), record.Absent(record.EndedKey(id)), record.Unchanged(marks, v.Rev()),
	}
	if head.Pages > 0 {
		expect = append(expect, record.Present(record.PageKey(id, head.Pages)))
	}
	for _, c := range r.Clears() {
		head.Clears = append(head.Clears, record.EndedClear{Clear: c.Clear, CreateRev: c.FirstRev})
	}
	for _, m := range r.AllMarks() {
		head.Unproven = append(head.Unproven, m.Unproven)
	}
	put := []record.Put{
		{Key: record.EndedKey(id), Value: head},
		{Key: record.IndexKey(r.Record.EndedAt, id), Value: IndexLine(head)},
	}
	c, err := record.NewChange(record.RuleEnd, write, s.expect(expect), put,
		record.Remove(record.RunKey(id)), record.RemoveAll(record.AttemptsOf(id)),
		record.RemoveAll(record.OfRun(record.FamilyClear, id)), record.RemoveAll(marks),
		record.RemoveAll(record.OfRun(record.FamilySignal, id)))
	if err != nil {
		return record.Change{}, fmt.Errorf("make the head of run %s: %w", id, err)
	}
	return c, nil
}

// IndexLine is what lists and the sweep read of an ended run.
func IndexLine(head record.Ended) record.IndexLine {
	r := head.Run
	return record.IndexLine{
		Schema: record.Schema, Run: r.Run, Workflow: r.Workflow, Revision: r.Revision, State: r.State, Trigger: r.Trigger,
		LogicalDate: r.LogicalDate, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt,
		Tasks: head.Tasks, Attempts: head.Attempts, Pages: head.Pages, Write: head.Write,
	}
}

// cut divides the rows of a run into pages.
func cut(r *view.Run) [][]record.EndedRow {
	var pages [][]record.EndedRow
	var page []record.EndedRow
	size := 0
	for row := range r.Rows() {
		n := bulk(row.Attempt)
		if len(page) > 0 && size+n > MaxPage {
			pages, page, size = append(pages, slices.Clip(page)), nil, 0
		}
		page = append(page, record.EndedRow{Attempt: row.Attempt, CreateRev: row.FirstRev(), ModRev: row.ModRev})
		size += n
	}
	if len(page) > 0 {
		pages = append(pages, slices.Clip(page))
	}
	return pages
}

// bulk estimates the JSON of a row from above: every field's name, quotes and
// numbers at their widest, and each byte of free text as the six that an
// escape may take.
func bulk(a record.Attempt) int {
	n := 900 + len(a.Run) + len(a.Task) + len(a.Queue) + len(a.Pool) + len(a.Worker) + len(a.Session) + 6*len(a.Cause.Text)
	for _, k := range a.Keys {
		n += 6*len(k) + 3
	}
	for _, t := range a.Transitions {
		n += 140 + len(t.State) + len(t.Rule) + 6*len(t.By) + len(t.Write)
	}
	return n
}
