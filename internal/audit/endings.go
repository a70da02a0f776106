package audit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/writ-sched/writ/internal/record"
)

// ending is a run as it was when its active records were deleted.
type ending struct {
	rev    int64
	rec    record.Run
	runRev int64
	rows   map[record.Ref]row
	clears map[int64]record.EndedClear
	marks  map[record.Ref]record.Unproven
}

// document is an ended document as it was given or fed.
type document struct {
	head  record.Ended
	pages []record.EndedPage
	rev   int64 // 0 where it was given
}

func compareTasks(x, y record.TaskRef) int {
	return cmp.Or(cmp.Compare(x.Run, y.Run), cmp.Compare(x.Task, y.Task), cmp.Compare(x.Instance, y.Instance))
}

func compareRefs(x, y record.Ref) int {
	return cmp.Or(compareTasks(x.TaskRef, y.TaskRef), cmp.Compare(x.N, y.N))
}

// remember keeps a run whose record this step deletes, as it was before.
func (a *Auditor) remember(s *step, id record.RunID) {
	r, ok := a.runs[id]
	if !ok || !r.here() {
		return // Feed says so
	}
	e := &ending{rev: s.rev, rec: r.rec, runRev: r.mod, rows: make(map[record.Ref]row, r.rows), marks: r.marks, clears: r.clears}
	for ref, t := range r.tasks {
		for n, w := range t.rows {
			e.rows[ref.At(n)] = w
		}
	}
	// What belongs to the run after this step is counted anew.
	r.marks, r.clears = maps.Clone(r.marks), maps.Clone(r.clears)
	s.ended = append(s.ended, e)
}

// checkEndings asks I10 of the runs that this step deleted: they had ended,
// and nothing of them stays behind.
func (a *Auditor) checkEndings(s *step) {
	for _, e := range s.ended {
		id := e.rec.Run
		key := record.RunKey(id)
		a.sum.Ended++
		a.checked("I10")
		if !e.rec.State.Terminal() || e.rec.Phase != record.PhaseEnding {
			a.breach("I10", s.rev, key, "the record of a run that is %s is deleted, expected an ended one in phase %s", standing(e.rec), record.PhaseEnding)
		}
		r := a.runs[id]
		switch {
		case r.rows > 0:
			a.breach("I10", s.rev, key, "the run is deleted, %d of its rows are not, expected all to go together", r.rows)
		case len(r.clears)+len(r.marks) > 0:
			a.breach("I10", s.rev, key, "the run is deleted, %d clears and %d marks of it are not, expected all to go together", len(r.clears), len(r.marks))
		}
		if r.rows == 0 {
			delete(a.runs, id)
		}
		a.past[id] = append(a.past[id], e)
		a.retained[id] = true
	}
}

// checkRestored asks about a row that a reopening brings back.
func (a *Auditor) checkRestored(s *step, c rowChange) {
	a.checked("I3")
	w := c.after
	switch {
	case c.run.rec.Phase != record.PhaseReopening:
		a.breach("I3", s.rev, c.key, "a row with the fence %d is made while the run is in phase %q, expected a reopening", w.Fence, c.run.rec.Phase)
		return
	case !w.State.Terminal():
		a.breach("I3", s.rev, c.key, "a %s row is restored, expected a terminal one", w.State)
		return
	}
	past := a.past[c.run.id]
	if len(past) == 0 {
		if a.partial {
			a.know(w)
		}
		return
	}
	old, ok := past[len(past)-1].rows[w.Ref()]
	switch {
	case !ok:
		a.breach("I3", s.rev, c.key, "a row is restored that the run did not end with")
	case changed(old.Attempt, w.Attempt) != "":
		a.breach("I3", s.rev, c.key, "%s of the row differ from what the run ended with, expected it restored as it was", changed(old.Attempt, w.Attempt))
	case w.Fence != old.first():
		a.breach("I3", s.rev, c.key, "the row is restored with the fence %d, expected its first create revision %d", w.Fence, old.first())
	}
}

// know takes a token in from a row of before the history.
func (a *Auditor) know(w row) {
	if _, ok := a.tokens[w.Token]; !ok && w.Token != "" {
		a.tokens[w.Token] = issue{ref: w.Ref(), row: w, rev: w.first()}
	}
}

// checkWhole asks I10 of a reopening that is done: every row is back.
func (a *Auditor) checkWhole(s *step, c runChange) {
	past := a.past[c.key.Run]
	if len(past) == 0 {
		return
	}
	a.checked("I10")
	if want := len(past[len(past)-1].rows); c.run.rows != want {
		a.breach("I10", s.rev, c.key, "the reopening is over with %d rows, expected the %d that the run ended with", c.run.rows, want)
	}
}

// Ended gives the document of an ended run, where the history itself does not
// show it. One that ended before the history begins makes its tokens known.
func (a *Auditor) Ended(head record.Ended, pages []record.EndedPage) {
	a.docs = append(a.docs, document{head: head, pages: pages})
	a.knowAll(pages)
}

func (a *Auditor) knowAll(pages []record.EndedPage) {
	for _, p := range pages {
		for _, r := range p.Rows {
			a.know(row{Attempt: r.Attempt, create: r.CreateRev, mod: r.ModRev})
		}
	}
}

// checkDocuments asks I10 of every document: it is the run as it was when its
// active records went.
func (a *Auditor) checkDocuments() {
	told := map[*ending]bool{}
	for _, d := range a.docs {
		i := slices.IndexFunc(a.past[d.head.Run.Run], func(e *ending) bool { return e.runRev == d.head.RunRev })
		if i < 0 {
			if d.head.RunRev > a.since {
				a.breach("I10", cmp.Or(d.rev, a.rev), record.EndedKey(d.head.Run.Run), "the document is of the run at revision %d, at which it did not end", d.head.RunRev)
			}
			continue
		}
		e := a.past[d.head.Run.Run][i]
		told[e] = true
		a.checkDocument(d, e)
	}
	for _, list := range a.past {
		for _, e := range list {
			if a.heads && !told[e] {
				a.breach("I10", e.rev, record.RunKey(e.rec.Run), "the run is deleted without a document, expected its head in the same revision")
			}
		}
	}
}

func (a *Auditor) checkDocument(d document, e *ending) {
	a.checked("I10")
	key, h := record.EndedKey(e.rec.Run), d.head
	seen := map[record.Ref]bool{}
	for _, p := range d.pages {
		for _, r := range p.Rows {
			w, ok := e.rows[r.Attempt.Ref()]
			switch {
			case !ok || seen[w.Ref()]:
				a.breach("I10", e.rev, key, "page %d lists %s, which the run did not end with, or twice", p.Page, r.Attempt.Ref())
			case changed(w.Attempt, r.Attempt) != "" || r.ModRev != w.mod || r.CreateRev != w.first():
				a.breach("I10", e.rev, key, "page %d shows %s created at %d, last written at %d, expected the row as it was: %d, %d",
					p.Page, r.Attempt.Ref(), r.CreateRev, r.ModRev, w.first(), w.mod)
			}
			seen[r.Attempt.Ref()] = true
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(e.rows), compareRefs) {
		if !seen[ref] {
			a.breach("I10", e.rev, key, "the document lacks %s, expected every row of the run", ref)
		}
	}
	switch {
	case h.Attempts != len(e.rows) || h.Pages != len(d.pages):
		a.breach("I10", e.rev, key, "the head counts %d rows on %d pages, expected %d on %d", h.Attempts, h.Pages, len(e.rows), len(d.pages))
	case identity(h.Run) != identity(e.rec) || h.Run.State != e.rec.State || !slices.EqualFunc(h.Run.Transitions, e.rec.Transitions, sameTransition):
		a.breach("I10", e.rev, key, "the head shows another run record than that of revision %d", e.runRev)
	case !sameClears(h.Clears, e.clears) || !sameMarks(h.Unproven, e.marks):
		a.breach("I10", e.rev, key, "the head keeps %d clears and %d unproven deaths, expected the run's %d and %d", len(h.Clears), len(h.Unproven), len(e.clears), len(e.marks))
	}
}

func sameClears(list []record.EndedClear, want map[int64]record.EndedClear) bool {
	return len(list) == len(want) && !slices.ContainsFunc(list, func(c record.EndedClear) bool {
		w, ok := want[int64(c.Clear.Seq)]
		return !ok || w.CreateRev != c.CreateRev || !slices.Equal(w.Clear.Tasks, c.Clear.Tasks)
	})
}

func sameMarks(list []record.Unproven, want map[record.Ref]record.Unproven) bool {
	return len(list) == len(want) && !slices.ContainsFunc(list, func(m record.Unproven) bool {
		w, ok := want[record.TaskRef{Run: m.Run, Task: m.Task, Instance: m.Instance}.At(m.Attempt)]
		return !ok || w.Session != m.Session
	})
}
