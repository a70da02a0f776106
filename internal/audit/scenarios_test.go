package audit_test

import (
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// scenarios are correct histories by name.
func scenarios() map[string]func(*story) {
	return map[string]func(*story){
		"plain": plain, "open": open, "retry": retry, "skip": skip, "cleared": cleared, "reopened": reopened,
		"abandoned": abandonedOnce, "lost": lostOnce, "cancelled": cancelledRun, "dated": dated, "limited": limited,
		"held": held, "late": late,
	}
}

// plain is a diamond that ends well.
func plain(s *story) {
	s.flow(task("a"), task("b", "a"), task("c", "a"), task("d", "b", "c"))
	s.enlist("s-1", 4)
	s.start("etl.x")
	s.live("etl.x/a/1", record.Success)
	s.dispatch("etl.x/b/1")
	s.dispatch("etl.x/c/1")
	s.claim("etl.x/c/1")
	s.report("etl.x/b/1", record.Success) // straight from the intent
	s.report("etl.x/c/1", record.Success)
	s.live("etl.x/d/1", record.Success)
	s.close("etl.x", record.RunSuccess)
	s.end("etl.x")
}

// open is a chain that is half done.
func open(s *story) {
	a, b := task("a"), task("b", "a")
	a.Idempotent, b.Idempotent = false, false
	s.flow(a, b, task("c"))
	s.enlist("s-1", 4)
	s.start("etl.x")
	s.live("etl.x/a/1", record.Success)
	s.dispatch("etl.x/b/1")
	s.claim("etl.x/b/1")
}

// retry is a task that fails, waits and succeeds.
func retry(s *story) {
	a := task("a")
	a.Idempotent, a.Retries = false, spec.Retry{Limit: 2}
	s.flow(a, task("z"))
	s.enlist("s-1", 1)
	s.start("etl.x")
	s.live("etl.x/a/1", record.Failed)
	s.lead("etl.x/a/2", record.Queued, record.RuleRetry, func(a *record.Attempt) { a.NotBefore = s.now.Add(time.Minute) })
	s.dispatch("etl.x/a/2")
	s.claim("etl.x/a/2")
	s.report("etl.x/a/2", record.Success)
}

// skip has every way in which a task does not run.
func skip(s *story) {
	b := task("b", "a")
	b.TriggerRule = spec.NoneSkipped
	allowed := task("e")
	allowed.AllowFailure = true
	late := task("g", "d", "f")
	late.TriggerRule = spec.AllDone
	s.flow(task("a"), b, task("c"), task("d", "c", "a"), allowed, task("f", "e"), late)
	s.enlist("s-1", 4)
	s.start("etl.x")
	s.live("etl.x/a/1", record.Skipped)
	s.lead("etl.x/b/1", record.Skipped, record.RuleTrigger)
	s.live("etl.x/c/1", record.Failed)
	s.lead("etl.x/d/1", record.UpstreamFailed, record.RuleTrigger)
	s.live("etl.x/e/1", record.Failed)
	s.live("etl.x/f/1", record.Success)
	s.live("etl.x/g/1", record.Success)
	s.close("etl.x", record.RunFailed)
	s.end("etl.x")
}

// cleared is a run of which tasks run again, one of them live at the clear.
func cleared(s *story) {
	s.flow(task("a"), task("b", "a"))
	s.enlist("s-1", 4)
	s.start("etl.x")
	s.live("etl.x/a/1", record.Success)
	s.dispatch("etl.x/b/1")
	s.claim("etl.x/b/1")
	s.clear("etl.x", "a", "b")
	s.commit([]record.Put{s.step("etl.x/b/1", record.Cancelled, record.Gateway, record.RuleCancel)})
	s.live("etl.x/a/2", record.Success)
	s.live("etl.x/b/2", record.Success)
	s.close("etl.x", record.RunSuccess)
	s.end("etl.x")
}

// reopened is a run that ended, runs a task again, and ends again.
func reopened(s *story) {
	cleared(s)
	s.reopen("etl.x", "b")
	s.live("etl.x/b/3", record.Success)
	s.close("etl.x", record.RunSuccess)
	s.end("etl.x")
}

// abandonedOnce is a dispatch that its worker refuses.
func abandonedOnce(s *story) {
	s.flow(task("a"))
	s.enlist("s-1", 4)
	s.start("etl.x")
	s.dispatch("etl.x/a/1")
	s.commit([]record.Put{s.step("etl.x/a/1", record.Queued, record.Gateway, record.RuleProbe)})
	s.commit([]record.Put{
		s.step("etl.x/a/1", record.Abandoned, record.Leader, record.RuleAbandon),
		s.step("etl.x/a/2", record.Queued, record.Leader, record.RuleAbandon),
	})
	s.dispatch("etl.x/a/2")
}

// lostOnce is a worker that is lost: one attempt fails without proof, one is
// tried again, and what was left on disk is delivered by the successor.
func lostOnce(s *story) {
	a := task("a")
	a.Idempotent, a.OnLost = false, record.OnLostFail
	s.flow(a, task("b"), task("c"))
	s.enlist("s-1", 4)
	s.start("etl.x")
	for _, name := range []string{"etl.x/a/1", "etl.x/b/1", "etl.x/c/1"} {
		s.dispatch(name)
		s.claim(name)
	}
	s.commit(nil, record.Remove(record.WorkerKey("w", "s-1")))
	gone := func(a *record.Attempt) { a.Unproven = !a.Idempotent }
	lose := func(name string, beside ...record.Put) {
		p := s.step(name, record.Failed, record.Leader, record.RuleLost, gone)
		row := p.Value.(record.Attempt)
		row.Cause = record.Because(record.CauseWorkerLost, "")
		s.commit(append(beside, record.Put{Key: p.Key, Value: row}))
	}
	lose("etl.x/a/1", record.Put{Key: record.UnprovenKey(ref("etl.x/a/1")), Value: record.Unproven{
		Run: "etl.x", Task: "a", Attempt: 1, Worker: "w", Session: "s-1", Write: s.write(),
	}})
	lose("etl.x/b/1")
	s.enlist("s-2", 4)
	s.commit([]record.Put{{Key: record.SessionKey("w", "s-1"), Value: record.Session{Worker: "w", Session: "s-1", Successor: "s-2", Write: s.write()}}})
	p := s.step("etl.x/c/1", record.Success, record.Gateway, record.RuleFinish)
	row := p.Value.(record.Attempt)
	row.Transitions[len(row.Transitions)-1].By = "session/s-2"
	s.commit([]record.Put{p})
	s.lead("etl.x/b/2", record.Queued, record.RuleRetry)
	s.commit(nil, record.Remove(record.UnprovenKey(ref("etl.x/a/1"))))
	s.clear("etl.x", "a")
	s.dispatch("etl.x/a/2")
}

// cancelledRun has a task in every stage when it is cancelled.
func cancelledRun(s *story) {
	a := task("a")
	a.Retries = spec.Retry{Limit: 1}
	s.flow(a, task("b"), task("c"), task("d", "c"))
	s.enlist("s-1", 4)
	s.start("etl.x")
	s.live("etl.x/a/1", record.Failed)
	s.lead("etl.x/a/2", record.Queued, record.RuleRetry)
	s.dispatch("etl.x/b/1")
	s.dispatch("etl.x/c/1")
	s.claim("etl.x/c/1")
	s.operate("etl.x", record.RunCancelling, func(r *record.Run) { r.Cancelling = &record.Hold{By: "ann"} })
	s.lead("etl.x/a/2", record.Cancelled, record.RuleCancel)
	s.lead("etl.x/d/1", record.Cancelled, record.RuleCancel)
	s.commit([]record.Put{
		s.step("etl.x/b/1", record.Abandoned, record.Leader, record.RuleCancel),
		s.step("etl.x/b/2", record.Cancelled, record.Leader, record.RuleCancel),
	})
	s.report("etl.x/c/1", record.Success) // what was done before the cancel counts
	s.close("etl.x", record.RunCancelled)
	s.end("etl.x")
}

// dated is two runs of a schedule, and a second round of one.
func dated(s *story) {
	s.flow(task("a"))
	s.enlist("s-1", 4)
	for i, id := range []record.RunID{"etl.20261201t000000z", "etl.20261202t000000z", "etl.20261202t000000z.r2"} {
		s.start(id, func(r *record.Run) {
			r.Trigger, r.Round = record.TriggerSchedule, 1+i/2
			r.LogicalDate = time.Date(2026, 12, 1+(i+1)/2, 0, 0, 0, 0, time.UTC)
		})
	}
	s.live("etl.20261201t000000z/a/1", record.Success)
	s.close("etl.20261201t000000z", record.RunSuccess)
	s.end("etl.20261201t000000z")
}

// limited fills slots, a pool, a concurrency key and max_active_runs.
func limited(s *story) {
	s.flow(task("a"), task("b"), task("c")).MaxActiveRuns = 2
	s.enlist("s-1", 3)
	s.commit([]record.Put{{Key: record.PoolKey("db"), Value: record.PoolLimit{Pool: "db", Slots: 2, Write: s.write()}}})
	s.start("etl.x")
	s.start("etl.y")
	inPool := func(a *record.Attempt) { a.Pool = "db" }
	keyed := func(a *record.Attempt) { a.Keys = []string{"table"} }
	s.dispatch("etl.x/a/1", inPool)
	s.dispatch("etl.x/b/1", inPool, keyed)
	s.report("etl.x/b/1", record.Success)
	s.dispatch("etl.y/b/1", inPool, keyed)
	s.dispatch("etl.y/c/1")
}

// held is a run that is held and released, with what may happen meanwhile.
func held(s *story) {
	a := task("a")
	a.Retries = spec.Retry{Limit: 1}
	s.flow(a)
	s.enlist("s-1", 4)
	s.start("etl.x")
	s.dispatch("etl.x/a/1")
	s.operate("etl.x", record.RunRunning, func(r *record.Run) { r.Paused = &record.Hold{By: "ann"} })
	s.report("etl.x/a/1", record.Failed)
	s.lead("etl.x/a/2", record.Queued, record.RuleRetry)
	s.operate("etl.x", record.RunRunning, func(r *record.Run) { r.Paused = nil })
	s.dispatch("etl.x/a/2")
}

// late is a run past its deadline, with a task past its own.
func late(s *story) {
	s.flow(task("a"), task("b", "a"))
	s.enlist("s-1", 4)
	s.start("etl.x")
	s.lead("etl.x/a/1", record.Queued, record.RuleTimeout)
	for _, step := range []struct {
		name string
		to   record.AttemptState
	}{{"etl.x/a/1", record.Failed}, {"etl.x/b/1", record.Cancelled}} {
		p := s.step(step.name, step.to, record.Leader, record.RuleTimeout)
		row := p.Value.(record.Attempt)
		row.Cause = record.Because(record.CauseRunTimeout, "")
		s.commit([]record.Put{{Key: p.Key, Value: row}})
	}
	s.close("etl.x", record.RunFailed)
	s.end("etl.x")
}
