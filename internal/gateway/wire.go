package gateway

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// Protocol is the number of the worker protocol.
const Protocol = 1

// Bounds of what a worker may say.
const (
	maxSlots    = 10_000
	maxNames    = 1_000 // queues, handlers
	maxLabels   = 100
	maxHeld     = 20_000
	maxText     = 256
	maxResult   = 64 << 10
	maxTokenLen = 64
)

// hello reads a Hello; the error says what is wrong with it.
func hello(m *writv1.Hello) (session.Hello, error) {
	h := session.Hello{
		Worker: record.WorkerName(m.GetWorker()), Session: record.SessionID(m.GetSession()), Stream: m.GetStream(),
		Predecessor: record.SessionID(m.GetPredecessor()), Attested: m.GetAttested(), Unsettled: int(m.GetUnsettled()),
		Slots: int(m.GetSlots()), Labels: m.GetLabels(), Handlers: m.GetHandlers(), Processes: m.GetProcesses(),
		Host: m.GetHost(), Protocol: int(m.GetProtocol()), Draining: m.GetDraining(),
	}
	if m.GetProtocol() != Protocol {
		return h, fmt.Errorf("protocol %d: expected %d (hint: worker and server are of versions that do not fit)", m.GetProtocol(), Protocol)
	}
	if err := record.CheckName(m.GetWorker(), record.MaxName); err != nil {
		return h, fmt.Errorf("worker: %w", err)
	}
	if err := record.CheckName(m.GetSession(), record.MaxName); err != nil {
		return h, fmt.Errorf("session: %w", err)
	}
	if m.GetPredecessor() != "" {
		if err := record.CheckName(m.GetPredecessor(), record.MaxName); err != nil {
			return h, fmt.Errorf("predecessor: %w", err)
		}
	}
	for _, q := range m.GetQueues() {
		if err := record.CheckName(q, record.MaxName); err != nil {
			return h, fmt.Errorf("queue: %w", err)
		}
		h.Queues = append(h.Queues, record.Queue(q))
	}
	return h, checkBounds(m)
}

// checkBounds holds a Hello against what one session may say.
func checkBounds(m *writv1.Hello) error {
	switch {
	case m.GetStream() < 1:
		return fmt.Errorf("stream %d: expected a number from 1 on", m.GetStream())
	case m.GetSlots() < 1 || m.GetSlots() > maxSlots:
		return fmt.Errorf("slots %d: expected 1 to %d", m.GetSlots(), maxSlots)
	case len(m.GetQueues()) == 0 || len(m.GetQueues()) > maxNames:
		return fmt.Errorf("%d queues: expected 1 to %d", len(m.GetQueues()), maxNames)
	case len(m.GetHandlers()) > maxNames || len(m.GetLabels()) > maxLabels || len(m.GetHeld()) > maxHeld:
		return fmt.Errorf("%d handlers, %d labels, %d tokens: expected at most %d, %d, %d",
			len(m.GetHandlers()), len(m.GetLabels()), len(m.GetHeld()), maxNames, maxLabels, maxHeld)
	case len(m.GetHost()) > maxText:
		return fmt.Errorf("host of %d bytes: expected at most %d", len(m.GetHost()), maxText)
	case m.GetUnsettled() < 0:
		return fmt.Errorf("unsettled %d: expected 0 or more", m.GetUnsettled())
	}
	size := 0
	for k, v := range m.GetLabels() {
		size += len(k) + len(v)
	}
	for _, name := range m.GetHandlers() {
		size += len(name)
	}
	// A registration is read with every compare of it (see record's sizes).
	if limit := 64 << 10; size > limit {
		return fmt.Errorf("labels and handlers of %d bytes: expected at most %d", size, limit)
	}
	return nil
}

// ref reads the name of an attempt.
func ref(m *writv1.AttemptRef) (record.Ref, error) {
	r := record.TaskRef{Run: record.RunID(m.GetRun()), Task: record.TaskID(m.GetTask()), Instance: record.Instance(m.GetInstance())}.
		At(int(m.GetAttempt()))
	if err := r.Run.Check(); err != nil {
		return r, err
	}
	if _, _, err := record.ParseTaskName(r.Name()); err != nil {
		return r, err
	}
	if r.N < 1 {
		return r, fmt.Errorf("attempt %d of %s: expected a number from 1 on", r.N, r.TaskRef)
	}
	return r, nil
}

// token reads a token.
func token(s string) (record.Token, error) {
	if s == "" || len(s) > maxTokenLen {
		return "", fmt.Errorf("token of %d characters: expected 1 to %d", len(s), maxTokenLen)
	}
	return record.Token(s), nil
}

// finished reads a report of an end; own is the session of the stream.
func finished(m *writv1.Finished, own record.SessionID, now time.Time) (session.Finished, error) {
	f := session.Finished{
		Token: record.Token(m.GetToken()), Session: own, Result: m.GetResult(), At: now,
		Cause: record.Because(record.CauseCode(m.GetCause().GetCode()), m.GetCause().GetText()),
	}
	if m.GetSession() != "" {
		f.Session = record.SessionID(m.GetSession())
	}
	if m.GetEndedAt().IsValid() {
		f.At = m.GetEndedAt().AsTime()
	}
	if e := m.GetExit(); e != nil {
		f.Exit = &record.Exit{Code: int(e.GetCode()), Signal: e.GetSignal()}
	}
	switch m.GetState() {
	case writv1.TaskState_TASK_STATE_SUCCESS:
		f.State = record.Success
	case writv1.TaskState_TASK_STATE_FAILED:
		f.State = record.Failed
	case writv1.TaskState_TASK_STATE_SKIPPED:
		f.State = record.Skipped
	case writv1.TaskState_TASK_STATE_CANCELLED:
		f.State = record.Cancelled
	default:
		return f, fmt.Errorf("state %s: expected success, failed, skipped or cancelled", m.GetState())
	}
	switch {
	case len(m.GetCause().GetCode()) > maxText || f.State == record.Failed && f.Cause.Code == record.CauseNone:
		return f, fmt.Errorf("a failed attempt needs a cause of at most %d bytes", maxText)
	case len(f.Result) > maxResult:
		return f, fmt.Errorf("result of %d bytes: expected at most %d", len(f.Result), maxResult)
	case f.Exit != nil && len(f.Exit.Signal) > maxText:
		return f, fmt.Errorf("signal of %d bytes: expected at most %d", len(f.Exit.Signal), maxText)
	}
	return f, nil
}

// toRef writes the name of an attempt.
func toRef(r record.Ref) *writv1.AttemptRef {
	return &writv1.AttemptRef{Run: string(r.Run), Task: string(r.Task), Instance: string(r.Instance), Attempt: int32(r.N)}
}

// assign writes an assignment; the parameters are added by the caller.
func assign(r *view.Run, t *view.Task, row view.Row) *writv1.Assign {
	m := &writv1.Assign{
		Token: string(row.Token), Attempt: toRef(row.Ref()), Kind: writv1.AttemptKind_ATTEMPT_KIND_EXEC, Task: toTask(t.Spec),
		Fence: row.FirstRev(), Workflow: string(r.Record.Workflow), Revision: int32(r.Record.Revision),
	}
	if !r.Record.LogicalDate.IsZero() {
		m.LogicalDate = timestamppb.New(r.Record.LogicalDate)
	}
	for _, i := range r.Graph.Up(t.Index) {
		up := r.At(i)
		if latest, ok := up.Latest(); ok && latest.State == record.Success {
			m.Inputs = append(m.Inputs, toRef(latest.Ref()))
		}
	}
	return m
}

// toTask writes what a worker needs of a task.
func toTask(t *spec.Task) *writv1.Task {
	m := &writv1.Task{
		Id: string(t.ID), Run: t.Run, Command: t.Command, Handler: t.Handler, Input: t.Input, Idempotent: t.Idempotent,
		OnLost: toOnLost(t.Lost()), Env: t.Env, Cwd: t.Cwd, Queue: string(t.QueueName()),
	}
	if t.Timeout > 0 {
		m.Timeout = durationpb.New(t.Timeout.Std())
	}
	if t.SkipExitCode != nil {
		code := int32(*t.SkipExitCode)
		m.SkipExitCode = &code
	}
	for _, code := range slices.Clone(t.NoRetryExitCodes) {
		m.NoRetryExitCodes = append(m.NoRetryExitCodes, int32(code))
	}
	return m
}

func toOnLost(o record.OnLost) writv1.OnLost {
	switch o {
	case record.OnLostWait:
		return writv1.OnLost_ON_LOST_WAIT
	case record.OnLostRetry:
		return writv1.OnLost_ON_LOST_RETRY
	case record.OnLostFail:
		return writv1.OnLost_ON_LOST_FAIL
	default:
		return writv1.OnLost_ON_LOST_UNSPECIFIED
	}
}
