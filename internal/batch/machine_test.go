package batch_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/record"
)

var errBad = errors.New("bad request")

// row makes a change that inserts the n-th attempt row of a task of run a.b and
// expects the run at revision 7.
func row(n int) record.Change {
	return put(record.AttemptKey(record.TaskRef{Run: "a.b", Task: "t"}.At(n)), record.At(record.RunKey("a.b"), 7))
}

// put makes a change that puts one row if it is absent.
func put(k record.Key, expect ...record.Expect) record.Change {
	write := record.WriteID("w-" + k.Name + string(k.Task) + fmt.Sprint(k.N))
	value := record.Attempt{Transitions: []record.Transition{{State: "queued", Write: write}}}
	return record.Change{
		Rule: record.RuleStart, Write: write, Expect: append([]record.Expect{record.Absent(k)}, expect...),
		Put: []record.Put{{Key: k, Value: value}},
	}
}

// cancel makes a change that rewrites run a.b at revision 7.
func cancel() record.Change {
	return record.Change{
		Rule: record.RuleCancel, Write: "c", Expect: []record.Expect{record.At(record.RunKey("a.b"), 7)},
		Put: []record.Put{{Key: record.RunKey("a.b"), Value: record.Run{Transitions: []record.Transition{{Write: "c"}}}}},
	}
}

func submit(id batch.ID, c record.Change) batch.Submit {
	return batch.Submit{ID: id, Change: c, Ops: batch.Width(c), Bytes: 100}
}

func committed(n int) []record.Outcome {
	list := make([]record.Outcome, n)
	for i := range list {
		list[i] = record.Outcome{Verdict: record.Committed, Rev: 9}
	}
	return list
}

func answered(txn batch.Txn, n int) batch.Done {
	return batch.Done{Txn: txn, Class: batch.Answered, Outcomes: committed(n)}
}

func report(id batch.ID) batch.Report {
	return batch.Report{ID: id, Outcome: record.Outcome{Verdict: record.Committed, Rev: 9}}
}

func TestIdleMachineSendsAtOnceAndABusyOneGathers(t *testing.T) {
	t.Parallel()
	m := batch.New(batch.Limits{Txns: 2})
	require.Equal(t, []batch.Output{batch.Send{Txn: 1, Items: []batch.ID{1}}}, m.Step(submit(1, row(1))))
	require.Equal(t, []batch.Output{batch.Send{Txn: 2, Items: []batch.ID{2}}}, m.Step(submit(2, row(2))))
	for id := batch.ID(3); id <= 5; id++ {
		require.Empty(t, m.Step(submit(id, row(int(id)))))
	}
	require.Equal(t, []batch.Output{
		report(2), batch.Send{Txn: 3, Items: []batch.ID{3, 4, 5}},
	}, m.Step(answered(2, 1)))
	require.Equal(t, []batch.Output{report(1)}, m.Step(answered(1, 1)))
	require.Equal(t, []batch.Output{report(3), report(4), report(5)}, m.Step(answered(3, 3)))
	require.Zero(t, m.Unsettled())
}

func TestLaterOfTwoThatClashWaitsForTheEarlier(t *testing.T) {
	t.Parallel()
	m := batch.New(batch.Limits{})
	m.Step(submit(1, row(1)))
	require.Empty(t, m.Step(submit(2, cancel())), "it rewrites what the row expects")
	require.Empty(t, m.Step(submit(3, row(2))), "it expects what the cancel rewrites")
	require.NotEmpty(t, m.Step(submit(4, put(record.AttemptKey(record.TaskRef{Run: "a.c", Task: "t"}.At(1))))), "another run")
	require.Equal(t, []batch.Output{report(1), batch.Send{Txn: 3, Items: []batch.ID{2}}}, m.Step(answered(1, 1)))
	require.Equal(t, []batch.Output{report(2), batch.Send{Txn: 4, Items: []batch.ID{3}}}, m.Step(answered(3, 1)))
}

func TestChangeThatIsGivenUpStillStandsBetweenThoseAroundIt(t *testing.T) {
	t.Parallel()
	m := batch.New(batch.Limits{})
	m.Step(submit(1, row(1)))
	m.Step(submit(2, cancel()))
	m.Step(submit(3, row(1)))
	unknown := batch.Report{ID: 2, Outcome: record.Outcome{Verdict: record.Unknown}}
	require.Equal(t, []batch.Output{unknown}, m.Step(batch.GiveUp{ID: 2}), "3 clashes with 1, which is in flight")
	require.Empty(t, m.Step(batch.GiveUp{ID: 2}))
	require.Equal(t, []batch.Output{report(1), batch.Send{Txn: 2, Items: []batch.ID{3}}}, m.Step(answered(1, 1)))
}

func TestChangeGivenUpInFlightIsReportedOnceAndHoldsItsPlace(t *testing.T) {
	t.Parallel()
	m := batch.New(batch.Limits{})
	m.Step(submit(1, row(1)))
	m.Step(submit(2, cancel()))
	require.Len(t, m.Step(batch.GiveUp{ID: 1}), 1)
	require.Equal(t, []batch.Output{batch.Send{Txn: 2, Items: []batch.ID{2}}}, m.Step(batch.Done{Txn: 1, Class: batch.Lost}),
		"nobody waits for it, so it is not sent again")
	require.Equal(t, []batch.Output{report(2)}, m.Step(answered(2, 1)))
	require.Empty(t, m.Step(answered(1, 1)), "an answer that nobody waits for")
	require.Zero(t, m.Unsettled())
}

func TestLimitsAreOnItemsWithTheWidestAndOnBytes(t *testing.T) {
	t.Parallel()
	m := batch.New(batch.Limits{Txns: 1, Ops: 10, Bytes: 1000})
	m.Step(submit(1, row(1)))
	ops := func(id batch.ID, ops, bytes int) {
		s := submit(id, row(int(id)))
		s.Ops, s.Bytes = ops, bytes
		require.Empty(t, m.Step(s))
	}
	for id := batch.ID(2); id <= 8; id++ {
		ops(id, 3, 10)
	}
	ops(9, 8, 10)
	ops(10, 3, 700)
	ops(11, 3, 700)
	ops(12, 20, 5000)
	var sent [][]batch.ID
	for txn, n := batch.Txn(1), 1; m.Unsettled() > 0; txn++ {
		for _, out := range m.Step(answered(txn, n)) {
			if s, ok := out.(batch.Send); ok {
				sent = append(sent, s.Items)
				n = len(s.Items)
			}
		}
	}
	require.Equal(t, [][]batch.ID{{2, 3, 4, 5, 6, 7, 8}, {9, 10}, {11}, {12}}, sent)
}

func TestLostAnswerIsAskedForByTheSameChanges(t *testing.T) {
	t.Parallel()
	m := batch.New(batch.Limits{Txns: 1})
	m.Step(submit(1, row(1)))
	m.Step(submit(2, row(2)))
	m.Step(submit(3, row(3)))
	m.Step(answered(1, 1))
	require.Equal(t, []batch.Output{batch.Send{Txn: 2, Items: []batch.ID{2, 3}, Try: 1}}, m.Step(batch.Done{Txn: 2, Class: batch.Lost}))
	require.Empty(t, m.Step(submit(4, row(4))), "the same again, and nothing else")
	require.Equal(t, []batch.Output{batch.Send{Txn: 2, Items: []batch.ID{2, 3}, Try: 2}}, m.Step(batch.Done{Txn: 2, Class: batch.Busy}))
}

func TestOneBadChangeFailsAlone(t *testing.T) {
	t.Parallel()
	m := batch.New(batch.Limits{Txns: 1})
	m.Step(submit(100, row(100)))
	for id := batch.ID(1); id <= 7; id++ {
		m.Step(submit(id, row(int(id))))
	}
	const bad = 5
	todo := m.Step(answered(1, 1))
	reports := map[batch.ID]batch.Report{}
	for len(todo) > 0 {
		out := todo[0]
		todo = todo[1:]
		if r, ok := out.(batch.Report); ok {
			reports[r.ID] = r
			continue
		}
		send := out.(batch.Send)
		done := answered(send.Txn, len(send.Items))
		for _, id := range send.Items {
			if id == bad {
				done = batch.Done{Txn: send.Txn, Class: batch.Refused, Err: errBad}
			}
		}
		todo = append(todo, m.Step(done)...)
	}
	require.Len(t, reports, 8)
	for id, r := range reports {
		if id == bad {
			require.Equal(t, batch.Report{ID: id, Outcome: record.Outcome{Verdict: record.Conflict}, Err: errBad}, r)
		} else {
			require.Equal(t, report(id), r)
		}
	}
}

func TestWhatNothingCanProveIsUnknownAfterALostAnswer(t *testing.T) {
	t.Parallel()
	conflict := []record.Outcome{{Verdict: record.Conflict}}
	remove := record.Change{Rule: record.RuleProve, Expect: []record.Expect{record.Present(record.PoolKey("p"))}, Delete: []record.Delete{record.Remove(record.PoolKey("p"))}}
	for name, c := range map[string]struct {
		change record.Change
		then   batch.Done
		want   record.Verdict
	}{
		"a delete that finds nothing": {remove, batch.Done{Txn: 1, Class: batch.Answered, Outcomes: conflict}, record.Unknown},
		"a lease that died meanwhile": {row(1), batch.Done{Txn: 1, Class: batch.Refused, Err: errBad}, record.Unknown},
		"a row that does not bear it": {row(1), batch.Done{Txn: 1, Class: batch.Answered, Outcomes: conflict}, record.Conflict},
	} {
		m := batch.New(batch.Limits{})
		m.Step(submit(1, c.change))
		m.Step(batch.Done{Txn: 1, Class: batch.Lost})
		out := m.Step(c.then)
		require.Len(t, out, 1, name)
		require.Equal(t, batch.Report{ID: 1, Outcome: record.Outcome{Verdict: c.want}}, out[0], name)
	}
}

func TestInputAboutWhatIsNotKnownIsIgnored(t *testing.T) {
	t.Parallel()
	m := batch.New(batch.Limits{})
	require.Empty(t, m.Step(answered(7, 1)))
	require.Empty(t, m.Step(batch.GiveUp{ID: 7}))
	m.Step(submit(1, row(1)))
	require.Empty(t, m.Step(submit(1, row(1))))
	again := batch.Send{Txn: 1, Items: []batch.ID{1}, Try: 1}
	require.Equal(t, []batch.Output{again}, m.Step(batch.Done{Txn: 1, Class: batch.Answered}), "an answer without outcomes is none")
}

func TestJudgeGoesByTheWriteIDAlone(t *testing.T) {
	t.Parallel()
	c := row(1)
	key := c.Put[0].Key
	require.Equal(t, []record.Key{key, record.RunKey("a.b")}, batch.Reads(c))
	require.Equal(t, 2, batch.Width(c))

	ours := []record.Stored{{Key: key, Value: c.Put[0].Value, ModRev: 5}, {Key: record.RunKey("a.b")}}
	require.Equal(t, record.Outcome{Verdict: record.Committed, Rev: 5}, batch.Judge(c, ours))

	other := record.Attempt{Token: "same", Transitions: []record.Transition{{Write: "another"}}}
	theirs := []record.Stored{{Key: key, Value: other, ModRev: 5}, {Key: record.RunKey("a.b")}}
	require.Equal(t, record.Outcome{Verdict: record.Conflict, Seen: theirs}, batch.Judge(c, theirs))
}

// BenchmarkSubmitBehindAHotKey shows that the cost of one change does not grow
// with the number of those that wait and expect the same run.
func BenchmarkSubmitBehindAHotKey(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				m := batch.New(batch.Limits{})
				for i := range n {
					m.Step(submit(batch.ID(i), row(i+1)))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*b.N), "ns/change")
		})
	}
}

func TestNeighbourOfABadChangeThatIsGivenUpIsTriedAlone(t *testing.T) {
	t.Parallel()
	m := batch.New(batch.Limits{Txns: 1})
	for id := batch.ID(1); id <= 3; id++ {
		m.Step(submit(id, row(int(id))))
	}
	m.Step(answered(1, 1))
	m.Step(batch.GiveUp{ID: 2})
	require.Equal(t, []batch.Output{batch.Send{Txn: 3, Items: []batch.ID{3}}}, m.Step(batch.Done{Txn: 2, Class: batch.Refused, Err: errBad}))
}
