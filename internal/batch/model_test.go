package batch_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/record"
)

// poison is the lease that the model refuses.
const poison = 13

// model is a store, the shell of a machine, and what was seen of both.
type model struct {
	t       *rapid.T
	limits  batch.Limits
	machine *batch.Machine

	rev     int64
	records map[record.Key]record.Stored
	made    map[record.WriteID]int

	changes  []batch.Submit // by ID
	reported map[batch.ID]record.Outcome
	flight   map[batch.Txn][]batch.ID
	zombies  [][]batch.ID
}

func (m *model) change(id batch.ID) record.Change { return m.changes[id].Change }

// txn makes changes as etcd does, or returns false where it refuses them all.
func (m *model) txn(ids []batch.ID) ([]record.Outcome, bool) {
	outcomes := make([]record.Outcome, len(ids))
	var win []record.Change
	for i, id := range ids {
		c := m.change(id)
		if slices.ContainsFunc(c.Expect, func(e record.Expect) bool { return !m.holds(e) }) {
			var seen []record.Stored
			for _, k := range batch.Reads(c) {
				at := m.records[k]
				at.Key = k
				seen = append(seen, at)
			}
			outcomes[i] = batch.Judge(c, seen)
			continue
		}
		if slices.ContainsFunc(c.Put, func(p record.Put) bool { return p.Lease == poison }) {
			return nil, false
		}
		win = append(win, c)
		outcomes[i] = record.Outcome{Verdict: record.Committed, Rev: m.rev + 1}
	}
	if len(win) > 0 {
		m.rev++
	}
	for _, c := range win {
		m.made[c.Write]++
		for _, p := range c.Put {
			value := p.Value
			if row, ok := value.(record.Attempt); ok {
				// A row keeps its transitions, so that each write is found in it.
				before, _ := m.records[p.Key].Value.(record.Attempt)
				row.Transitions = append(slices.Clip(before.Transitions), row.Transitions...)
				value = row
			}
			m.records[p.Key] = record.Stored{Key: p.Key, Value: value, ModRev: m.rev}
		}
		for _, d := range c.Delete {
			for k := range m.records {
				if d.Over && d.Range.Has(k) || !d.Over && d.Key == k {
					delete(m.records, k)
				}
			}
		}
	}
	return outcomes, true
}

func (m *model) holds(e record.Expect) bool {
	if !e.Ranged() {
		return m.records[e.Key].ModRev == e.Rev
	}
	for k, at := range m.records {
		if e.Range.Has(k) && at.ModRev > e.Rev {
			return false
		}
	}
	return true
}

// draw makes a random change. It expects what it rewrites, so that it is made
// once at most, whatever is sent again.
func (m *model) draw() record.Change {
	t := m.t
	task := record.TaskRef{Run: rapid.SampledFrom([]record.RunID{"a.b", "a.bb"}).Draw(t, "run"), Task: rapid.SampledFrom([]record.TaskID{"t", "u"}).Draw(t, "task")}
	id := record.WriteID(fmt.Sprintf("w%d", len(m.changes)))
	value := record.Attempt{Transitions: []record.Transition{{Write: id}}}
	key := record.AttemptKey(task.At(rapid.IntRange(1, 2).Draw(t, "n")))
	rev := m.records[key].ModRev
	if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
		rev++
	}
	c := record.Change{Rule: record.RuleStart, Write: id, Expect: []record.Expect{record.At(key, rev)}, Put: []record.Put{{Key: key, Value: value}}}
	mark := record.UnprovenKey(task.At(1))
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		c.Put[0].Lease = poison
	case 1:
		c.Put = append(c.Put, record.Put{Key: mark, Value: record.Unproven{Write: id}})
	case 2:
		c.Expect = append(c.Expect, record.Empty(record.UnprovenOf(task)))
	case 3:
		c.Expect = append(c.Expect, record.Unchanged(record.OfRun(record.FamilyUnproven, task.Run), m.rev))
	case 4:
		c.Delete = []record.Delete{record.RemoveAll(record.OfRun(record.FamilyUnproven, task.Run))}
	case 5:
		c.Delete = []record.Delete{record.Remove(mark)}
	case 6:
		c.Expect = append(c.Expect, record.At(mark, m.records[mark].ModRev))
	}
	return c
}

func (m *model) submit() {
	c := m.draw()
	s := batch.Submit{ID: batch.ID(len(m.changes)), Change: c, Ops: batch.Width(c) + rapid.IntRange(0, 3).Draw(m.t, "wide"), Bytes: rapid.IntRange(1, 60).Draw(m.t, "bytes")}
	m.changes = append(m.changes, s)
	m.step(s)
}

// answer lets one Txn in flight come to an end of some kind.
func (m *model) answer(fault int) {
	if len(m.flight) == 0 {
		return
	}
	txns := make([]batch.Txn, 0, len(m.flight))
	for txn := range m.flight {
		txns = append(txns, txn)
	}
	slices.Sort(txns)
	txn := rapid.SampledFrom(txns).Draw(m.t, "txn")
	ids := m.flight[txn]
	delete(m.flight, txn)
	done := batch.Done{Txn: txn, Class: batch.Lost}
	switch fault {
	case 1: // never made
	case 2:
		m.txn(ids)
	case 3:
		m.zombies = append(m.zombies, ids)
	case 4:
		done.Class = batch.Busy
	default:
		outcomes, ok := m.txn(ids)
		done = batch.Done{Txn: txn, Class: batch.Answered, Outcomes: outcomes}
		if !ok {
			done = batch.Done{Txn: txn, Class: batch.Refused, Err: errBad}
		}
	}
	m.step(done)
}

func (m *model) step(in batch.Input) {
	outs := m.machine.Step(in)
	for _, out := range outs {
		if r, ok := out.(batch.Report); ok {
			m.hear(r)
		}
	}
	for _, out := range outs {
		if s, ok := out.(batch.Send); ok {
			m.check(s)
			m.flight[s.Txn] = s.Items
		}
	}
	require.LessOrEqual(m.t, len(m.flight), m.limits.Txns)
}

// hear checks that a report is the only one, and true.
func (m *model) hear(r batch.Report) {
	require.NotContains(m.t, m.reported, r.ID)
	m.reported[r.ID] = r.Outcome
	made := m.made[m.change(r.ID).Write]
	switch r.Outcome.Verdict {
	case record.Committed:
		require.Equal(m.t, 1, made, "%+v", m.change(r.ID))
	case record.Conflict:
		require.Zero(m.t, made, "%+v", m.change(r.ID))
	case record.Unknown:
	}
	if r.Err != nil {
		require.Equal(m.t, int64(poison), m.change(r.ID).Put[0].Lease, "a neighbour was refused")
	}
}

// check checks what is sent against everything that is not settled.
func (m *model) check(s batch.Send) {
	widest, bytes := 0, 0
	for i, id := range s.Items {
		c := m.changes[id]
		widest, bytes = max(widest, c.Ops), bytes+c.Bytes
		for _, other := range s.Items[:i] {
			require.False(m.t, c.Change.Clashes(m.change(other)), "two that clash share a Txn")
		}
		for before := range id {
			if _, told := m.reported[before]; !told && !slices.Contains(s.Items, before) {
				require.False(m.t, c.Change.Clashes(m.change(before)), "%d overtakes %d", id, before)
			}
		}
		for txn, flying := range m.flight {
			for _, other := range flying {
				require.False(m.t, txn != s.Txn && c.Change.Clashes(m.change(other)), "%d flies beside %d", id, other)
			}
		}
	}
	if len(s.Items) > 1 {
		require.LessOrEqual(m.t, len(s.Items)+widest, m.limits.Ops)
		require.LessOrEqual(m.t, bytes, m.limits.Bytes)
	}
}

func TestMachineKeepsItsPromisesOverAStoreWithFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limits := batch.Limits{Txns: rapid.IntRange(1, 3).Draw(t, "txns"), Ops: 10, Bytes: 200}
		m := &model{
			t: t, limits: limits, machine: batch.New(limits), records: map[record.Key]record.Stored{}, made: map[record.WriteID]int{},
			reported: map[batch.ID]record.Outcome{}, flight: map[batch.Txn][]batch.ID{},
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "act") {
			case 0:
				m.answer(rapid.IntRange(0, 4).Draw(t, "fault"))
			case 1, 2:
				m.answer(0)
			case 3:
				if len(m.zombies) > 0 {
					m.txn(m.zombies[0])
					m.zombies = m.zombies[1:]
				}
			case 4:
				if len(m.changes) > 0 {
					m.step(batch.GiveUp{ID: batch.ID(rapid.IntRange(0, len(m.changes)-1).Draw(t, "given up"))})
				}
			default:
				m.submit()
			}
		}
		for len(m.flight) > 0 {
			m.answer(0)
		}
		require.Zero(t, m.machine.Unsettled())
		require.Len(t, m.reported, len(m.changes), "every change is reported")
		for _, zombie := range m.zombies {
			m.txn(zombie)
		}
		for write, n := range m.made {
			require.Equal(t, 1, n, "%s was made more than once", write)
		}
	})
}
