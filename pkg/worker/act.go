package worker

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// do carries out what the agent asks for, in order.
func (l *life) do(actions []session.Action) {
	for _, act := range actions {
		a := l.attempts[act.Token]
		switch {
		case act.Act == session.SendUnknown:
			l.sendPhase(act.Token, nil, writv1.TokenPhase_TOKEN_PHASE_UNSPECIFIED)
		case a != nil:
			l.act(act, a)
		}
	}
}

func (l *life) act(act session.Action, a *attempt) {
	switch act.Act {
	case session.Begin:
		l.begin(act.Token, a)
	case session.Cancel, session.GiveUp:
		l.stop(a, ErrCancelled)
	case session.Fence:
		l.stop(a, ErrFenced)
	case session.Report:
		state := writv1.TaskState_TASK_STATE_FAILED
		if act.Cause == record.CauseCancelled {
			state = writv1.TaskState_TASK_STATE_CANCELLED
		}
		f := ended(a.assign, state, act.Cause, "it was never started")
		l.runs.Go(func() { l.finish(act.Token, f) })
	case session.Close:
		l.close(act.Token)
	case session.SendStarted:
		if a.assign.GetTask().GetIdempotent() {
			a.tell = max(1, l.now()+session.Instant(startedDelay))
			return
		}
		l.sendStarted(act.Token, a)
	case session.SendFinished:
		a.tell = 0
		if a.report != nil {
			l.send(&writv1.AttendRequest{Message: &writv1.AttendRequest_Finished{Finished: a.report}})
		}
	case session.SendPhase:
		phase, _ := l.agent.Phase(act.Token)
		l.sendPhase(act.Token, a.assign.GetAttempt(), toPhase(phase))
	case session.SendUnknown: // needs no attempt, see do
	}
}

// startedDelay is how old an idempotent attempt grows before it is told that
// it runs. Of one that ends sooner only the end is told: one write for two.
const startedDelay = 100 * time.Millisecond

// sendLate tells of the attempts that have grown old enough.
func (l *life) sendLate() {
	now := l.now()
	for t, a := range l.attempts {
		if a.tell != 0 && a.tell <= now {
			a.tell = 0
			l.sendStarted(t, a)
		}
	}
}

func (l *life) sendStarted(t record.Token, a *attempt) {
	l.send(&writv1.AttendRequest{Message: &writv1.AttendRequest_Started{Started: &writv1.Started{
		Token: string(t), Attempt: a.assign.GetAttempt(), Claim: !a.assign.GetTask().GetIdempotent(),
		At: timestamppb.New(time.Now().UTC()),
	}}})
}

func toPhase(p session.Phase) writv1.TokenPhase {
	switch p {
	case session.Assigned:
		return writv1.TokenPhase_TOKEN_PHASE_ASSIGNED
	case session.Running:
		return writv1.TokenPhase_TOKEN_PHASE_RUNNING
	case session.Unreported:
		return writv1.TokenPhase_TOKEN_PHASE_UNREPORTED
	default:
		return writv1.TokenPhase_TOKEN_PHASE_UNSPECIFIED
	}
}

// sendPhase answers a probe. Of a token that was never heard of, the name is
// that of the question.
func (l *life) sendPhase(t record.Token, name *writv1.AttemptRef, phase writv1.TokenPhase) {
	if name == nil {
		name = l.asked
	}
	l.send(&writv1.AttendRequest{Message: &writv1.AttendRequest_ProbeAnswer{ProbeAnswer: &writv1.ProbeAnswer{
		Token: string(t), Attempt: name, Phase: phase,
	}}})
}

// begin executes an attempt, beside the loop. A handler that ends its goroutine
// leaves no outcome.
func (l *life) begin(t record.Token, a *attempt) {
	ctx, stop := context.WithCancelCause(l.calm)
	a.stop = stop
	var fence time.Duration
	if as := a.assign.GetTask(); !as.GetIdempotent() && as.GetOnLost() == writv1.OnLost_ON_LOST_RETRY {
		fence = time.Duration(l.agent.Deadline())
	}
	l.running.Add(1)
	l.runs.Go(func() {
		var f *writv1.Finished
		defer func() {
			if f == nil {
				f = ended(a.assign, writv1.TaskState_TASK_STATE_FAILED, record.CauseHandlerPanic, "the handler's goroutine ended")
			}
			stop(nil)
			l.running.Add(-1)
			l.finish(t, f)
		}()
		f = l.execute(ctx, a.assign, fence)
	})
}

func (l *life) stop(a *attempt, cause error) {
	if a.stop != nil {
		a.stop(cause)
	}
}

// finish keeps a report and then hands it to the loop. It is called beside the
// loop: a disk may be slow.
func (l *life) finish(t record.Token, f *writv1.Finished) {
	f.Session = l.state.session
	if f.Cause != nil {
		f.Cause.Text = strings.ToValidUTF8(f.GetCause().GetText(), "�")
	}
	if err := l.state.keep(f); err != nil {
		l.config.Logger.Error("a report is not on disk and would not survive a restart", "attempt", name(f.GetAttempt()), "error", err)
	}
	l.events <- func() {
		if a := l.attempts[t]; a != nil {
			a.report = f
		}
		l.do(l.agent.Ended(t, l.now()))
	}
}

// close lets go of an attempt.
func (l *life) close(t record.Token) {
	a := l.attempts[t]
	delete(l.attempts, t)
	if err := l.state.drop(string(t)); err != nil {
		l.config.Logger.Warn("a report that was answered stays on disk", "error", err)
	}
	if p := l.config.Processes; p != nil && p.Forget != nil && a.assign.GetTask().GetHandler() == "" {
		p.Forget(string(t))
	}
}

// hear takes what the server says on the stream that counts.
func (l *life) hear(m *writv1.AttendResponse) {
	switch m := m.GetMessage().(type) {
	case *writv1.AttendResponse_Assign:
		l.assigned(m.Assign)
	case *writv1.AttendResponse_StartedAck:
		if !m.StartedAck.GetGo() {
			l.config.Logger.Info("an attempt may not run", "token", m.StartedAck.GetToken(), "why", m.StartedAck.GetWhy())
		}
		l.do(l.agent.Answered(record.Token(m.StartedAck.GetToken()), m.StartedAck.GetGo(), l.now()))
	case *writv1.AttendResponse_FinishedAck:
		l.answered(m.FinishedAck)
	case *writv1.AttendResponse_Cancel:
		l.asked = m.Cancel.GetAttempt()
		l.do(l.agent.Cancelled(record.Token(m.Cancel.GetToken()), l.now()))
	case *writv1.AttendResponse_Probe:
		l.asked = m.Probe.GetAttempt()
		l.do(l.agent.Probed(record.Token(m.Probe.GetToken())))
	default: // of a newer server; what matters is asked again in words that are known
	}
}

// assigned takes an attempt.
func (l *life) assigned(m *writv1.Assign) {
	if !usable(m.GetToken()) {
		l.config.Logger.Error("an assignment is ignored: its token is not one", "attempt", name(m.GetAttempt()), "token", m.GetToken())
		return
	}
	t := record.Token(m.GetToken())
	task := m.GetTask()
	as := session.Assignment{
		Token: t, Idempotent: task.GetIdempotent(),
		Ref: record.TaskRef{
			Run: record.RunID(m.GetAttempt().GetRun()), Task: record.TaskID(m.GetAttempt().GetTask()), Instance: record.Instance(m.GetAttempt().GetInstance()),
		}.At(int(m.GetAttempt().GetAttempt())),
	}
	if !as.Idempotent && task.GetOnLost() == writv1.OnLost_ON_LOST_RETRY {
		as.OnLost = record.OnLostRetry
	}
	if l.attempts[t] == nil {
		l.attempts[t] = &attempt{assign: m}
	}
	l.asked = m.GetAttempt()
	l.do(l.agent.Assign(as, l.now()))
	if _, held := l.agent.Phase(t); !held {
		delete(l.attempts, t)
	}
}

// answered takes the answer to a report, of this session or an earlier one.
func (l *life) answered(m *writv1.FinishedAck) {
	if m.GetAnswer() != writv1.FinishedAnswer_FINISHED_ANSWER_ACCEPTED {
		l.config.Logger.Warn("a report was not taken", "token", m.GetToken(), "answer", m.GetAnswer().String(), "why", m.GetWhy())
	}
	if l.legacy[m.GetToken()] == nil {
		l.do(l.agent.Settled(record.Token(m.GetToken())))
		return
	}
	delete(l.legacy, m.GetToken())
	if err := l.state.drop(m.GetToken()); err != nil {
		l.config.Logger.Warn("a report that was answered stays on disk", "error", err)
	}
	if p := l.config.Processes; p != nil && p.Forget != nil {
		p.Forget(m.GetToken())
	}
	l.settleLegacy()
}

// resendLegacy sends what earlier sessions left, again and again.
func (l *life) resendLegacy() {
	if l.link == nil || l.now()-l.legacyAt < session.Instant(5*time.Second) {
		return
	}
	l.legacyAt = l.now()
	for _, f := range l.legacy {
		l.send(&writv1.AttendRequest{Message: &writv1.AttendRequest_Finished{Finished: f}})
	}
}

// settleLegacy says that nothing of earlier sessions is left to be answered.
func (l *life) settleLegacy() {
	if l.link == nil || l.link == l.settledOn || len(l.legacy) > 0 || l.unsettled == 0 {
		return
	}
	said := l.send(&writv1.AttendRequest{Message: &writv1.AttendRequest_Settled{Settled: &writv1.Settled{Predecessor: l.state.before.name()}}})
	if said {
		l.settledOn = l.link
	}
}

// usable says that a token can name a file.
func usable(token string) bool {
	return token != "" && len(token) <= 128 && !strings.ContainsFunc(token, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
