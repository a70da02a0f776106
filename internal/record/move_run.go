package record

import (
	"fmt"
	"slices"
	"time"
)

// RunStep is one line of the transition table of runs. A phase is told apart
// from the state by the two Phase fields.
type RunStep struct {
	From      RunState
	FromPhase Phase
	To        RunState
	ToPhase   Phase
	By        Actor
	Why       string
}

// RunTable is every transition of a run record. The guard is always the run at
// the revision seen; of a creation, that neither an active run nor an ended
// document has the id and that the workflow is as seen; of a reopening, the
// ended document at the revision seen and no active run.
func RunTable() []RunStep {
	none, ending, reopening := PhaseNone, PhaseEnding, PhaseReopening
	steps := []RunStep{
		{RunNone, none, RunRunning, none, API, "a run is made, no limit stands against it"},
		{RunNone, none, RunQueued, none, API, "a run is made, and waits for its turn"},
		{RunNone, none, RunRunning, none, Leader, "the timetable makes a run"},
		{RunNone, none, RunQueued, none, Leader, "the timetable makes a run"},
		{RunQueued, none, RunRunning, none, Leader, "its turn has come"},
		{RunRunning, none, RunSuccess, ending, Leader, "all tasks are terminal, none failed"},
		{RunRunning, none, RunFailed, ending, Leader, "all tasks are terminal, some failed"},
		{RunCancelling, none, RunCancelled, ending, Leader, "nothing of it lives any more"},
		{RunQueued, none, RunCancelling, none, Operator, "cancel"},
		{RunRunning, none, RunCancelling, none, Operator, "cancel"},
		{RunRunning, reopening, RunRunning, none, Leader, "all rows are restored"},
	}
	for _, s := range []RunState{RunQueued, RunRunning} {
		steps = append(steps, RunStep{s, none, s, none, Operator, "hold, release, clear, retry"})
	}
	for _, s := range []RunState{RunSuccess, RunFailed, RunCancelled} {
		steps = append(steps, RunStep{s, ending, RunRunning, reopening, Operator, "clear or retry of an ended run"})
	}
	return steps
}

// RunMove says what a transition of a run is to be.
type RunMove struct {
	To    RunState
	Phase Phase
	By    Actor
	Who   string
	At    time.Time
	Rule  Rule
	Term  int64
	Write WriteID
	Cause Cause
}

// Move returns the run after the step; fields that belong to the step beside
// the state (holds, pages, clears) are set by the caller on what it returns.
// It fails where the table knows no such transition.
func (r Run) Move(m RunMove) (Run, error) {
	known := slices.ContainsFunc(RunTable(), func(s RunStep) bool {
		return s.From == r.State && s.FromPhase == r.Phase && s.To == m.To && s.ToPhase == m.Phase && s.By == m.By
	})
	if !known {
		return r, fmt.Errorf("move run %s: there is no transition from %s to %s for %s",
			r.Run, runStage(r.State, r.Phase), runStage(m.To, m.Phase), m.By)
	}
	next := r
	if r.State != m.To {
		next.EnteredAt, next.Cause = m.At, m.Cause
	}
	next.State, next.Phase = m.To, m.Phase
	switch {
	case r.State == RunNone:
		next.CreatedAt = m.At
	case m.To.Terminal():
		next.EndedAt = m.At
	case r.State.Terminal():
		next.EndedAt = time.Time{}
	}
	if m.To == RunRunning && next.StartedAt.IsZero() {
		next.StartedAt = m.At
	}
	next.Transitions = append(slices.Clone(r.Transitions), Transition{
		State: string(m.To), At: m.At, Rule: m.Rule, By: m.Who, Term: m.Term, Write: m.Write,
	})
	if n := len(next.Transitions); n > MaxTransitions {
		next.Transitions = slices.Delete(next.Transitions, 1, 1+n-MaxTransitions)
	}
	return next, nil
}

func runStage(s RunState, p Phase) string {
	switch {
	case s == RunNone:
		return "none"
	case p == PhaseNone:
		return string(s)
	default:
		return string(s) + " (" + string(p) + ")"
	}
}
