package audit_test

import (
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/audit"
	"github.com/writ-sched/writ/internal/record"
)

func observations() []mutation {
	return []mutation{
		{"an execution that nothing dispatched", "plain", "I1", func(h *history) {
			h.seen[0].Token = "token-of-nobody"
		}},
		{"an execution before its row", "plain", "I1", func(h *history) { h.seen[0].Rev = 1 }},
		{"an execution by another worker", "plain", "I1", func(h *history) { h.seen[0].Worker = "v" }},
		{"two executions at once", "retry", "I7", func(h *history) {
			h.seen[0].End = h.seen[1].Start.Add(time.Millisecond)
		}},
	}
}

func numbers() []mutation {
	return []mutation{
		{"a number left out", "retry", "I2", func(h *history) {
			h.drop(rowKey("etl.x/a/2"), 1, true)
			e := h.event(rowKey("etl.x/a/2"), 0)
			a := e.Value.(record.Attempt)
			a.Attempt, e.Key = 3, rowKey("etl.x/a/3")
			e.Value = a
			h.seen = h.seen[:1]
		}},
		{"a second attempt beside the first", "retry", "I2", func(h *history) {
			h.drop(rowKey("etl.x/a/1"), 2, false)
			h.cut(rowKey("etl.x/a/2"), 0)
		}},
		{"a dispatch beside a live one", "open", "I2", func(h *history) {
			h.inject(rowKey("etl.x/b/1"), 1, rowKey("etl.x/b/2"), fresh(h.value("etl.x/b/1", 1), "etl.x/b/2"))
		}},
	}
}

func rowsOfTheTable() []mutation {
	return []mutation{
		{"a token used twice", "open", "I3", func(h *history) {
			h.rewrite("etl.x/b/1", 0, func(a *record.Attempt) { a.Token = "token-etl.x/a/1" })
			h.seen = h.seen[:1]
		}},
		{"a terminal row written again", "open", "I3", func(h *history) {
			h.inject(rowKey("etl.x/a/1"), 2, rowKey("etl.x/a/1"), then(h.value("etl.x/a/1", 2), record.Success, "session/s-1", record.RuleFinish))
		}},
		{"a terminal row touched", "open", "I3", func(h *history) {
			h.inject(rowKey("etl.x/a/1"), 2, rowKey("etl.x/a/1"), h.value("etl.x/a/1", 2))
		}},
		{"a step of nobody", "open", "I3", func(h *history) {
			h.rewrite("etl.x/b/1", 1, func(a *record.Attempt) {
				a.State = record.Abandoned
				last(a.Transitions).State, last(a.Transitions).By = "abandoned", "session/s-1"
			})
		}},
		{"a step of the wrong actor", "open", "I3", func(h *history) {
			h.rewrite("etl.x/b/1", 1, func(a *record.Attempt) { last(a.Transitions).By = "person/ann" })
		}},
		{"a transition let go", "open", "I3", func(h *history) {
			h.rewrite("etl.x/b/1", 1, func(a *record.Attempt) { a.Transitions = a.Transitions[1:] })
		}},
		{"a transition rewritten", "open", "I3", func(h *history) {
			h.rewrite("etl.x/b/1", 1, func(a *record.Attempt) { a.Transitions[0].By = "replica/r2" })
		}},
		{"a state that no transition says", "open", "I3", func(h *history) {
			h.rewrite("etl.x/b/1", 1, func(a *record.Attempt) { last(a.Transitions).State = "success" })
		}},
		{"a session changed", "open", "I3", func(h *history) {
			h.rewrite("etl.x/b/1", 1, func(a *record.Attempt) { a.Session = "s-2" })
		}},
		{"a queue changed", "open", "I3", func(h *history) {
			h.rewrite("etl.x/b/1", 1, func(a *record.Attempt) { a.Queue = "gpu" })
		}},
		{"a row deleted", "open", "I3", func(h *history) {
			h.inject(rowKey("etl.x/b/1"), 1, rowKey("etl.x/b/1"), nil)
		}},
		{"a row under another's key", "open", "I3", func(h *history) {
			h.rewrite("etl.x/b/1", 1, func(a *record.Attempt) { a.Task = "c" })
		}},
		{"an abandoned row without the next", "abandoned", "I3", func(h *history) {
			h.drop(rowKey("etl.x/a/2"), 0, true)
		}},
		{"a restored row that differs", "reopened", "I3", func(h *history) {
			h.event(rowKey("etl.x/a/1"), 4).Value = then(h.value("etl.x/a/1", 4), record.Success, "session/s-1", record.RuleFinish)
			h.cut(rowKey("etl.x/a/1"), 4)
		}},
		{"a restored row with another fence", "reopened", "I3", func(h *history) {
			a := h.value("etl.x/a/1", 4)
			a.Fence++
			h.event(rowKey("etl.x/a/1"), 4).Value = a
			h.cut(rowKey("etl.x/a/1"), 4)
		}},
		{"a row with a fence in a run that was not reopened", "open", "I3", func(h *history) {
			h.rewrite("etl.x/b/1", 0, func(a *record.Attempt) { a.Fence = 5 })
			h.cut(rowKey("etl.x/b/1"), 0)
		}},
	}
}

func words() []mutation {
	return []mutation{
		{"a finish by another session", "open", "I4", func(h *history) {
			h.rewrite("etl.x/a/1", 2, func(a *record.Attempt) { last(a.Transitions).By = "session/s-9" })
		}},
		{"a finish by a replica", "open", "I4", func(h *history) {
			h.rewrite("etl.x/a/1", 2, func(a *record.Attempt) { last(a.Transitions).By = "replica/r1" })
		}},
		{"a finish by another rule", "open", "I4", func(h *history) {
			h.rewrite("etl.x/a/1", 2, func(a *record.Attempt) { last(a.Transitions).Rule = record.RuleClaim })
		}},
		{"a successor that nobody recorded", "lost", "I4", func(h *history) {
			h.drop(record.SessionKey("w", "s-1"), 1, false)
		}},
		{"a claim of what was refused", "abandoned", "I4", func(h *history) {
			a := then(h.value("etl.x/a/1", 1), record.Running, "session/s-1", record.RuleClaim)
			h.inject(rowKey("etl.x/a/1"), 1, rowKey("etl.x/a/1"), a)
			h.cut(rowKey("etl.x/a/1"), 2)
		}},
	}
}

func reasons() []mutation {
	return []mutation{
		{"an attempt after a success", "open", "I5", func(h *history) {
			h.inject(rowKey("etl.x/a/1"), 2, rowKey("etl.x/a/2"), fresh(h.value("etl.x/a/1", 2), "etl.x/a/2"))
			h.cut(rowKey("etl.x/a/2"), 0)
		}},
		{"an attempt after a success that the clear does not cover", "cleared", "I5", func(h *history) {
			e := h.event(record.ClearKey("etl.x", 1), 0)
			c := e.Value.(record.Clear)
			c.Tasks = []record.TaskID{"b"}
			e.Value = c
			h.cut(rowKey("etl.x/a/2"), 0)
		}},
		{"a start before its upstream", "open", "I6", func(h *history) { h.drop(rowKey("etl.x/a/1"), 2, false) }},
		{"a start after a failure above", "open", "I6", func(h *history) {
			h.rewrite("etl.x/a/1", 2, func(a *record.Attempt) { a.State, last(a.Transitions).State = record.Failed, "failed" })
		}},
		{"a retry that is not owed", "retry", "I6", func(h *history) { h.flows["etl"].Tasks[0].Retries.Limit = 0 }},
		{"a start while a retry is owed above", "skip", "I6", func(h *history) {
			h.flows["etl"].Tasks[2].Retries.Limit = 1
			h.cut(rowKey("etl.x/d/1"), 0)
		}},
		{"a wrong decision", "skip", "I6", func(h *history) {
			h.rewrite("etl.x/d/1", 0, func(a *record.Attempt) { a.State, last(a.Transitions).State = record.Skipped, "skipped" })
			h.cut(rowKey("etl.x/d/1"), 0)
		}},
		{"a decision before it is due", "skip", "I6", func(h *history) {
			h.drop(rowKey("etl.x/c/1"), 2, true)
			h.cut(rowKey("etl.x/d/1"), 0)
		}},
		{"a task closed without a cancel", "late", "I6", func(h *history) {
			h.rewrite("etl.x/b/1", 0, func(a *record.Attempt) { a.Cause = record.Cause{} })
			h.cut(rowKey("etl.x/b/1"), 0)
		}},
		{"a dispatch while the run is held", "held", "I6", func(h *history) { h.drop(record.RunKey("etl.x"), 2, false) }},
		{"a dispatch under a clear", "retry", "I6", func(h *history) {
			h.inject(rowKey("etl.x/a/2"), 0, record.ClearKey("etl.x", 1), record.Clear{Run: "etl.x", Seq: 1, Tasks: []record.TaskID{"a"}})
		}},
		{"an attempt of no run", "open", "I6", func(h *history) {
			h.drop(record.RunKey("etl.x"), 0, false)
			h.cut(rowKey("etl.x/a/1"), 0)
		}},
		{"an attempt of a run that has ended", "plain", "I6", func(h *history) {
			h.cut(record.RunKey("etl.x"), 1)
			h.inject(record.RunKey("etl.x"), 1, rowKey("etl.x/d/2"), fresh(h.value("etl.x/d/1", 2), "etl.x/d/2"))
		}},
	}
}

func deaths() []mutation {
	return []mutation{
		{"an end without proof and mark", "lost", "I7", func(h *history) {
			h.drop(record.UnprovenKey(ref("etl.x/a/1")), 0, true)
		}},
		{"a token over an unproven death", "lost", "I7", func(h *history) {
			h.drop(record.UnprovenKey(ref("etl.x/a/1")), 1, false)
		}},
	}
}

func ends() []mutation {
	stop := func(nth int) func(*history) {
		return func(h *history) {
			h.cut(record.RunKey("etl.x"), nth)
			h.quiet = true
		}
	}
	return []mutation{
		{"a run that nobody carries to its document", "plain", "I8", stop(1)},
		{"a run that nobody restores", "reopened", "I8", stop(4)},
		{"a run whose tasks are closed", "plain", "I8", func(h *history) {
			h.cut(rowKey("etl.x/d/1"), 2)
			h.quiet = true
		}},
		{"a cancelled run of which nothing lives", "cancelled", "I8", func(h *history) {
			h.cut(rowKey("etl.x/c/1"), 2)
			h.quiet = true
		}},
		{"a queued run that nothing holds up", "open", "I8", func(h *history) {
			h.cut(record.RunKey("etl.x"), 0)
			r := h.run(0)
			r.State, r.Transitions[0].State = record.RunQueued, "queued"
			h.event(record.RunKey("etl.x"), 0).Value = r
			h.quiet = true
		}},
	}
}

func dates() []mutation {
	first, second := record.RunKey("etl.20261201t000000z"), record.RunKey("etl.20261202t000000z")
	return []mutation{
		{"a second run of a date", "dated", "I9", func(h *history) {
			r := h.event(first, 0).Value.(record.Run)
			r.Run = "etl.again"
			h.inject(second, 0, record.RunKey("etl.again"), r)
		}},
		{"a date under an id of its own", "dated", "I9", func(h *history) {
			e := h.event(second, 0)
			r := e.Value.(record.Run)
			r.Run, e.Key = "etl.mine", record.RunKey("etl.mine")
			e.Value = r
		}},
		{"a run made again while its document is kept", "dated", "I9", func(h *history) {
			h.inject(first, 2, first, h.event(first, 0).Value)
		}},
	}
}

func losses() []mutation {
	x := record.RunKey("etl.x")
	doc := func(f func(*record.EndedPage)) func(*history) {
		return func(h *history) {
			e := h.event(record.PageKey("etl.x", 1), 0)
			p := e.Value.(record.EndedPage)
			p.Rows = slices.Clone(p.Rows)
			f(&p)
			e.Value = p
		}
	}
	head := func(f func(*record.Ended)) func(*history) {
		return func(h *history) {
			e := h.event(record.EndedKey("etl.x"), 0)
			d := e.Value.(record.Ended)
			f(&d)
			e.Value = d
		}
	}
	return []mutation{
		{"a run deleted before its end", "plain", "I10", func(h *history) { h.drop(x, 1, false); h.drop(record.EndedKey("etl.x"), 0, false) }},
		{"a run deleted without a document", "reopened", "I10", func(h *history) { h.drop(record.EndedKey("etl.x"), 2, false) }},
		{"a row left behind", "plain", "I10", func(h *history) { h.drop(rowKey("etl.x/d/1"), 3, false) }},
		{"a clear left behind", "cleared", "I10", func(h *history) { h.drop(record.ClearKey("etl.x", 1), 1, false) }},
		{"a document that lacks a row", "plain", "I10", doc(func(p *record.EndedPage) { p.Rows = p.Rows[1:] })},
		{"a document with a row twice", "plain", "I10", doc(func(p *record.EndedPage) { p.Rows = append(p.Rows, p.Rows[0]) })},
		{"a document with another end", "plain", "I10", doc(func(p *record.EndedPage) { p.Rows[0].Attempt.State = record.Failed })},
		{"a document with another create revision", "plain", "I10", doc(func(p *record.EndedPage) { p.Rows[0].CreateRev-- })},
		{"a document with another last revision", "plain", "I10", doc(func(p *record.EndedPage) { p.Rows[0].ModRev-- })},
		{"a head with another count", "plain", "I10", head(func(d *record.Ended) { d.Attempts++ })},
		{"a head with another run", "plain", "I10", head(func(d *record.Ended) { d.Run.State = record.RunFailed })},
		{"a head of another revision", "plain", "I10", head(func(d *record.Ended) { d.RunRev-- })},
		{"a head without its clears", "cleared", "I10", head(func(d *record.Ended) { d.Clears = nil })},
		{"an end while a task lives", "plain", "I10", func(h *history) {
			h.drop(rowKey("etl.x/d/1"), 2, false)
			h.cut(x, 1)
		}},
		{"an end before a task was decided", "plain", "I10", func(h *history) {
			h.drop(rowKey("etl.x/d/1"), 0, true)
			h.cut(x, 1)
			h.seen = nil
		}},
		{"a reopening that lost a row", "reopened", "I10", func(h *history) {
			h.drop(rowKey("etl.x/a/1"), 4, true)
			h.cut(x, 5)
		}},
	}
}

func cancels() []mutation {
	x := record.RunKey("etl.x")
	return []mutation{
		{"an attempt after the cancel", "cancelled", "I11", func(h *history) {
			a := fresh(h.value("etl.x/c/1", 1), "etl.x/d/1")
			h.event(rowKey("etl.x/d/1"), 0).Value = a
			h.cut(rowKey("etl.x/d/1"), 0)
		}},
		{"a claim after the cancel", "cancelled", "I11", func(h *history) {
			a := then(h.value("etl.x/b/1", 0), record.Running, "session/s-1", record.RuleClaim)
			h.inject(x, 1, rowKey("etl.x/b/1"), a)
			h.cut(rowKey("etl.x/b/1"), 1)
		}},
		{"a token after the cancel", "cancelled", "I11", func(h *history) {
			a := then(h.value("etl.x/a/2", 0), record.Queued, "replica/r1", record.RuleDispatch)
			a.Token, a.Worker, a.Session = "token-etl.x/a/2", "w", "s-1"
			h.inject(x, 1, rowKey("etl.x/a/2"), a)
			h.cut(rowKey("etl.x/a/2"), 1)
		}},
		{"a retry after the cancel", "cancelled", "I11", func(h *history) {
			a := fresh(h.value("etl.x/a/1", 2), "etl.x/a/2")
			a.Token, a.Worker, a.Session = "", "", ""
			a.Transitions[0].Rule = record.RuleRetry
			h.drop(rowKey("etl.x/a/2"), 0, true)
			h.inject(x, 1, rowKey("etl.x/a/2"), a)
			h.cut(rowKey("etl.x/a/2"), 0)
		}},
	}
}

func widths() []mutation {
	return []mutation{
		{"more attempts than slots", "limited", "I12", func(h *history) {
			e := h.event(record.WorkerKey("w", "s-1"), 0)
			w := e.Value.(record.Worker)
			w.Slots = 2
			e.Value = w
		}},
		{"more attempts than the pool has", "limited", "I12", func(h *history) {
			e := h.event(record.PoolKey("db"), 0)
			p := e.Value.(record.PoolLimit)
			p.Slots = 1
			e.Value = p
		}},
		{"more runs than max_active_runs", "limited", "I12", func(h *history) { h.flows["etl"].MaxActiveRuns = 1 }},
		{"a key that was not free", "limited", "I12", func(h *history) { h.drop(record.HolderKey("table", 0), 1, false) }},
		{"a key that was not taken", "limited", "I12", func(h *history) { h.drop(record.HolderKey("table", 0), 0, true) }},
		{"a key freed while it is held", "limited", "I12", func(h *history) {
			h.inject(record.HolderKey("table", 0), 2, record.HolderKey("table", 0), nil)
		}},
		{"a key held by what does not live", "limited", "I12", func(h *history) {
			h.inject(rowKey("etl.x/b/1"), 1, record.HolderKey("table", 1), record.Holder{Holder: "table", Slot: 1, Attempt: ref("etl.x/b/1")})
		}},
	}
}

func runsOfTheTable() []mutation {
	x := record.RunKey("etl.x")
	run := func(scenario string, name string, nth int, f func(*record.Run)) mutation {
		return mutation{name, scenario, audit.Table, func(h *history) {
			r := h.run(nth)
			f(&r)
			h.event(x, nth).Value = r
			h.cut(x, nth)
		}}
	}
	return []mutation{
		run("cancelled", "a run that goes back", 1, func(r *record.Run) { r.State, last(r.Transitions).State = record.RunQueued, "queued" }),
		run("cancelled", "a cancel by the leader", 1, func(r *record.Run) { last(r.Transitions).By = "replica/r1" }),
		run("cancelled", "a run of another revision", 1, func(r *record.Run) { r.Revision++ }),
		run("cancelled", "a transition let go", 1, func(r *record.Run) { r.Transitions = r.Transitions[1:] }),
		run("cancelled", "a transition without a write id", 1, func(r *record.Run) { last(r.Transitions).Write = "" }),
		run("plain", "an end without its phase", 1, func(r *record.Run) { r.Phase = record.PhaseNone }),
		run("plain", "a failed run without a failed task", 1, func(r *record.Run) { r.State, last(r.Transitions).State = record.RunFailed, "failed" }),
		run("skip", "a success with a failed task", 1, func(r *record.Run) { r.State, last(r.Transitions).State = record.RunSuccess, "success" }),
		run("plain", "a run made by nobody", 0, func(r *record.Run) { r.Transitions = nil }),
		run("plain", "a run that says it is another", 0, func(r *record.Run) { r.Run = "etl.y" }),
		{"a reopening of what never ended", "open", audit.Table, func(h *history) {
			r := h.run(0)
			r.Phase = record.PhaseReopening
			h.event(x, 0).Value = r
			h.cut(x, 0)
		}},
	}
}
