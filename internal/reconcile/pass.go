package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// Turn is what a pass is given beside the view.
type Turn struct {
	// Now is the caller's clock.
	Now    time.Time
	Stamp  Stamp
	Policy Policy
	// Busy is what has a commit in flight; nil means nothing.
	Busy *Busy
	// Vigil times the fence waits; without one none of them ever ends.
	Vigil *Vigil
	// HoldLosses is set while so many sessions went at once that the store is
	// to blame, not the workers: nothing is declared lost.
	HoldLosses bool
	// HoldDue is set while the caller's clock is ahead of its peers': no due
	// time counts as reached.
	HoldDue bool
}

// Result is what a pass found. All lists are in a fixed order that depends on
// the view alone.
type Result struct {
	// Changes are to be committed, in any order.
	Changes []record.Change
	// Ready are the visited tasks that may be dispatched now, and Idle the
	// visited tasks that may not: together they bring a backlog up to date.
	Ready []view.Ready
	Idle  []record.TaskRef
	// Gone are touched runs that are not there any more.
	Gone []record.RunID
	// Ending and Reopening are visited runs in that phase: their documents are
	// to be written, or read and restored, by the caller.
	Ending    []record.RunID
	Reopening []record.RunID
	// Waits say what the visited tasks wait for, where something other than
	// the run's own progress ends it.
	Waits []Wait
	// Alarms are times at which to look again, whatever happens (see Agenda).
	Alarms []Alarm
	// Wake is the first of the alarms; zero without one.
	Wake time.Time
	// Faults are records that no rule could make sense of.
	Faults []error
	// Visited counts the tasks that were looked at.
	Visited int
}

// Pass asks the rules about everything that was touched. Its cost is
// proportional to the tasks touched and those directly below them.
func Pass(v *view.Active, touched view.Touched, turn Turn) Result {
	p := &pass{v: v, turn: turn, admitted: map[record.WorkflowName]bool{}}
	s := p.gather(touched)
	for _, ref := range s.sessions {
		p.session(ref)
	}
	for _, w := range s.workflows {
		p.admit(w)
	}
	for _, id := range s.runs {
		p.run(id, s.tasks[id])
	}
	for _, a := range p.res.Alarms {
		if p.res.Wake.IsZero() || a.At.Before(p.res.Wake) {
			p.res.Wake = a.At
		}
	}
	return p.res
}

type pass struct {
	v        *view.Active
	turn     Turn
	res      Result
	count    int // of changes, for write ids
	admitted map[record.WorkflowName]bool
}

// scope is what a pass visits.
type scope struct {
	sessions  []view.SessionRef
	workflows []record.WorkflowName
	runs      []record.RunID
	tasks     map[record.RunID]*span
}

// span is the part of a run that is visited: all of it, or some tasks.
type span struct {
	all  bool
	some []record.TaskRef
}

func (s *scope) span(id record.RunID) *span {
	sp, ok := s.tasks[id]
	if !ok {
		sp = &span{}
		s.tasks[id] = sp
		s.runs = append(s.runs, id)
	}
	return sp
}

func (s *scope) task(ref record.TaskRef) {
	sp := s.span(ref.Run)
	sp.some = append(sp.some, ref)
}

// gather turns what was touched into what is to be visited: of a session, the
// tasks whose rows and marks name it.
func (p *pass) gather(t view.Touched) *scope {
	s := &scope{tasks: map[record.RunID]*span{}, sessions: t.Sessions, workflows: t.Workflows}
	if t.Full {
		p.everything(s)
	}
	for _, id := range t.Runs {
		s.span(id).all = true
	}
	for _, id := range t.Counted {
		s.span(id)
	}
	for _, list := range [][]record.TaskRef{t.Tasks, t.Below} {
		for _, ref := range list {
			s.task(ref)
		}
	}
	for _, ref := range s.sessions {
		for _, row := range p.v.Held(ref) {
			s.task(row.TaskRef())
		}
		for _, m := range p.v.MarkedBy(ref) {
			s.task(m.Ref().TaskRef)
		}
	}
	slices.Sort(s.runs)
	return s
}

func (p *pass) everything(s *scope) {
	seen := map[view.SessionRef]bool{}
	for _, kept := range p.v.Sessions() {
		seen[view.SessionRef{Worker: kept.Record.Worker, Session: kept.Record.Session}] = true
	}
	s.workflows = nil
	for _, r := range p.v.Runs() {
		s.span(r.ID()).all = true
		s.workflows = append(s.workflows, r.Record.Workflow)
	}
	for _, ref := range p.v.Holding() {
		seen[ref] = true
	}
	s.sessions = nil
	for ref := range seen {
		s.sessions = append(s.sessions, ref)
	}
	slices.SortFunc(s.sessions, view.SessionRef.Compare)
	slices.Sort(s.workflows)
	s.workflows = slices.Compact(s.workflows)
}

// run asks the rules about the visited tasks of one run, and then about the
// run itself.
func (p *pass) run(id record.RunID, sp *span) {
	r, ok := p.v.Run(id)
	if !ok {
		p.res.Gone = append(p.res.Gone, id)
		return
	}
	for _, t := range visited(r, sp) {
		p.res.Visited++
		d := p.decide(r, t)
		p.take(r, t, d)
	}
	p.close(r)
}

// visited lists the tasks of a span in the order of the graph, each once.
func visited(r *view.Run, sp *span) []*view.Task {
	var list []*view.Task
	if sp.all {
		for t := range r.Tasks() {
			list = append(list, t)
		}
		return list
	}
	for _, ref := range sp.some {
		if t, ok := r.Task(ref); ok {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *view.Task) int { return cmp.Compare(a.Index, b.Index) })
	return slices.Compact(list)
}

// take books what was decided about a task.
func (p *pass) take(r *view.Run, t *view.Task, d Verdict) {
	p.prove(r, t)
	if d.Wait.Reason != ReasonReady {
		p.res.Idle = append(p.res.Idle, t.Ref)
	}
	switch {
	case d.Err != nil:
		p.res.Faults = append(p.res.Faults, fmt.Errorf("decide %s at revision %d: %w", t.Ref, p.v.Rev(), d.Err))
	case d.Change != nil:
		p.res.Changes = append(p.res.Changes, *d.Change)
	case d.Wait.Reason == ReasonReady:
		p.res.Ready = append(p.res.Ready, d.Ready)
	}
	if d.Change == nil && d.Wait.standing() {
		p.res.Waits = append(p.res.Waits, d.Wait)
	}
	if !d.Wait.Until.IsZero() {
		p.alarm(Alarm{At: d.Wait.Until, Task: t.Ref})
	}
}

func (p *pass) alarm(a Alarm) { p.res.Alarms = append(p.res.Alarms, a) }

// write makes the next write id of the pass.
func (p *pass) write() record.WriteID {
	p.count++
	return p.turn.Stamp.write(p.count)
}
