package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
)

func everyExpectation(t *testing.T, b *bench) {
	t.Helper()
	rev := b.commit(t, putRun(0, record.RunRunning, "w1"))
	later := b.commit(t, insert("a.b", "t", 1))
	there, gone := record.RunKey("a.b"), record.RunKey("a.c")
	rows := record.AttemptsOf("a.b")
	for i, c := range []struct {
		expect record.Expect
		holds  bool
	}{
		{record.Absent(gone), true},
		{record.Absent(there), false},
		{record.Present(there), true},
		{record.Present(gone), false},
		{record.At(there, rev), true},
		{record.At(there, rev-1), false},
		{record.At(there, 0), false},
		{record.At(gone, 0), true},
		{record.At(gone, rev), false},
		{record.CreatedAt(there, rev), true},
		{record.CreatedAt(there, later), false},
		{record.CreatedAt(gone, rev), false},
		{record.Empty(rows), false},
		{record.Empty(record.AttemptsOf("a.c")), true},
		{record.Empty(record.UnprovenOf(record.TaskRef{Run: "a.b", Task: "t"})), true},
		{record.Unchanged(rows, later), true},
		{record.Unchanged(rows, later-1), false},
		{record.Unchanged(record.AttemptsOf("a.c"), 1), true},
	} {
		o := b.try(t, insert("other.run", "t", i+1, c.expect))
		want := record.Conflict
		if c.holds {
			want = record.Committed
		}
		require.Equal(t, want, o.Verdict, "%d: %+v", i, c.expect)
		require.Equal(t, c.holds, b.get(t, record.AttemptKey(record.TaskRef{Run: "other.run", Task: "t"}.At(i+1))).ModRev != 0)
	}
}

func conflictShows(t *testing.T, b *bench) {
	t.Helper()
	rev := b.commit(t, putRun(0, record.RunRunning, "w1"))
	c := insert("a.b", "t", 1, record.At(record.RunKey("a.b"), rev+1), record.Absent(record.RunKey("a.c")))
	o := b.try(t, c)
	require.Equal(t, record.Conflict, o.Verdict)
	require.Len(t, o.Seen, 3)
	require.Equal(t, record.Stored{Key: c.Put[0].Key}, o.Seen[0])
	require.Equal(t, record.Stored{Key: record.RunKey("a.c")}, o.Seen[2])
	run, ok := o.Find(record.RunKey("a.b"))
	require.True(t, ok)
	require.Equal(t, b.get(t, record.RunKey("a.b")), run)
	require.Equal(t, rev, run.ModRev)
}

func neighbours(t *testing.T, b *bench) {
	t.Helper()
	b.commit(t, insert("a.b", "t", 7))
	b.hold(t)
	var changes []record.Change
	for n := 1; n <= 20; n++ {
		changes = append(changes, insert("a.b", "t", n))
	}
	outcomes := b.submitAll(t, changes...)
	b.Faults.Release()
	for i, o := range outcomes() {
		if i+1 == 7 {
			// It bears the same write id, as its own first try would.
			require.Equal(t, record.Committed, o.Verdict)
			continue
		}
		require.Equal(t, record.Committed, o.Verdict, "row %d", i+1)
	}
	other := insert("a.b", "t", 8)
	other.Write = "another"
	other.Put[0].Value = rowOf("a.b", "t", 8, "another")
	b.hold(t)
	outcomes = b.submitAll(t, insert("a.b", "t", 21), other, insert("a.b", "t", 22))
	b.Faults.Release()
	var verdicts []record.Verdict
	for _, o := range outcomes() {
		verdicts = append(verdicts, o.Verdict)
	}
	require.Equal(t, []record.Verdict{record.Committed, record.Conflict, record.Committed}, verdicts)
}

func cancelAndClaim(t *testing.T, b *bench) {
	t.Helper()
	runRev := b.commit(t, putRun(0, record.RunRunning, "w1"))
	rowRev := b.commit(t, insert("a.b", "t", 1))
	b.hold(t)
	cancel := putRun(runRev, record.RunCancelling, "w2")
	claim := move(rowOf("a.b", "t", 1, "insert-a.b-t-1"), rowRev, record.Running, "w3", record.At(record.RunKey("a.b"), runRev))
	outcomes := b.submitAll(t, cancel, claim)
	b.Faults.Release()
	got := outcomes()
	require.Equal(t, record.Committed, got[0].Verdict)
	require.Equal(t, record.Conflict, got[1].Verdict, "the claim was gathered with the cancel, and compared the state before it")
	run, _ := got[1].Find(record.RunKey("a.b"))
	require.Equal(t, record.RunCancelling, run.Value.(record.Run).State)
	require.Equal(t, rowRev, b.get(t, record.AttemptKey(claim.Put[0].Value.(record.Attempt).Ref())).ModRev)
}

func inOrder(t *testing.T, b *bench) {
	t.Helper()
	// Each expects what the one before it leaves, so that another order fails.
	changes := []record.Change{insert("a.b", "t", 1)}
	for n := 2; n <= 10; n++ {
		before := record.AttemptKey(record.TaskRef{Run: "a.b", Task: "t"}.At(n - 1))
		changes = append(changes, insert("a.b", "t", n, record.Present(before)))
	}
	last := int64(0)
	for i, o := range b.submitAll(t, changes...)() {
		require.Equal(t, record.Committed, o.Verdict, "%d", i)
		require.Greater(t, o.Rev, last)
		last = o.Rev
	}
}

func manyChanges(t *testing.T, b *bench) {
	t.Helper()
	var changes []record.Change
	for n := 1; n <= 700; n++ {
		changes = append(changes, insert("a.b", "t", n))
	}
	for i, o := range b.submitAll(t, changes...)() {
		require.Equal(t, record.Committed, o.Verdict, "%d", i)
	}
	count, err := b.Store.Count(t.Context(), record.AttemptsOf("a.b"))
	require.NoError(t, err)
	require.EqualValues(t, 700, count)
}

// big makes a change with a value of about that many bytes.
func big(n, bytes int) record.Change {
	c := insert("a.big", "t", n)
	row := c.Put[0].Value.(record.Attempt)
	row.Cause.Text = strings.Repeat("x", bytes)
	c.Put[0].Value = row
	return c
}

func manyBytes(t *testing.T, b *bench) {
	t.Helper()
	b.hold(t)
	var changes []record.Change
	for n := range 30 {
		changes = append(changes, big(n, 60<<10)) // 1.8 MB together
	}
	changes = append(changes, big(100, 600<<10)) // alone above what is gathered
	outcomes := b.submitAll(t, changes...)
	b.Faults.Release()
	for i, o := range outcomes() {
		require.Equal(t, record.Committed, o.Verdict, "%d", i)
	}
}

func oversize(t *testing.T, b *bench) {
	t.Helper()
	for name, c := range map[string]record.Change{"bytes": big(1, 2<<20), "operations": wide(200)} {
		o, err := b.Store.Commit(t.Context(), c)
		require.ErrorIs(t, err, b.Refused, name)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "fit one transaction")
		require.Equal(t, record.Outcome{Verdict: record.Conflict}, o)
	}
	require.Equal(t, []record.Outcome{{Verdict: record.Conflict}}, b.submitAll(t, big(1, 2<<20))())
	b.commit(t, wide(100))
}

// wide makes a change with that many puts.
func wide(n int) record.Change {
	c := insert("a.wide", "t", 1)
	for i := 2; i <= n; i++ {
		more := insert("a.wide", "t", i)
		c.Put = append(c.Put, more.Put...)
	}
	return c
}

func unprovable(t *testing.T, b *bench) {
	t.Helper()
	c := insert("a.b", "t", 1)
	c.Write = "not in the value"
	_, err := b.Store.Commit(t.Context(), c)
	require.ErrorIs(t, err, b.Refused)
	c = insert("a.b", "t", 1, record.Empty(record.AllOf(record.FamilyEnded)))
	_, err = b.Store.Commit(t.Context(), c)
	require.ErrorIs(t, err, b.Refused, "pages lie between the heads")
	c = insert("a.b", "t", 1)
	c.Put[0].Key = record.RunKey("a.b")
	_, err = b.Store.Commit(t.Context(), c)
	require.ErrorIs(t, err, b.Refused, "a row is no run")
	require.Zero(t, b.get(t, record.RunKey("a.b")).ModRev)
}

func prefixes(t *testing.T, b *bench) {
	t.Helper()
	runs := []record.RunID{"a.b", "a.b-1", "a.b.r2", "a.bb", "aa.b"}
	for _, run := range runs {
		b.commit(t, insert(run, "t", 1))
		b.commit(t, insert(run, "t-1", 1))
	}
	b.commit(t, putRun(0, record.RunRunning, "w"))
	c := record.Change{
		Rule: record.RuleEnd, Expect: []record.Expect{record.Present(record.RunKey("a.b"))},
		Delete: []record.Delete{record.RemoveAll(record.AttemptsOf("a.b"))},
	}
	b.commit(t, c)
	for _, run := range runs {
		list, err := b.Store.List(t.Context(), record.AttemptsOf(run), record.Key{}, 10)
		require.NoError(t, err)
		if run == "a.b" {
			require.Empty(t, list)
			continue
		}
		require.Len(t, list, 2, run)
	}
}

func givesUp(t *testing.T, b *bench) {
	t.Helper()
	b.hold(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range 3 {
		o, err := b.Store.Commit(ctx, insert("a.b", "t", n+1))
		require.NoError(t, err)
		require.Equal(t, record.Outcome{Verdict: record.Unknown}, o)
	}
	// What is refused is answered in its turn, so the committer has heard of
	// everything before it.
	refused := insert("a.b", "v", 1)
	refused.Write = "not in the value"
	b.submitAll(t, refused)()
	b.Faults.Release()
	b.commit(t, insert("a.b", "u", 1))
	for n := range 3 {
		at := b.get(t, record.AttemptKey(record.TaskRef{Run: "a.b", Task: "t"}.At(n+1)))
		require.Zero(t, at.ModRev, "it was given up before it was sent")
	}
}

func stopped(t *testing.T, b *bench) {
	t.Helper()
	b.Faults.Inject(Hold, 4)
	var changes []record.Change
	for n := 1; n <= 9; n++ {
		changes = append(changes, insert("a.b", "t", n))
	}
	outcomes := b.submitAll(t, changes...)
	await(t, "a held transaction", func() (int, bool) { n := b.Faults.Caught(); return n, n > 0 })
	b.stop()
	for i, o := range outcomes() {
		require.Equal(t, record.Unknown, o.Verdict, fmt.Sprint(i))
	}
	o, err := b.Store.Commit(t.Context(), insert("a.b", "t", 10))
	require.NoError(t, err)
	require.Equal(t, record.Unknown, o.Verdict, "it came after the end")
}

func chunks(t *testing.T, b *bench) {
	t.Helper()
	chunk := func(n int, text string) record.Change {
		key := record.ChunkKey("census", 1, n)
		return record.Change{Rule: record.RuleApply, Expect: []record.Expect{record.Absent(key)}, Put: []record.Put{{Key: key, Value: record.Blob(text)}}}
	}
	b.Faults.Inject(LostReply, 1)
	rev := b.commit(t, chunk(1, "one"))
	require.Equal(t, rev, b.get(t, record.ChunkKey("census", 1, 1)).ModRev)
	require.Equal(t, rev, b.commit(t, chunk(1, "one")), "the same bytes are there")
	require.Equal(t, record.Conflict, b.try(t, chunk(1, "two")).Verdict)
	guarded := chunk(2, "two")
	guarded.Expect = append(guarded.Expect, record.Present(record.RunKey("a.b")))
	require.Equal(t, record.Conflict, b.try(t, guarded).Verdict)
	_, err := b.Store.Commit(t.Context(), record.Change{
		Rule: record.RuleApply, Expect: []record.Expect{record.Present(record.RunKey("a.b"))}, Put: chunk(2, "two").Put,
	})
	require.ErrorIs(t, err, b.Refused, "it might overwrite")
}
