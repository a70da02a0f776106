package record

import (
	"fmt"
	"slices"
	"time"
)

// Actor is who asks for a transition.
type Actor string

// The actors. An operator is a person, through the api.
const (
	Leader   Actor = "leader"
	Gateway  Actor = "gateway"
	API      Actor = "api"
	Operator Actor = "operator"
)

// Actors lists every actor.
func Actors() []Actor { return []Actor{Leader, Gateway, API, Operator} }

// Stage is an attempt's state, with queued told apart by whether the row has a
// token: the transition table is in terms of stages.
type Stage string

// The stages of a queued row. Every other stage has the name of its state.
const (
	StageNone    Stage = "none"
	StageWaiting Stage = "waiting" // queued, no token: waits for its time
	StageIntent  Stage = "intent"  // queued with a token: dispatched, not confirmed
)

// Stages lists every stage, in the order of the table.
func Stages() []Stage {
	list := []Stage{StageNone, StageWaiting, StageIntent}
	for _, s := range AttemptStates() {
		if s != Queued {
			list = append(list, Stage(s))
		}
	}
	return list
}

// Stage returns the stage that the row is in.
func (a Attempt) Stage() Stage {
	switch {
	case a.State == None:
		return StageNone
	case a.Waiting():
		return StageWaiting
	case a.State == Queued:
		return StageIntent
	default:
		return Stage(a.State)
	}
}

// Guard names an expectation that the Txn of a transition must carry. Lacking
// tells which of them a change lacks.
type Guard string

// The guards.
const (
	GuardRowAbsent   Guard = "row absent"
	GuardPrevious    Guard = "previous row as seen" // where there is one
	GuardRow         Guard = "row as seen"
	GuardNextAbsent  Guard = "next row absent"
	GuardRun         Guard = "run as seen"
	GuardSession     Guard = "session's key present" // or that of its successor
	GuardSessionGone Guard = "session's key absent, its record as seen"
	GuardAttested    Guard = "session's record as seen" // with an attestation in it
	GuardProven      Guard = "no unproven death"        // of a task that is not idempotent
	GuardCause       Guard = "signal or child run as seen"
)

// AttemptStep is one line of the transition table of attempts.
type AttemptStep struct {
	From, To Stage
	By       Actor
	Kinds    []Kind
	Guards   []Guard
	Why      string
}

// AttemptTable is every transition of an attempt row. Where two lines have the
// same From, To and By, a change needs the guards of one of them.
func AttemptTable() []AttemptStep {
	exec, all, held := []Kind{KindExec}, []Kind{KindExec, KindWait, KindChild}, []Kind{KindWait, KindChild}
	report := []Guard{GuardRow, GuardSession}
	create := []Guard{GuardRowAbsent, GuardPrevious, GuardRun}
	return []AttemptStep{
		{StageNone, StageWaiting, Leader, exec, create, "a retry waits for its time"},
		{StageNone, StageIntent, Leader, exec, append(slices.Clone(create), GuardProven), "the dispatch"},
		{StageWaiting, StageIntent, Leader, exec, []Guard{GuardRow, GuardRun, GuardProven}, "its time has come"},
		{StageIntent, Stage(Running), Gateway, exec, []Guard{GuardRow, GuardRun, GuardSession}, "claim, started, or the answer to a probe"},
		{StageIntent, StageIntent, Gateway, exec, []Guard{GuardRow}, "the probed worker does not know the token"},
		{StageIntent, Stage(Abandoned), Leader, exec, []Guard{GuardRow, GuardNextAbsent, GuardRun}, "nobody confirmed the dispatch"},
		{StageIntent, Stage(Success), Gateway, exec, report, "finished before its start was written"},
		{StageIntent, Stage(Failed), Gateway, exec, report, "finished before its start was written"},
		{StageIntent, Stage(Skipped), Gateway, exec, report, "finished before its start was written"},
		{Stage(Running), Stage(Success), Gateway, exec, report, "finished"},
		{Stage(Running), Stage(Failed), Gateway, exec, report, "finished"},
		{Stage(Running), Stage(Skipped), Gateway, exec, report, "finished"},
		{Stage(Running), Stage(Failed), Leader, exec, []Guard{GuardRow, GuardSessionGone}, "worker lost"},
		{Stage(Running), Stage(Failed), Gateway, exec, []Guard{GuardRow, GuardAttested}, "worker lost, its death attested"},
		{StageIntent, Stage(Failed), Leader, exec, []Guard{GuardRow, GuardRun}, "queue timeout, loss limit"},
		{StageWaiting, Stage(Failed), Leader, exec, []Guard{GuardRow, GuardRun}, "queue timeout, loss limit"},
		{StageNone, Stage(Skipped), Leader, all, create, "decided by the trigger rule"},
		{StageNone, Stage(UpstreamFailed), Leader, all, create, "decided by the trigger rule"},
		{StageNone, Stage(Cancelled), Leader, all, create, "the run is cancelled"},
		{StageWaiting, Stage(Cancelled), Leader, exec, []Guard{GuardRow, GuardRun}, "the run is cancelled"},
		{StageIntent, Stage(Cancelled), Gateway, exec, report, "the worker stopped it"},
		{Stage(Running), Stage(Cancelled), Gateway, exec, report, "the worker stopped it"},
		{StageIntent, Stage(Cancelled), Leader, exec, []Guard{GuardRow, GuardSessionGone}, "cancelled, its worker is gone"},
		{Stage(Running), Stage(Cancelled), Leader, exec, []Guard{GuardRow, GuardSessionGone}, "cancelled, its worker is gone"},
		{Stage(Running), Stage(Success), Operator, all, []Guard{GuardRow, GuardRun}, "resolved"},
		{Stage(Running), Stage(Failed), Operator, all, []Guard{GuardRow, GuardRun}, "resolved"},
		{Stage(Running), Stage(Cancelled), Operator, all, []Guard{GuardRow, GuardRun}, "resolved"},
		{StageNone, Stage(Running), Leader, held, create, "waits for a signal or a child run"},
		{StageNone, Stage(Running), API, held, create, "waits for a signal or a child run"},
		{Stage(Running), Stage(Success), Leader, held, []Guard{GuardRow, GuardCause}, "the signal came, the child run ended"},
		{Stage(Running), Stage(Failed), Leader, held, []Guard{GuardRow, GuardCause}, "the child run failed"},
		{Stage(Running), Stage(Cancelled), Leader, held, []Guard{GuardRow, GuardRun}, "the run is cancelled"},
		{Stage(Running), Stage(Success), API, held, []Guard{GuardRow, GuardCause}, "the signal came"},
	}
}

// Step says what a transition is to be.
type Step struct {
	To    AttemptState
	By    Actor
	Who   string // replica/<id>, session/<id> or person/<name>
	At    time.Time
	Rule  Rule
	Term  int64 // zero for writes that need no leader
	Write WriteID
	Cause Cause
	// Token, Worker and Session are set where the step is a dispatch.
	Token   Token
	Worker  WorkerName
	Session SessionID
}

// Move returns the row after the step. The row itself is not changed. It fails
// where the table knows no such transition; the caller then looks at a fresh
// row. A row that does not exist yet is an Attempt in state None with all of
// its other fields filled in.
func (a Attempt) Move(s Step) (Attempt, error) {
	from := a.Stage()
	next := a
	next.State, next.EnteredAt, next.Cause = s.To, s.At, s.Cause
	if s.Token != "" {
		if a.Token != "" {
			return a, fmt.Errorf("move %s: it has a token already, a row is dispatched once", a.Ref())
		}
		next.Token, next.Worker, next.Session = s.Token, s.Worker, s.Session
	}
	to := next.Stage()
	if !a.allowed(from, to, s.By) {
		return a, fmt.Errorf("move %s: there is no transition from %s to %s for %s", a.Ref(), from, to, s.By)
	}
	if from == StageIntent && to == StageIntent {
		next.Refused = &Mark{By: s.Who, At: s.At}
		next.EnteredAt = a.EnteredAt
	}
	if a.Refused != nil && to == Stage(Running) {
		return a, fmt.Errorf("move %s: its worker said that it does not know the token, so nothing may start it", a.Ref())
	}
	next.Transitions = append(slices.Clip(slices.Clone(a.Transitions)), Transition{
		State: string(s.To), At: s.At, Rule: s.Rule, By: s.Who, Term: s.Term, Write: s.Write,
	})
	return next, nil
}

func (a Attempt) allowed(from, to Stage, by Actor) bool {
	return slices.ContainsFunc(AttemptTable(), func(s AttemptStep) bool {
		return s.From == from && s.To == to && s.By == by && slices.Contains(s.Kinds, a.Kind)
	})
}

// Lacking returns the guards that c lacks for the move of a row from before to
// after by an actor: those of the line that comes nearest. It is nil where one
// line of the table is satisfied. Tests hold every change that the core and
// the gateway make against it.
func Lacking(c Change, before, after Attempt, by Actor) []Guard {
	var best []Guard
	found := false
	for _, s := range AttemptTable() {
		if s.From != before.Stage() || s.To != after.Stage() || s.By != by || !slices.Contains(s.Kinds, after.Kind) {
			continue
		}
		lacking := slices.DeleteFunc(slices.Clone(s.Guards), func(g Guard) bool { return c.carries(g, after) })
		if len(lacking) == 0 {
			return nil
		}
		if !found || len(lacking) < len(best) {
			best, found = lacking, true
		}
	}
	if !found {
		return []Guard{"no such transition"}
	}
	return best
}

// carries says whether c expects what g asks about the row a.
func (c Change) carries(g Guard, a Attempt) bool {
	ref := a.Ref()
	switch g {
	case GuardRowAbsent:
		return c.expects(WantAbsent, AttemptKey(ref))
	case GuardPrevious:
		return ref.N == 1 || c.expects(WantRev, AttemptKey(ref.At(ref.N-1)))
	case GuardRow:
		return c.expects(WantRev, AttemptKey(ref))
	case GuardNextAbsent:
		return c.expects(WantAbsent, AttemptKey(ref.At(ref.N+1)))
	case GuardRun:
		return c.expects(WantRev, RunKey(a.Run))
	case GuardSession:
		return slices.ContainsFunc(c.Expect, func(e Expect) bool {
			return e.Key.Family == FamilyWorker && e.Key.Name == string(a.Worker) && e.Want != WantAbsent
		})
	case GuardSessionGone:
		return c.expects(WantAbsent, WorkerKey(a.Worker, a.Session)) && c.expects(WantRev, SessionKey(a.Worker, a.Session))
	case GuardAttested:
		return c.expects(WantRev, SessionKey(a.Worker, a.Session))
	case GuardProven:
		return a.Idempotent || slices.Contains(c.Expect, Empty(UnprovenOf(a.TaskRef())))
	case GuardCause:
		return slices.ContainsFunc(c.Expect, func(e Expect) bool {
			return e.Key.Family == FamilySignal || e.Key.Family == FamilyRun && e.Key.Run != a.Run || e.Key.Family == FamilyEnded
		})
	default:
		return false
	}
}

func (c Change) expects(w Want, k Key) bool {
	return slices.ContainsFunc(c.Expect, func(e Expect) bool { return e.Want == w && !e.Ranged() && e.Key == k })
}
