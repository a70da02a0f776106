package reconcile

import (
	"container/heap"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// Agenda keeps the alarms of passes until they are due. The zero value is
// empty. Alarms of what has moved on meanwhile do no harm: a pass that finds
// nothing to do does nothing.
type Agenda struct {
	list  alarms
	noted map[Alarm]struct{}
}

// Note keeps the alarms of a pass.
func (a *Agenda) Note(r Result) {
	if a.noted == nil {
		a.noted = map[Alarm]struct{}{}
	}
	for _, alarm := range r.Alarms {
		if _, ok := a.noted[alarm]; !ok {
			a.noted[alarm] = struct{}{}
			heap.Push(&a.list, alarm)
		}
	}
}

// Next is when the first alarm is due; ok is false without one.
func (a *Agenda) Next() (at time.Time, ok bool) {
	if len(a.list) == 0 {
		return time.Time{}, false
	}
	return a.list[0].At, true
}

// Due takes the alarms that are due and returns what to look at.
func (a *Agenda) Due(now time.Time) view.Touched {
	var due []Alarm
	for len(a.list) > 0 && !a.list[0].At.After(now) {
		alarm, ok := heap.Pop(&a.list).(Alarm)
		if ok {
			delete(a.noted, alarm)
			due = append(due, alarm)
		}
	}
	return touch(due)
}

func touch(due []Alarm) view.Touched {
	var t view.Touched
	for _, a := range due {
		one := view.Touched{}
		switch {
		case a.Task.Task != "":
			one.Tasks = []record.TaskRef{a.Task}
		case a.Run != "":
			one.Runs = []record.RunID{a.Run}
		default:
			one.Sessions = []view.SessionRef{a.Session}
		}
		t = t.Merge(one)
	}
	return t
}

type alarms []Alarm

// Len implements heap.Interface.
func (l alarms) Len() int { return len(l) }

// Less implements heap.Interface.
func (l alarms) Less(i, j int) bool { return l[i].At.Before(l[j].At) }

// Swap implements heap.Interface.
func (l alarms) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push implements heap.Interface.
func (l *alarms) Push(x any) {
	if a, ok := x.(Alarm); ok {
		*l = append(*l, a)
	}
}

// Pop implements heap.Interface.
func (l *alarms) Pop() any {
	old := *l
	a := old[len(old)-1]
	*l = old[:len(old)-1]
	return a
}
