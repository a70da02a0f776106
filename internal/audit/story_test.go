package audit_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/audit"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// story tells a correct history, one revision after another. Revisions lie ten
// apart, so that a test can put others between them.
type story struct {
	t      testing.TB
	rev    int64
	keys   map[record.Key]record.Stored
	events []record.Events
	flows  map[string]*spec.Workflow
	now    time.Time
	count  int
	seen   []audit.Observed
}

func newStory(t testing.TB) *story {
	t.Helper()
	return &story{
		t: t, keys: map[record.Key]record.Stored{}, flows: map[string]*spec.Workflow{},
		now: time.Date(2026, 12, 1, 2, 30, 0, 0, time.UTC),
	}
}

// commit makes one revision of puts and deletes.
func (s *story) commit(put []record.Put, deleted ...record.Delete) {
	s.rev += 10
	s.now = s.now.Add(time.Second)
	var list []record.Event
	for _, d := range deleted {
		for k := range s.keys {
			if d.Over && d.Range.Has(k) || !d.Over && d.Key == k {
				list = append(list, record.Event{Key: k, ModRev: s.rev})
				delete(s.keys, k)
			}
		}
	}
	slices.SortFunc(list, func(x, y record.Event) int { return strings.Compare(fmt.Sprint(x.Key), fmt.Sprint(y.Key)) })
	for _, p := range put {
		create := s.rev
		if old, ok := s.keys[p.Key]; ok {
			create = old.CreateRev
		}
		s.keys[p.Key] = record.Stored{Key: p.Key, Value: p.Value, CreateRev: create, ModRev: s.rev}
		list = append(list, record.Event{Key: p.Key, Value: p.Value, CreateRev: create, ModRev: s.rev})
	}
	s.events = append(s.events, record.Events{Rev: s.rev, Events: list})
}

func (s *story) write() record.WriteID {
	s.count++
	return record.WriteID(fmt.Sprintf("writewritew%05d", s.count))
}

// task makes a task of a spec.
func task(id string, needs ...string) spec.Task {
	t := spec.Task{ID: record.TaskID(id), Run: "true", Idempotent: true}
	for _, n := range needs {
		t.Needs = append(t.Needs, record.TaskID(n))
	}
	return t
}

// flow adds the workflow that all stories are about.
func (s *story) flow(tasks ...spec.Task) *spec.Workflow {
	w := &spec.Workflow{Name: "etl", Tasks: tasks}
	s.flows["etl"] = w
	return w
}

func (s *story) enlist(session string, slots int) {
	w := s.write()
	s.commit([]record.Put{
		{Key: record.WorkerKey("w", record.SessionID(session)), Value: record.Worker{Worker: "w", Session: record.SessionID(session), Slots: slots, Write: w}},
		{Key: record.SessionKey("w", record.SessionID(session)), Value: record.Session{Worker: "w", Session: record.SessionID(session), Write: w}},
	})
}

func (s *story) run(id record.RunID) record.Run {
	r, ok := s.keys[record.RunKey(id)].Value.(record.Run)
	require.True(s.t, ok, "run %s", id)
	return r
}

// moved is a run after a step.
func (s *story) moved(r record.Run, to record.RunState, phase record.Phase, by record.Actor) record.Run {
	who := "replica/r1"
	if by == record.Operator || by == record.API {
		who = "person/ann"
	}
	next, err := r.Move(record.RunMove{To: to, Phase: phase, By: by, Who: who, At: s.now, Rule: record.RuleCreate, Write: s.write()})
	require.NoError(s.t, err)
	return next
}

func (s *story) start(id record.RunID, change ...func(*record.Run)) {
	r := record.Run{Schema: record.Schema, Run: id, Workflow: id.Workflow(), Revision: 1, Trigger: record.TriggerManual}
	for _, f := range change {
		f(&r)
	}
	s.commit([]record.Put{{Key: record.RunKey(id), Value: s.moved(r, record.RunRunning, record.PhaseNone, record.API)}})
}

// operate is what a person does to a run.
func (s *story) operate(id record.RunID, to record.RunState, change func(*record.Run), beside ...record.Put) {
	next := s.moved(s.run(id), to, record.PhaseNone, record.Operator)
	if change != nil {
		change(&next)
	}
	s.commit(append(beside, record.Put{Key: record.RunKey(id), Value: next}))
}

func (s *story) clear(id record.RunID, tasks ...record.TaskID) {
	n := s.run(id).Clears + 1
	s.operate(id, s.run(id).State, func(r *record.Run) { r.Clears = n }, record.Put{
		Key: record.ClearKey(id, n), Value: record.Clear{Run: id, Seq: n, Tasks: tasks, By: "ann", Write: s.write()},
	})
}

// ref reads a name such as run/task/2.
func ref(name string) record.Ref {
	part := strings.Split(name, "/")
	n := 0
	for _, c := range part[2] {
		n = 10*n + int(c-'0')
	}
	return record.TaskRef{Run: record.RunID(part[0]), Task: record.TaskID(part[1])}.At(n)
}

func (s *story) row(name string) record.Attempt {
	a, _ := s.keys[record.AttemptKey(ref(name))].Value.(record.Attempt)
	return a
}

// blank is a row in no state yet, made from the spec and the row before it.
func (s *story) blank(name string) record.Attempt {
	r := ref(name)
	a := record.Attempt{Schema: record.Schema, Run: r.Run, Task: r.Task, Attempt: r.N, Kind: record.KindExec, Queue: spec.DefaultQueue}
	w := s.flows[string(r.Run.Workflow())]
	for i := range w.Tasks {
		if t := &w.Tasks[i]; t.ID == r.Task {
			a.Idempotent, a.OnLost = t.Idempotent, t.Lost()
		}
	}
	prev, ok := s.keys[record.AttemptKey(r.TaskRef.At(r.N-1))].Value.(record.Attempt)
	if ok && prev.State == record.Failed {
		a.Failures = prev.Failures + 1
	}
	return a
}

// step moves a row, or makes it.
func (s *story) step(name string, to record.AttemptState, by record.Actor, rule record.Rule, change ...func(*record.Attempt)) record.Put {
	a := s.row(name)
	if a.State == record.None {
		a = s.blank(name)
	}
	st := record.Step{To: to, By: by, Who: "replica/r1", At: s.now, Rule: rule, Write: s.write(), Term: 3}
	switch by {
	case record.Gateway:
		st.Who, st.Term = "session/"+string(a.Session), 0
	case record.Operator:
		st.Who, st.Term = "person/ann", 0
	default:
	}
	if rule == record.RuleStart || rule == record.RuleDispatch {
		st.Token, st.Worker, st.Session = record.Token("token-"+name), "w", "s-1"
	}
	for _, f := range change {
		f(&a)
	}
	next, err := a.Move(st)
	require.NoError(s.t, err)
	return record.Put{Key: record.AttemptKey(ref(name)), Value: next}
}

// dispatch writes the intent of an attempt, and occupies its keys.
func (s *story) dispatch(name string, change ...func(*record.Attempt)) {
	rule := record.RuleStart
	if s.row(name).State == record.Queued {
		rule = record.RuleDispatch
	}
	p := s.step(name, record.Queued, record.Leader, rule, change...)
	puts := []record.Put{p}
	for _, k := range p.Value.(record.Attempt).Keys {
		puts = append(puts, record.Put{Key: record.HolderKey(k, 0), Value: record.Holder{Holder: k, Attempt: ref(name), Write: s.write()}})
	}
	s.commit(puts)
}

func (s *story) claim(name string) {
	s.commit([]record.Put{s.step(name, record.Running, record.Gateway, record.RuleClaim, func(a *record.Attempt) { a.TTL = record.Duration(time.Minute) })})
	s.seen = append(s.seen, audit.Observed{Token: s.row(name).Token, Worker: "w", Start: s.now, End: s.now.Add(time.Second / 2), Rev: s.rev})
}

// report ends an attempt by its session's word.
func (s *story) report(name string, to record.AttemptState) {
	p := s.step(name, to, record.Gateway, record.RuleFinish)
	a := p.Value.(record.Attempt)
	if to == record.Failed {
		a.Cause, a.Exit = record.Because(record.CauseExitCode, ""), &record.Exit{Code: 1}
		p.Value = a
	}
	var freed []record.Delete
	for _, k := range a.Keys {
		freed = append(freed, record.Remove(record.HolderKey(k, 0)))
	}
	s.commit([]record.Put{p}, freed...)
}

// lead is a step of a row by the leader.
func (s *story) lead(name string, to record.AttemptState, rule record.Rule, change ...func(*record.Attempt)) {
	s.commit([]record.Put{s.step(name, to, record.Leader, rule, change...)})
}

// live runs an attempt to its end.
func (s *story) live(name string, to record.AttemptState) {
	s.dispatch(name)
	s.claim(name)
	s.report(name, to)
}

// close makes the terminal state of a run.
func (s *story) close(id record.RunID, to record.RunState) {
	next := s.moved(s.run(id), to, record.PhaseEnding, record.Leader)
	next.Pages = 1
	s.commit([]record.Put{{Key: record.RunKey(id), Value: next}})
}

// end writes the document of a run in phase ending.
func (s *story) end(id record.RunID) {
	var rows []record.EndedRow
	head := record.Ended{Run: s.run(id), RunRev: s.keys[record.RunKey(id)].ModRev, Pages: 1, Write: s.write()}
	for _, k := range slices.SortedFunc(maps.Keys(s.keys), func(x, y record.Key) int {
		return cmp.Or(cmp.Compare(x.Task, y.Task), cmp.Compare(x.N, y.N))
	}) {
		kept := s.keys[k]
		if k.Run != id {
			continue
		}
		switch v := kept.Value.(type) {
		case record.Attempt:
			rows = append(rows, record.EndedRow{Attempt: v, CreateRev: v.FirstRev(kept.CreateRev), ModRev: kept.ModRev})
		case record.Clear:
			head.Clears = append(head.Clears, record.EndedClear{Clear: v, CreateRev: cmp.Or(v.Rev, kept.CreateRev)})
		case record.Unproven:
			head.Unproven = append(head.Unproven, v)
		}
	}
	head.Attempts = len(rows)
	s.commit([]record.Put{{Key: record.PageKey(id, 1), Value: record.EndedPage{Run: id, Page: 1, Rows: rows, Write: s.write()}}})
	s.commit([]record.Put{{Key: record.EndedKey(id), Value: head}}, record.Remove(record.RunKey(id)), record.RemoveAll(record.AttemptsOf(id)),
		record.RemoveAll(record.OfRun(record.FamilyClear, id)), record.RemoveAll(record.OfRun(record.FamilyUnproven, id)))
}

// reopen clears tasks of an ended run, and restores its rows.
func (s *story) reopen(id record.RunID, tasks ...record.TaskID) {
	head := s.keys[record.EndedKey(id)].Value.(record.Ended)
	page := s.keys[record.PageKey(id, 1)].Value.(record.EndedPage)
	next := s.moved(head.Run, record.RunRunning, record.PhaseReopening, record.Operator)
	next.Clears++
	puts := []record.Put{
		{Key: record.RunKey(id), Value: next},
		{Key: record.ClearKey(id, next.Clears), Value: record.Clear{Run: id, Seq: next.Clears, Tasks: tasks, By: "ann", Write: s.write()}},
	}
	for _, c := range head.Clears {
		c.Clear.Rev = c.CreateRev
		puts = append(puts, record.Put{Key: record.ClearKey(id, c.Clear.Seq), Value: c.Clear})
	}
	s.commit(puts, record.Remove(record.EndedKey(id)))
	puts = nil
	for _, r := range page.Rows {
		r.Attempt.Fence = r.CreateRev
		puts = append(puts, record.Put{Key: record.AttemptKey(r.Attempt.Ref()), Value: r.Attempt})
	}
	s.commit(puts)
	s.commit([]record.Put{{Key: record.RunKey(id), Value: s.moved(s.run(id), record.RunRunning, record.PhaseNone, record.Leader)}},
		record.RemoveAll(record.OfRun(record.FamilyPage, id)))
}

// history is what an auditor reads.
type history struct {
	t      testing.TB
	flows  map[string]*spec.Workflow
	events []record.Events
	seen   []audit.Observed
	quiet  bool
}

// history copies what was told so far.
func (s *story) history() history {
	h := history{t: s.t, flows: map[string]*spec.Workflow{}, seen: slices.Clone(s.seen)}
	for name, w := range s.flows {
		kept := *w
		kept.Tasks = slices.Clone(w.Tasks)
		h.flows[name] = &kept
	}
	for _, e := range s.events {
		h.events = append(h.events, record.Events{Rev: e.Rev, Events: slices.Clone(e.Events)})
	}
	return h
}

// auditor reads a history whole.
func (h history) auditor() *audit.Auditor {
	h.t.Helper()
	a := audit.New(audit.Options{Quiet: h.quiet})
	for _, w := range h.flows {
		a.Spec(w.Name, 1, w)
	}
	for _, o := range h.seen {
		a.Observe(o)
	}
	for _, e := range h.events {
		require.NoError(h.t, a.Feed(e))
	}
	return a
}
