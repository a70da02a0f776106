package audit

import (
	"slices"
	"strings"

	"github.com/writ-sched/writ/internal/record"
)

// line is one line of the audit's own transition relation of attempts. The
// stage of a queued row is waiting or intent, that of an absent one none.
type line struct {
	from, to record.Stage
	by       record.Actor
	kinds    []record.Kind
	rules    []record.Rule
}

const (
	none      record.Stage = "none"
	waiting   record.Stage = "waiting"
	intent    record.Stage = "intent"
	running   record.Stage = "running"
	success   record.Stage = "success"
	failed    record.Stage = "failed"
	skipped   record.Stage = "skipped"
	upstream  record.Stage = "upstream_failed"
	abandoned record.Stage = "abandoned"
	cancelled record.Stage = "cancelled"
)

// relation is written from the state table of the design. It is on purpose not
// made of the table of package record; a test compares the two.
func relation() []line {
	exec := []record.Kind{record.KindExec}
	held := []record.Kind{record.KindWait, record.KindChild}
	every := append(slices.Clone(exec), held...)
	rules := func(r ...record.Rule) []record.Rule { return r }
	finish := rules(record.RuleFinish)
	lines := []line{
		{none, waiting, record.Leader, exec, rules(record.RuleRetry, record.RuleAbandon, record.RuleTimeout, record.RuleRepair)},
		{none, intent, record.Leader, exec, rules(record.RuleStart)},
		{waiting, intent, record.Leader, exec, rules(record.RuleDispatch)},
		{intent, running, record.Gateway, exec, rules(record.RuleClaim, record.RuleStarted, record.RuleProbe)},
		{intent, intent, record.Gateway, exec, rules(record.RuleProbe)},
		{intent, abandoned, record.Leader, exec, rules(record.RuleAbandon, record.RuleCancel)},
		{running, failed, record.Leader, exec, rules(record.RuleLost)},
		{running, failed, record.Gateway, exec, rules(record.RuleLost, record.RuleFinish)},
		{intent, failed, record.Leader, exec, rules(record.RuleTimeout, record.RuleLost, record.RuleCancel)},
		{waiting, failed, record.Leader, exec, rules(record.RuleTimeout, record.RuleLost)},
		{waiting, cancelled, record.Leader, exec, rules(record.RuleCancel)},
		{none, skipped, record.Leader, every, rules(record.RuleTrigger)},
		{none, upstream, record.Leader, every, rules(record.RuleTrigger)},
		{none, cancelled, record.Leader, every, rules(record.RuleCancel, record.RuleTimeout)},
		{intent, failed, record.Gateway, exec, finish},
		{running, failed, record.Leader, held, finish},
		{running, cancelled, record.Leader, held, rules(record.RuleCancel)},
	}
	for _, from := range []record.Stage{intent, running} {
		lines = append(lines,
			line{from, success, record.Gateway, exec, finish},
			line{from, skipped, record.Gateway, exec, finish},
			line{from, cancelled, record.Gateway, exec, rules(record.RuleCancel, record.RuleFinish)},
			line{from, cancelled, record.Leader, exec, rules(record.RuleCancel)},
		)
	}
	for _, to := range []record.Stage{success, failed, cancelled} {
		lines = append(lines, line{running, to, record.Operator, every, rules(record.RuleResolve)})
	}
	for _, by := range []record.Actor{record.Leader, record.API} {
		lines = append(lines,
			line{none, running, by, held, rules(record.RuleStart)},
			line{running, success, by, held, finish},
		)
	}
	return lines
}

// runLine is one line of the relation of runs.
type runLine struct {
	from record.RunState
	in   record.Phase
	to   record.RunState
	into record.Phase
	by   record.Actor
}

func runRelation() []runLine {
	const no, ending, reopening = record.PhaseNone, record.PhaseEnding, record.PhaseReopening
	var lines []runLine
	for _, by := range []record.Actor{record.API, record.Leader} {
		lines = append(lines,
			runLine{record.RunNone, no, record.RunRunning, no, by},
			runLine{record.RunNone, no, record.RunQueued, no, by},
		)
	}
	for _, s := range []record.RunState{record.RunQueued, record.RunRunning} {
		lines = append(lines,
			runLine{s, no, record.RunCancelling, no, record.Operator},
			runLine{s, no, s, no, record.Operator},
		)
	}
	for _, s := range []record.RunState{record.RunSuccess, record.RunFailed, record.RunCancelled} {
		from := record.RunRunning
		if s == record.RunCancelled {
			from = record.RunCancelling
		}
		lines = append(lines,
			runLine{from, no, s, ending, record.Leader},
			runLine{s, ending, record.RunRunning, reopening, record.Operator},
		)
	}
	return append(lines,
		runLine{record.RunQueued, no, record.RunRunning, no, record.Leader},
		runLine{record.RunRunning, reopening, record.RunRunning, no, record.Leader},
	)
}

// voices are the actors that may write under a name such as replica/r1. A
// gateway writes on the word of a session; that of the attested loss may be
// its own.
func voices(by string) []record.Actor {
	kind, id, ok := strings.Cut(by, "/")
	switch {
	case !ok || id == "":
		return nil
	case kind == "replica":
		return []record.Actor{record.Leader, record.API, record.Gateway}
	case kind == "session":
		return []record.Actor{record.Gateway}
	case kind == "person":
		return []record.Actor{record.Operator, record.API}
	default:
		return nil
	}
}

// stage is the stage that a row is in.
func stage(w row) record.Stage {
	switch {
	case !w.here():
		return none
	case w.State != record.Queued:
		return record.Stage(w.State)
	case w.Token == "":
		return waiting
	default:
		return intent
	}
}

// legal says whether the relation knows a transition of a row by whoever is
// named, and whether it belongs to the rule.
func (a *Auditor) legal(from, to record.Stage, kind record.Kind, t record.Transition) (known, fits bool) {
	may := voices(t.By)
	for _, l := range a.lines {
		if l.from != from || l.to != to || !slices.Contains(l.kinds, kind) || !slices.Contains(may, l.by) {
			continue
		}
		known = true
		// Only a session's own word ends or starts what it was given.
		own := l.by != record.Gateway || t.Rule == record.RuleLost || strings.HasPrefix(t.By, "session/")
		if own && slices.Contains(l.rules, t.Rule) {
			return true, true
		}
	}
	return known, false
}

// legalRun says the same of a run, of which the rule says nothing more.
func (a *Auditor) legalRun(from, to record.Run, by string) bool {
	may := voices(by)
	return slices.ContainsFunc(a.runLines, func(l runLine) bool {
		return l.from == from.State && l.in == from.Phase && l.to == to.State && l.into == to.Phase && slices.Contains(may, l.by)
	})
}
