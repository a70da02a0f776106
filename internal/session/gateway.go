package session

import (
	"fmt"
	"time"

	"github.com/writ-sched/writ/internal/record"
)

// Seen is a record with the revision of its last change; at revision 0 it does
// not exist.
type Seen[T any] struct {
	Record T
	Rev    int64
}

// Peer is who speaks: a session, at the stream whose word counts.
type Peer struct {
	Worker  record.WorkerName
	Session record.SessionID
	// Rev is the revision at which the session's record has this stream.
	Rev int64
	TTL time.Duration
}

func (p Peer) key() record.Key { return record.WorkerKey(p.Worker, p.Session) }

// Answer is what follows from a report and the records as they were seen: a
// change to be made, after which the records are looked at again, or an end.
type Answer struct {
	Change *record.Change
	// Final is set where nothing is to be written: then Good is the answer and
	// Why says in words what stands against it.
	Final bool
	Good  bool
	Why   string
}

func done(why string) Answer { return Answer{Final: true, Good: true, Why: why} }
func refused(format string, args ...any) Answer {
	return Answer{Final: true, Why: fmt.Sprintf(format, args...)}
}

func write(c record.Change, err error) Answer {
	if err != nil {
		return refused("%v", err)
	}
	return Answer{Change: &c}
}

// Started says that a session wants to start an attempt (a claim), or has
// started an idempotent one.
type Started struct {
	Token record.Token
	Claim bool
	At    time.Time
}

// Start answers Started by the row and its run. Good means that the attempt may
// run. The change moves the row to running; it is made under the session's key,
// the run as seen and, for a claim, the stream's own session record.
func Start(p Peer, s Started, row Seen[record.Attempt], run Seen[record.Run]) Answer {
	a := row.Record
	switch {
	case row.Rev == 0 || run.Rev == 0:
		return refused("its run is over")
	case a.Token != s.Token || a.Session != p.Session:
		return refused("attempt %s was given to another session", a.Ref())
	case a.State == record.Running:
		return done("it runs") // this session's own word, sent before
	case a.State.Terminal():
		return refused("attempt %s is %s already", a.Ref(), a.State)
	case a.Refused != nil:
		return refused("this session said that it does not know attempt %s", a.Ref())
	case run.Record.State != record.RunRunning || run.Record.Phase != record.PhaseNone:
		return refused("run %s is %s", a.Run, run.Record.State)
	case !s.Claim && !a.Idempotent:
		return refused("attempt %s is not idempotent and must be claimed", a.Ref())
	}
	rule, expect := record.RuleStarted, []record.Expect{
		record.At(record.AttemptKey(a.Ref()), row.Rev), record.At(record.RunKey(a.Run), run.Rev), record.Present(p.key()),
	}
	if s.Claim {
		rule = record.RuleClaim
		expect = append(expect, record.At(record.SessionKey(p.Worker, p.Session), p.Rev))
	}
	id := ReportID(p.Session, s.Token, ReportStarted)
	next, err := a.Move(record.Step{
		To: record.Running, By: record.Gateway, Who: "session/" + string(p.Session), At: s.At, Rule: rule, Write: id,
	})
	if err != nil {
		return refused("%v", err)
	}
	next.TTL = record.Duration(p.TTL)
	return write(record.NewChange(rule, id, expect, []record.Put{{Key: record.AttemptKey(a.Ref()), Value: next}}))
}

// Finished is the end of an attempt, as the session that ran it reports it or,
// where that is gone, its successor.
type Finished struct {
	Token   record.Token
	Session record.SessionID // that ran it
	State   record.AttemptState
	Cause   record.Cause
	Exit    *record.Exit
	Result  []byte // JSON, of a success
	At      time.Time
}

// Finish answers Finished by the row. Good means accepted, and otherwise
// rejected; both are final, and rest on a terminal row.
func Finish(p Peer, f Finished, row Seen[record.Attempt]) Answer {
	a := row.Record
	id := ReportID(f.Session, f.Token, ReportFinished)
	switch {
	case a.Token != f.Token || a.Session != f.Session:
		return refused("attempt %s was given to another session", a.Ref())
	case a.State.Terminal() && a.HasWrite(id):
		return done("accepted")
	case a.State.Terminal():
		return refused("attempt %s is %s: %s", a.Ref(), a.State, a.Cause.Code)
	}
	next, err := a.Move(record.Step{
		To: f.State, By: record.Gateway, Who: "session/" + string(f.Session), At: f.At, Rule: record.RuleFinish, Write: id, Cause: f.Cause,
	})
	if err != nil {
		return refused("%v", err)
	}
	next.Exit = f.Exit
	put := []record.Put{{Key: record.AttemptKey(a.Ref()), Value: next}}
	if f.State == record.Success && len(f.Result) > 0 {
		next.ResultBytes = len(f.Result)
		put = []record.Put{{Key: record.AttemptKey(a.Ref()), Value: next}, {Key: record.ResultKey(a.Ref()), Value: record.Blob(f.Result)}}
	}
	return write(record.NewChange(record.RuleFinish, id, []record.Expect{
		record.At(record.AttemptKey(a.Ref()), row.Rev), record.Present(p.key()),
	}, put))
}

// Prove lifts the mark of an attempt whose death was unproven: its session has
// reported its end, though too late to count.
func Prove(f Finished, mark Seen[record.Unproven]) (record.Change, error) {
	m := mark.Record
	key := record.UnprovenKey(record.TaskRef{Run: m.Run, Task: m.Task, Instance: m.Instance}.At(m.Attempt))
	return record.NewChange(record.RuleProve, ReportID(f.Session, f.Token, ReportFinished),
		[]record.Expect{record.At(key, mark.Rev)}, nil, record.Remove(key))
}

// Refuse marks an intent whose worker, when probed, did not know the token.
func Refuse(p Peer, t record.Token, at time.Time, row Seen[record.Attempt]) Answer {
	a := row.Record
	if a.Token != t || a.Session != p.Session || !a.Intent() || a.Refused != nil {
		return done("nothing to refuse")
	}
	id := ReportID(p.Session, t, ReportUnknown)
	next, err := a.Move(record.Step{
		To: record.Queued, By: record.Gateway, Who: "session/" + string(p.Session), At: at, Rule: record.RuleProbe, Write: id,
	})
	if err != nil {
		return refused("%v", err)
	}
	return write(record.NewChange(record.RuleProbe, id,
		[]record.Expect{record.At(record.AttemptKey(a.Ref()), row.Rev)},
		[]record.Put{{Key: record.AttemptKey(a.Ref()), Value: next}}))
}

// Omitted ends a running row that the session's Hello does not name: a worker
// closes a token before it omits it, so its word proves the process dead.
func Omitted(p Peer, at time.Time, row Seen[record.Attempt]) Answer {
	a := row.Record
	if a.Session != p.Session || a.State != record.Running {
		return done("nothing runs")
	}
	id := ReportID(p.Session, a.Token, ReportOmitted)
	next, err := a.Move(record.Step{
		To: record.Failed, By: record.Gateway, Who: "session/" + string(p.Session), At: at, Rule: record.RuleLost, Write: id,
		Cause: record.Because(record.CauseWorkerLost, "its worker does not have it any more"),
	})
	if err != nil {
		return refused("%v", err)
	}
	return write(record.NewChange(record.RuleLost, id, []record.Expect{
		record.At(record.AttemptKey(a.Ref()), row.Rev), record.At(record.SessionKey(p.Worker, p.Session), p.Rev),
	}, []record.Put{{Key: record.AttemptKey(a.Ref()), Value: next}}))
}
