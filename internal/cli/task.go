package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// taskName is a task with its instance.
func taskName(task, instance string) string {
	if instance == "" {
		return task
	}
	return task + "." + instance
}

// latest is a task's latest attempt, or nil.
func latest(t *writv1.TaskStatus) *writv1.Attempt {
	if n := len(t.GetAttempts()); n > 0 {
		return t.GetAttempts()[n-1]
	}
	return nil
}

// began is when an attempt began to run; where that was never written (a skip,
// or an end that overtook its start), when its row was made.
func began(at *writv1.Attempt) *timestamppb.Timestamp {
	var first *timestamppb.Timestamp
	for _, t := range at.GetTransitions() {
		if t.GetState() == "running" {
			return t.GetAt()
		}
		if first == nil {
			first = t.GetAt()
		}
	}
	return first
}

// attemptSpan is how long an attempt took, or has taken.
func attemptSpan(at *writv1.Attempt, now time.Time) string {
	switch {
	case at == nil || at.GetWorker() == "":
		return none
	case terminalTask(at.GetState()):
		return span(began(at), at.GetEnteredAt(), now)
	case at.GetState() == writv1.TaskState_TASK_STATE_RUNNING:
		return span(began(at), nil, now)
	default:
		return none
	}
}

// because is an attempt's cause in a few words.
func because(at *writv1.Attempt) string {
	c := at.GetCause()
	if c.GetText() != "" {
		return oneLine(c.GetText())
	}
	return c.GetCode()
}

// taskTable begins a table of tasks.
func taskTable() *table {
	return &table{head: []string{"TASK", "STATE", "TRY", "WORKER", "TOOK", "NOTE"}, right: []int{2, 4}}
}

// addTask adds one task; states gives the state of every task of the run.
func addTask(t *table, s *writv1.TaskStatus, states map[string]writv1.TaskState, now time.Time) {
	at := latest(s)
	state := taskState(s.GetState())
	try, worker := "", ""
	if at != nil {
		try, worker = strconv.Itoa(int(at.GetAttempt())), at.GetWorker()
	}
	t.rows = append(t.rows, []cell{
		{text: taskName(s.GetTask(), s.GetInstance())},
		{text: state, colour: stateColour(state)},
		{text: try},
		{text: worker},
		{text: attemptSpan(at, now)},
		{text: taskNote(s, states, now), colour: dim},
	})
}

// taskNote is what a person wants to know beyond a task's state.
func taskNote(s *writv1.TaskStatus, states map[string]writv1.TaskState, now time.Time) string {
	at := latest(s)
	switch {
	case at == nil:
		return openNeeds(s, states)
	case at.GetUnproven():
		return "its death is not proven; " + because(at)
	case at.GetState() == writv1.TaskState_TASK_STATE_QUEUED && at.GetIntent():
		return "sent" + afterFailure(s)
	case at.GetState() == writv1.TaskState_TASK_STATE_QUEUED:
		if wait := at.GetNotBefore().AsTime().Sub(now); at.GetNotBefore() != nil && wait > 0 {
			return "again in " + took(wait) + afterFailure(s)
		}
		return "waits for a slot" + afterFailure(s)
	case at.GetState() == writv1.TaskState_TASK_STATE_RUNNING:
		return strings.TrimSpace(afterFailure(s))
	case at.GetState() == writv1.TaskState_TASK_STATE_SUCCESS:
		return ""
	default:
		return because(at)
	}
}

// openNeeds names the needs that a task without an attempt waits for.
func openNeeds(s *writv1.TaskStatus, states map[string]writv1.TaskState) string {
	var open []string
	for _, n := range s.GetNeeds() {
		if !terminalTask(states[n]) {
			open = append(open, n)
		}
	}
	if len(open) == 0 {
		return ""
	}
	return "needs " + some(open, 3)
}

// afterFailure tells of the attempt before the latest one.
func afterFailure(s *writv1.TaskStatus) string {
	n := len(s.GetAttempts())
	if n < 2 {
		return ""
	}
	before := s.GetAttempts()[n-2]
	return fmt.Sprintf(" (attempt %d %s: %s)", before.GetAttempt(), taskState(before.GetState()), because(before))
}
