package api

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// none is the word for tasks without an attempt, where tasks are counted.
const none = "none"

// Records spell states and kinds in the order in which the protocol numbers
// them, from 1.

func toRunState(s record.RunState) writv1.RunState {
	return writv1.RunState(slices.Index(record.RunStates(), s) + 1)
}

func toTaskState(s record.AttemptState) writv1.TaskState {
	return writv1.TaskState(slices.Index(record.AttemptStates(), s) + 1)
}

func toKind(k record.Kind) writv1.AttemptKind {
	return writv1.AttemptKind(slices.Index([]record.Kind{record.KindExec, record.KindWait, record.KindChild}, k) + 1)
}

// toTime leaves out an instant that is not there.
func toTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func toHold(h *record.Hold) *writv1.Hold {
	if h == nil {
		return nil
	}
	return &writv1.Hold{By: h.By, At: toTime(h.At), Why: h.Why}
}

func toCause(c record.Cause) *writv1.Cause {
	if c == (record.Cause{}) {
		return nil
	}
	return &writv1.Cause{Code: string(c.Code), Text: c.Text}
}

func toTransitions(list []record.Transition) []*writv1.Transition {
	out := make([]*writv1.Transition, 0, len(list))
	for _, t := range list {
		out = append(out, &writv1.Transition{State: t.State, At: toTime(t.At), Rule: string(t.Rule), By: t.By, Term: t.Term})
	}
	return out
}

// toRun is a run record; tasks counts its tasks and may be nil.
func toRun(r record.Run, modRev int64, tasks map[record.AttemptState]int) *writv1.Run {
	return &writv1.Run{
		Run: string(r.Run), Workflow: string(r.Workflow), Revision: int32(r.Revision), State: toRunState(r.State), Phase: string(r.Phase),
		CreatedAt: toTime(r.CreatedAt), StartedAt: toTime(r.StartedAt), EndedAt: toTime(r.EndedAt), EnteredAt: toTime(r.EnteredAt),
		Trigger: string(r.Trigger), By: r.By, LogicalDate: toTime(r.LogicalDate), Round: int32(r.Round),
		Paused: toHold(r.Paused), Cancelling: toHold(r.Cancelling), Cause: toCause(r.Cause),
		Tasks: toCounts(tasks), Transitions: toTransitions(r.Transitions), ModRevision: modRev,
	}
}

func toCounts(tasks map[record.AttemptState]int) map[string]int32 {
	out := make(map[string]int32, len(tasks))
	for s, n := range tasks {
		out[cmp.Or(string(s), none)] = int32(n)
	}
	return out
}

// toLine is what the index tells of an ended run.
func toLine(l record.IndexLine) *writv1.Run {
	return &writv1.Run{
		Run: string(l.Run), Workflow: string(l.Workflow), Revision: int32(l.Revision), State: toRunState(l.State),
		CreatedAt: toTime(l.CreatedAt), StartedAt: toTime(l.StartedAt), EndedAt: toTime(l.EndedAt), EnteredAt: toTime(l.EndedAt),
		Trigger: string(l.Trigger), LogicalDate: toTime(l.LogicalDate), Tasks: toCounts(l.Tasks),
	}
}

// toAttempt is a row. Its token is nobody's business.
func toAttempt(row view.Row) *writv1.Attempt {
	a := row.Attempt
	m := &writv1.Attempt{
		Task: string(a.Task), Instance: string(a.Instance), Attempt: int32(a.Attempt), Kind: toKind(a.Kind), State: toTaskState(a.State),
		EnteredAt: toTime(a.EnteredAt), NotBefore: toTime(a.NotBefore), Worker: string(a.Worker), Session: string(a.Session),
		Queue: string(a.Queue), Idempotent: a.Idempotent, OnLost: string(a.OnLost), Cause: toCause(a.Cause),
		ResultBytes: int32(a.ResultBytes), Unproven: a.Unproven, Transitions: toTransitions(a.Transitions),
		CreateRevision: row.CreateRev, ModRevision: row.ModRev, Intent: a.Intent(),
	}
	if a.Exit != nil {
		m.Exit = &writv1.Exit{Code: int32(a.Exit.Code), Signal: a.Exit.Signal}
	}
	return m
}

// toStatus is one task with its attempts, those under a clear included.
func toStatus(t *view.Task) *writv1.TaskStatus {
	m := &writv1.TaskStatus{
		Task: string(t.Ref.Task), Instance: string(t.Ref.Instance), State: toTaskState(t.State()), Needs: texts[string](t.Spec.Needs),
	}
	for _, row := range t.Rows() {
		m.Attempts = append(m.Attempts, toAttempt(row))
	}
	return m
}

func toWorker(w record.Worker, used int, replica record.ReplicaID) *writv1.WorkerStatus {
	return &writv1.WorkerStatus{
		Worker: string(w.Worker), Session: string(w.Session), Host: w.Host, Slots: int32(w.Slots), Used: int32(used),
		Queues: texts[string](w.Queues), Handlers: slices.Clone(w.Handlers), Processes: w.Processes, Draining: toHold(w.Draining),
		RegisteredAt: toTime(w.RegisteredAt), Replica: string(replica), Ttl: toDuration(w.TTL),
	}
}
