package audit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/writ-sched/writ/internal/record"
)

// sessionRef names a session of a worker.
type sessionRef struct {
	worker  record.WorkerName
	session record.SessionID
}

// session is what limits a session, and what it holds.
type session struct {
	alive       bool
	slots, live int
}

// pool is what limits a pool, and what is taken of it.
type pool struct {
	known       bool
	slots, live int
}

// date is what a scheduled run is for, once.
type date struct {
	workflow record.WorkflowName
	at       int64
	round    int
}

func (a *Auditor) session(ref sessionRef) *session {
	if a.sessions[ref] == nil {
		a.sessions[ref] = &session{}
	}
	return a.sessions[ref]
}

func (a *Auditor) pool(p record.Pool) *pool {
	if a.pools[p] == nil {
		a.pools[p] = &pool{}
	}
	return a.pools[p]
}

// occupies says that a run counts against max_active_runs.
func occupies(r record.Run) bool {
	return r.State == record.RunRunning || r.State == record.RunCancelling
}

func (a *Auditor) applyRun(s *step, e record.Event) error {
	v, put, err := value[record.Run](e)
	if err != nil {
		return err
	}
	r := a.shell(e.Key.Run)
	if err := s.unbroken(e, r.create); err != nil {
		return err
	}
	c := runChange{key: e.Key, run: r, before: r.rec, had: r.here(), after: v, has: put}
	s.runs = append(s.runs, c)
	if c.had && occupies(c.before) {
		a.active[r.id.Workflow()]--
	}
	r.rec, r.create, r.mod = v, e.CreateRev, e.ModRev
	if !put {
		r.create, r.mod = 0, 0
		return nil
	}
	if occupies(v) {
		a.active[r.id.Workflow()]++
	}
	r.flow = a.flows[revisionRef{v.Workflow, v.Revision}]
	a.meet(v.Transitions)
	return nil
}

// meet notes the terms of leaders that wrote transitions.
func (a *Auditor) meet(list []record.Transition) {
	if n := len(list); n > 0 && list[n-1].Term != 0 {
		a.terms[list[n-1].Term] = true
	}
}

func (a *Auditor) applyRow(s *step, e record.Event) error {
	v, put, err := value[record.Attempt](e)
	if err != nil {
		return err
	}
	r := a.shell(e.Key.Run)
	ref := record.TaskRef{Run: e.Key.Run, Task: e.Key.Task, Instance: e.Key.Instance}
	t, n := r.tasks[ref], int(e.Key.N)
	if t == nil {
		t = &task{rows: map[int]row{}}
		r.tasks[ref] = t
	}
	r.fanned[ref.Task] = r.fanned[ref.Task] || ref.Instance != ""
	before := t.rows[n]
	if err := s.unbroken(e, before.create); err != nil {
		return err
	}
	after := row{Attempt: v, create: e.CreateRev, mod: e.ModRev}
	a.occupy(before, -1)
	if put {
		a.occupy(after, +1)
		t.rows[n], t.last = after, max(t.last, n)
		r.rows += bit(!before.here())
	} else {
		after = row{}
		delete(t.rows, n)
		r.rows--
	}
	s.rows = append(s.rows, rowChange{key: e.Key, run: r, before: before, after: after})
	return nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// occupy counts a live row in its session and pool.
func (a *Auditor) occupy(w row, by int) {
	if !w.here() || w.Token == "" || w.State.Terminal() {
		return
	}
	a.session(sessionRef{w.Worker, w.Session}).live += by
	if w.Pool != "" {
		a.pool(w.Pool).live += by
	}
}

func (a *Auditor) applyClear(e record.Event) error {
	v, put, err := value[record.Clear](e)
	if err != nil {
		return err
	}
	r := a.shell(e.Key.Run)
	if !put {
		delete(r.clears, e.Key.N)
		return nil
	}
	rev := cmp.Or(v.Rev, e.CreateRev)
	if _, known := r.clears[e.Key.N]; !known && v.Rev == 0 {
		a.sum.Clears++
	}
	r.clears[e.Key.N] = record.EndedClear{Clear: v, CreateRev: rev}
	for _, t := range v.Tasks {
		r.cover[t] = max(r.cover[t], rev)
	}
	return nil
}

func (a *Auditor) applyMark(e record.Event) error {
	v, put, err := value[record.Unproven](e)
	if err != nil {
		return err
	}
	r := a.shell(e.Key.Run)
	ref := refOf(e.Key)
	if !put {
		delete(r.marks, ref)
		return nil
	}
	r.marks[ref] = v
	return nil
}

// refOf is the attempt that a key of a row, mark or result names.
func refOf(k record.Key) record.Ref {
	return record.TaskRef{Run: k.Run, Task: k.Task, Instance: k.Instance}.At(int(k.N))
}

func (a *Auditor) applySession(e record.Event) error {
	ref := sessionRef{record.WorkerName(e.Key.Name), e.Key.Session}
	if e.Key.Family == record.FamilyWorker {
		v, put, err := value[record.Worker](e)
		if err != nil {
			return err
		}
		k := a.session(ref)
		k.alive, k.slots = put, v.Slots
		return nil
	}
	v, put, err := value[record.Session](e)
	if err != nil || !put {
		return err
	}
	a.session(ref)
	if v.Successor != "" {
		a.heirs[v.Session] = v.Successor
	}
	if v.Predecessor != "" {
		a.heirs[v.Predecessor] = v.Session
	}
	return nil
}

// speaksFor says that a session may report on the attempts of another: it is
// the same, or its successor.
func (a *Auditor) speaksFor(by, of record.SessionID) bool {
	// Successors make no circle, but a broken store might.
	for range len(a.heirs) + 1 {
		if by == of {
			return true
		}
		next, ok := a.heirs[of]
		if !ok {
			return false
		}
		of = next
	}
	return false
}

func (a *Auditor) applyPool(e record.Event) error {
	v, put, err := value[record.PoolLimit](e)
	if err != nil {
		return err
	}
	p := a.pool(record.Pool(e.Key.Name))
	p.known, p.slots = put, v.Slots
	return nil
}

func (a *Auditor) applyHolder(s *step, e record.Event) error {
	v, put, err := value[record.Holder](e)
	if err != nil {
		return err
	}
	if put {
		s.holders = append(s.holders, e.Key)
		if old, ok := a.holders[e.Key]; ok && old.Attempt != v.Attempt {
			a.breach("I12", s.rev, e.Key, "the place is taken from %s for %s, expected it to be empty", old.Attempt, v.Attempt)
		}
		a.holders[e.Key] = v
		return nil
	}
	if old, ok := a.holders[e.Key]; ok {
		s.freed = append(s.freed, old)
		delete(a.holders, e.Key)
	}
	return nil
}

func (a *Auditor) applyEnded(e record.Event) error {
	if e.Key.Family == record.FamilyPage {
		v, put, err := value[record.EndedPage](e)
		if err != nil || !put {
			return err
		}
		if a.pages[e.Key.Run] == nil {
			a.pages[e.Key.Run] = map[int]record.EndedPage{}
		}
		a.pages[e.Key.Run][e.Key.Part] = v
		return nil
	}
	v, put, err := value[record.Ended](e)
	if err != nil {
		return err
	}
	if !put {
		delete(a.retained, e.Key.Run)
		return nil
	}
	a.heads, a.retained[e.Key.Run] = true, true
	pages := a.pages[e.Key.Run]
	delete(a.pages, e.Key.Run)
	list := make([]record.EndedPage, 0, len(pages))
	for _, n := range slices.Sorted(maps.Keys(pages)) {
		list = append(list, pages[n])
	}
	a.docs = append(a.docs, document{head: v, pages: list, rev: e.ModRev})
	a.knowAll(list)
	return nil
}
