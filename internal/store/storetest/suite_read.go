package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
)

func keysOf(list []record.Stored) []record.Key {
	keys := make([]record.Key, len(list))
	for i, at := range list {
		keys[i] = at.Key
	}
	return keys
}

func lists(t *testing.T, b *bench) {
	t.Helper()
	var all []record.Key
	for n := 1; n <= 7; n++ {
		c := insert("a.b", "t", n)
		b.commit(t, c)
		all = append(all, c.Put[0].Key)
	}
	b.commit(t, insert("a.c", "t", 1))
	var got []record.Key
	after := record.Key{}
	for {
		page, err := b.Store.List(t.Context(), record.AttemptsOf("a.b"), after, 3)
		require.NoError(t, err)
		got = append(got, keysOf(page)...)
		if len(page) < 3 {
			break
		}
		after = page[len(page)-1].Key
	}
	require.Equal(t, all, got)
	count, err := b.Store.Count(t.Context(), record.AttemptsOf("a.b"))
	require.NoError(t, err)
	require.EqualValues(t, 7, count)
	_, err = b.Store.Count(t.Context(), record.AllOf(record.FamilyEnded))
	require.ErrorContains(t, err, "other records lie between")
	require.Equal(t, record.Stored{Key: record.RunKey("a.b")}, b.get(t, record.RunKey("a.b")), "absent")
}

func specs(t *testing.T, b *bench) {
	t.Helper()
	const whole = `{"name":"census","tasks":[{"id":"count","run":"true"}]}`
	put := func(n int, head record.Revision, chunks ...string) {
		head.Workflow, head.Revision, head.Write = "census", n, record.WriteID(fmt.Sprint("w", n))
		c := record.Change{
			Rule: record.RuleApply, Write: head.Write, Expect: []record.Expect{record.Absent(record.RevisionKey("census", n))},
			Put: []record.Put{{Key: record.RevisionKey("census", n), Value: head}},
		}
		for i, text := range chunks {
			c.Put = append(c.Put, record.Put{Key: record.ChunkKey("census", n, i+1), Value: record.Blob(text)})
		}
		b.commit(t, c)
	}
	put(1, record.Revision{Spec: whole})
	put(2, record.Revision{Chunks: 2}, whole[:20], whole[20:])
	put(3, record.Revision{Chunks: 2}, whole[:20])
	for n := 1; n <= 2; n++ {
		w, err := b.Store.Spec(t.Context(), "census", n)
		require.NoError(t, err)
		require.EqualValues(t, "census", w.Name)
		require.Len(t, w.Tasks, 1)
	}
	for n := 3; n <= 4; n++ {
		_, err := b.Store.Spec(t.Context(), "census", n)
		require.Error(t, err, "revision %d", n)
	}
	list, err := b.Store.List(t.Context(), record.AllOf(record.FamilyRevision), record.Key{}, 2)
	require.NoError(t, err)
	require.Equal(t, []record.Key{record.RevisionKey("census", 1), record.RevisionKey("census", 2)}, keysOf(list))
	list, err = b.Store.List(t.Context(), record.AllOf(record.FamilyRevision), list[1].Key, 2)
	require.NoError(t, err)
	require.Equal(t, []record.Key{record.RevisionKey("census", 3)}, keysOf(list), "chunks are no heads")
}

func watchOrder(t *testing.T, b *bench) {
	t.Helper()
	start := b.commit(t, putRun(0, record.RunRunning, "w1"))
	events := b.follow(t, start)
	first := insert("a.b", "t", 1)
	for n := 2; n <= 50; n++ {
		first.Put = append(first.Put, insert("a.b", "t", n).Put...)
	}
	one := b.commit(t, first)
	history := record.Change{ // outside active/: never watched
		Rule: record.RuleApply, Write: "w2", Expect: []record.Expect{record.Absent(record.InputKey("a.b"))},
		Put: []record.Put{{Key: record.InputKey("a.b"), Value: record.Input{Run: "a.b", Write: "w2"}}},
	}
	b.commit(t, history)
	two := b.commit(t, record.Change{
		Rule: record.RuleEnd, Expect: []record.Expect{record.At(record.RunKey("a.b"), start)},
		Delete: []record.Delete{record.Remove(record.RunKey("a.b"))},
	})
	var revs []int64 // of all events, in order
	for last := int64(0); last < two; {
		e := events.next(t) // one revision or several, each whole
		last = e.Events[len(e.Events)-1].ModRev
		require.Equal(t, last, e.Rev)
		require.Contains(t, []int{0, 50}, len(revs), "a revision was split")
		for _, event := range e.Events {
			revs = append(revs, event.ModRev)
			require.Equal(t, event.ModRev == two, event.Value == nil)
			require.Equal(t, event.ModRev == one, event.CreateRev == one)
		}
	}
	require.Equal(t, append(slices.Repeat([]int64{one}, 50), two), revs)
	events.cancel()
	require.Error(t, receive(t, events.ended, "the end of the watch"))
}

func watchProgress(t *testing.T, b *bench) {
	t.Helper()
	start := b.commit(t, putRun(0, record.RunRunning, "w1"))
	events := b.follow(t, start)
	rev := b.commit(t, record.Change{
		Rule: record.RuleApply, Write: "w2", Expect: []record.Expect{record.Absent(record.InputKey("a.b"))},
		Put: []record.Put{{Key: record.InputKey("a.b"), Value: record.Input{Run: "a.b", Write: "w2"}}},
	})
	for {
		e := receive(t, events.events, "progress")
		require.Empty(t, e.Events)
		if e.Rev >= rev {
			return
		}
	}
}

func snapshotAndWatch(t *testing.T, b *bench) {
	t.Helper()
	for n := 1; n <= 30; n++ {
		b.commit(t, insert("a.b", "t", n))
	}
	b.commit(t, record.Change{
		Rule: record.RuleApply, Write: "w", Expect: []record.Expect{record.Absent(record.InputKey("a.b"))},
		Put: []record.Put{{Key: record.InputKey("a.b"), Value: record.Input{Run: "a.b", Write: "w"}}},
	})
	var list []record.Stored
	rev, err := b.Store.Snapshot(t.Context(), func(s record.Stored) error {
		list = append(list, s)
		return nil
	})
	require.NoError(t, err)
	require.Len(t, list, 30)
	require.Equal(t, b.get(t, list[0].Key), list[0])
	next := b.commit(t, insert("a.b", "t", 31))
	require.Greater(t, next, rev)
	e := b.follow(t, rev).next(t)
	require.Equal(t, next, e.Rev)
	require.Len(t, e.Events, 1)
}

func history(t *testing.T, b *bench) {
	t.Helper()
	first := b.commit(t, putRun(0, record.RunRunning, "w1"))
	second := b.commit(t, record.Change{
		Rule: record.RuleApply, Write: "w2", Expect: []record.Expect{record.Absent(record.InputKey("a.b"))},
		Put: []record.Put{{Key: record.InputKey("a.b"), Value: record.Input{Run: "a.b", Write: "w2"}}},
	})
	third := b.commit(t, putRun(first, record.RunSuccess, "w3"))
	revs := func(from int64) (list []int64) {
		rev, err := b.Store.History(t.Context(), from, func(e record.Events) error {
			for _, event := range e.Events {
				list = append(list, event.ModRev)
			}
			return nil
		})
		require.NoError(t, err)
		require.GreaterOrEqual(t, rev, third)
		return list
	}
	require.Equal(t, []int64{first, second, third}, revs(first))
	require.Equal(t, []int64{second, third}, revs(first+1))
	require.Empty(t, revs(third+1))
}

func readerErrors(t *testing.T, b *bench) {
	t.Helper()
	enough := errors.New("enough")
	rev := b.commit(t, putRun(0, record.RunRunning, "w1"))
	_, err := b.Store.Snapshot(t.Context(), func(record.Stored) error { return enough })
	require.ErrorIs(t, err, enough)
	full := func(record.Events) error { return enough }
	require.ErrorIs(t, b.Store.Watch(t.Context(), rev-1, full), enough)
	_, err = b.Store.History(t.Context(), rev, full)
	require.ErrorIs(t, err, enough)
}

func compacted(t *testing.T, b *bench) {
	t.Helper()
	first := b.commit(t, insert("a.b", "t", 1))
	events := b.follow(t, first-1)
	require.Equal(t, first, events.next(t).Rev)
	b.commit(t, insert("a.b", "t", 2))
	last := b.commit(t, insert("a.b", "t", 3))
	require.NoError(t, b.Store.Compact(t.Context(), last))
	require.NoError(t, b.Store.Compact(t.Context(), first), "gone already")
	require.Error(t, b.Store.Compact(t.Context(), last+100), "the future")
	err := b.Store.Watch(t.Context(), first, func(record.Events) error { return nil })
	require.ErrorIs(t, err, b.Compacted)
	_, err = b.Store.History(t.Context(), first, func(record.Events) error { return nil })
	require.ErrorIs(t, err, b.Compacted)

	count := 0
	rev, err := b.Store.Snapshot(t.Context(), func(record.Stored) error { count++; return nil })
	require.NoError(t, err)
	require.Equal(t, 3, count)
	require.GreaterOrEqual(t, rev, last)
	relisted := b.follow(t, rev)
	next := b.commit(t, insert("a.b", "t", 4))
	require.Equal(t, next, relisted.next(t).Rev)
}

func oldestHistory(t *testing.T, b *bench) {
	t.Helper()
	b.commit(t, insert("a.b", "t", 1))
	second := b.commit(t, insert("a.b", "t", 2))
	third := b.commit(t, insert("a.b", "t", 3))
	require.NoError(t, b.Store.Compact(t.Context(), second))
	var revs []int64
	_, err := b.Store.History(t.Context(), 0, func(e record.Events) error {
		for _, event := range e.Events {
			revs = append(revs, event.ModRev)
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []int64{second, third}, revs)
}
