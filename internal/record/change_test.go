package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/record"
)

// keyOf draws a key out of a small world, so that ranges often hold some.
func keyOf(t *rapid.T) record.Key {
	name := rapid.SampledFrom([]string{"a", "b"})
	ref := record.TaskRef{
		Run: record.RunID("etl." + name.Draw(t, "run")), Task: record.TaskID(name.Draw(t, "task")),
		Instance: rapid.SampledFrom([]record.Instance{"", "00000", "00001"}).Draw(t, "instance"),
	}.At(rapid.IntRange(1, 2).Draw(t, "n"))
	return rapid.SampledFrom([]record.Key{
		record.RunKey(ref.Run), record.AttemptKey(ref), record.UnprovenKey(ref), record.ClearKey(ref.Run, ref.N),
		record.WorkerKey(record.WorkerName(ref.Task), "s-1"), record.SessionKey(record.WorkerName(ref.Task), "s-2"),
		record.ChunkKey("etl", ref.N, 1), record.PageKey(ref.Run, ref.N), record.MetaKey(),
	}).Draw(t, "key")
}

func rangeOf(t *rapid.T) record.Range {
	k := keyOf(t)
	ref := record.TaskRef{Run: k.Run, Task: k.Task, Instance: k.Instance}
	switch k.Family {
	case record.FamilyAttempt:
		return rapid.SampledFrom([]record.Range{record.AttemptsOf(k.Run), record.AllOf(k.Family)}).Draw(t, "range")
	case record.FamilyUnproven:
		return rapid.SampledFrom([]record.Range{record.UnprovenOf(ref), record.OfRun(k.Family, k.Run)}).Draw(t, "range")
	case record.FamilyWorker:
		return record.SessionsOf(record.WorkerName(k.Name))
	case record.FamilyChunk:
		return record.Range{Family: k.Family, Name: k.Name, N: k.N}
	default:
		return rapid.SampledFrom([]record.Range{record.AllOf(k.Family), record.OfRun(k.Family, k.Run)}).Draw(t, "range")
	}
}

func TestRangesThatShareAKeyMeet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, k := rangeOf(t), rangeOf(t), keyOf(t)
		require.Equal(t, a.Meets(b), b.Meets(a))
		require.True(t, a.Meets(a))
		require.True(t, record.AllOf(k.Family).Has(k))
		if a.Has(k) && b.Has(k) {
			require.True(t, a.Meets(b), "%v and %v share %v", a, b, k)
		}
	})
}

func TestRangesThatMeetShareAKey(t *testing.T) {
	t.Parallel()
	met := 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := rangeOf(t), rangeOf(t)
		if !a.Meets(b) {
			return
		}
		met++
		// The narrower of the two in every field is a key of both.
		k := record.Key{Family: a.Family, Run: a.Run, Task: a.Task, Instance: a.Instance, Name: a.Name, N: a.N}
		if k.Run == "" {
			k.Run = b.Run
		}
		if k.Task == "" {
			k.Task, k.Instance = b.Task, b.Instance
		}
		if k.Name == "" {
			k.Name = b.Name
		}
		if k.N == 0 {
			k.N = b.N
		}
		require.True(t, a.Has(k) && b.Has(k), "%v and %v meet, though not in %v", a, b, k)
	})
	require.Positive(t, met)
}

func TestUnprovenDeathsOfATaskAreNotThoseOfItsInstances(t *testing.T) {
	t.Parallel()
	task := record.TaskRef{Run: "etl.a", Task: "load"}
	one := record.TaskRef{Run: "etl.a", Task: "load", Instance: "00001"}
	require.True(t, record.UnprovenOf(task).Has(record.UnprovenKey(task.At(2))))
	require.False(t, record.UnprovenOf(task).Has(record.UnprovenKey(one.At(2))))
	require.False(t, record.UnprovenOf(task).Meets(record.UnprovenOf(one)))
}

func TestEveryFamilyIsListedOnce(t *testing.T) {
	t.Parallel()
	seen := map[record.Family]bool{}
	active := 0
	for _, f := range record.Families() {
		require.False(t, seen[f], "%s", f)
		seen[f] = true
		if f.Active() {
			active++
		}
	}
	require.Len(t, seen, 22)
	require.Equal(t, 12, active)
}

func written(w record.WriteID) record.Run {
	return record.Run{Run: "etl.a", Transitions: []record.Transition{{Write: "w0"}, {Write: w}}}
}

func TestOnlyAGuardedProvableChangeIsMade(t *testing.T) {
	t.Parallel()
	key, other := record.RunKey("etl.a"), record.RunKey("etl.b")
	seen := []record.Expect{record.At(key, 3)}
	put := []record.Put{{Key: key, Value: written("w1")}}
	_, err := record.NewChange(record.RuleClear, "w1", seen, put, record.Remove(other))
	require.NoError(t, err)
	blob := []record.Put{{Key: record.ChunkKey("etl", 1, 1), Value: record.Blob("{}")}}
	_, err = record.NewChange(record.RuleApply, "", []record.Expect{record.Absent(blob[0].Key)}, blob)
	require.NoError(t, err, "a blob that is written once is proven by its bytes")

	for name, made := range map[string]func() error{
		"has no rule":       func() error { _, err := record.NewChange("", "w1", seen, put); return err },
		"expects nothing":   func() error { _, err := record.NewChange(record.RuleClear, "w1", nil, put); return err },
		"writes nothing":    func() error { _, err := record.NewChange(record.RuleClear, "w1", seen, nil); return err },
		"carries its write": func() error { _, err := record.NewChange(record.RuleClear, "w2", seen, put); return err },
		"so a lost answer":  func() error { _, err := record.NewChange(record.RuleClear, "", seen, put); return err },
		"twice": func() error {
			_, err := record.NewChange(record.RuleClear, "w1", seen, put, record.Remove(key))
			return err
		},
		"deletes a range": func() error {
			_, err := record.NewChange(record.RuleClear, "w1", seen, put, record.RemoveAll(record.AllOf(record.FamilyRun)))
			return err
		},
		"could not be settl": func() error { _, err := record.NewChange(record.RuleApply, "w1", seen, blob); return err },
	} {
		require.ErrorContains(t, made(), name)
	}
}

func TestChangesClashWhereOneWritesWhatTheOtherKnows(t *testing.T) {
	t.Parallel()
	run, row := record.RunKey("etl.a"), record.AttemptKey(record.TaskRef{Run: "etl.a", Task: "load"}.At(1))
	rows := record.AttemptsOf("etl.a")
	expects := func(e record.Expect) record.Change { return record.Change{Expect: []record.Expect{e}} }
	puts := func(k record.Key) record.Change { return record.Change{Put: []record.Put{{Key: k}}} }
	deletes := func(d record.Delete) record.Change { return record.Change{Delete: []record.Delete{d}} }
	for _, c := range []struct {
		a, b  record.Change
		clash bool
	}{
		{expects(record.At(run, 3)), expects(record.Absent(run)), false},
		{puts(run), expects(record.Present(run)), true},
		{puts(run), puts(run), true},
		{puts(run), puts(row), false},
		{puts(run), deletes(record.Remove(run)), true},
		{puts(row), expects(record.Unchanged(rows, 3)), true},
		{puts(row), expects(record.Empty(record.OfRun(record.FamilyClear, "etl.a"))), false},
		{puts(row), deletes(record.RemoveAll(rows)), true},
		{deletes(record.RemoveAll(rows)), expects(record.At(row, 3)), true},
		{deletes(record.RemoveAll(rows)), expects(record.Empty(record.AllOf(record.FamilyAttempt))), true},
		{deletes(record.RemoveAll(rows)), deletes(record.Remove(row)), true},
		{deletes(record.RemoveAll(rows)), deletes(record.RemoveAll(record.AttemptsOf("etl.b"))), false},
		{deletes(record.Remove(run)), expects(record.At(row, 3)), false},
	} {
		require.Equal(t, c.clash, c.a.Clashes(c.b), "%+v and %+v", c.a, c.b)
		require.Equal(t, c.clash, c.b.Clashes(c.a))
	}
}

func TestOnlyAWriteOfOurOwnIsBorne(t *testing.T) {
	t.Parallel()
	require.True(t, record.Bears(written("w1"), "w0"), "a run keeps the writes before the last")
	require.True(t, record.Bears(rowIn(record.KindExec, record.StageIntent), "w0"))
	require.True(t, record.Bears(record.Session{Write: "w1"}, "w1"))
	require.False(t, record.Bears(record.Session{Write: "w2"}, "w1"))
	require.False(t, record.Bears(record.Blob("w1"), "w1"))
	require.False(t, record.Bears(record.Run{}, ""), "an empty id proves nothing")
	require.False(t, record.Bears(nil, "w1"))
}

func TestExpectationsOfRevisionZeroAreAbsence(t *testing.T) {
	t.Parallel()
	k := record.RunKey("etl.a")
	require.Equal(t, record.Absent(k), record.At(k, 0))
	require.Equal(t, record.Expect{Key: k, Want: record.WantRev, Rev: 3}, record.At(k, 3))
	require.False(t, record.CreatedAt(k, 3).Ranged())
	require.True(t, record.Unchanged(record.AttemptsOf("etl.a"), 3).Ranged())
}

func TestAConflictShowsWhatStoodThere(t *testing.T) {
	t.Parallel()
	k := record.RunKey("etl.a")
	o := record.Outcome{Verdict: record.Conflict, Seen: []record.Stored{{Key: record.MetaKey()}, {Key: k, ModRev: 4}}}
	s, ok := o.Find(k)
	require.True(t, ok)
	require.Equal(t, int64(4), s.ModRev)
	_, ok = o.Find(record.CompactKey())
	require.False(t, ok)
}
