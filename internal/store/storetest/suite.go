package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/record"
)

// Harness is a store under test, not running yet, that shares its keys with no
// other test.
type Harness struct {
	Store  Store
	Faults Faults
	// Beside makes a change as another replica does, past the store's committer
	// and faults.
	Beside func(t *testing.T, c record.Change) record.Outcome
	// Refused and Compacted are the store's own words for these.
	Refused, Compacted error
}

// patience bounds every wait of the suite; it is long, since it strikes only
// where a test fails.
const patience = 60 * time.Second

// Run runs the conformance suite. start makes a store for one test; alone says
// that the test compacts, so that the store must share its history with nobody.
func Run(t *testing.T, start func(t *testing.T, alone bool) Harness) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, *bench){
		"EveryExpectationHoldsOrConflicts":               everyExpectation,
		"ConflictShowsWhatItSaw":                         conflictShows,
		"LostRaceFailsNoNeighbour":                       neighbours,
		"ClaimGatheredWithACancelLoses":                  cancelAndClaim,
		"ChangesThatClashAreMadeInTheirOrder":            inOrder,
		"LostReplyIsSettledAsCommitted":                  lostReply,
		"DroppedChangeIsMadeByItsNextTry":                dropped,
		"SameTokenOfAnotherWriteIsAConflict":             sameToken,
		"LateCommitIsGuarded":                            lateCommit,
		"LateCommitOfWhatWasGivenUpIsSeen":               lateCommitSeen,
		"CallerThatGivesUpHearsUnknown":                  givesUp,
		"DeadLeaseFailsItsOwnChangeOnly":                 deadLease,
		"ManyChangesFitManyTransactions":                 manyChanges,
		"ManyBytesFitManyTransactions":                   manyBytes,
		"ChangeThatFitsNoTransactionIsRefused":           oversize,
		"ChangeWithoutAProofIsRefused":                   unprovable,
		"PartsOfASpecAreWrittenOnce":                     chunks,
		"RunsThatArePrefixesOfOthersStayApart":           prefixes,
		"ListsComeInPages":                               lists,
		"SpecIsReadWithItsChunks":                        specs,
		"WatchGivesWholeRevisionsInOrder":                watchOrder,
		"QuietWatchSaysHowFarItIs":                       watchProgress,
		"WatchBeginsWhereTheSnapshotEnded":               snapshotAndWatch,
		"HistoryIsComplete":                              history,
		"ExpiredLeaseDeletesItsKeys":                     expiry,
		"RenewalKeepsALeaseAndTellsOfOneThatIsGone":      renewal,
		"WhoStillWaitsAtTheEndHearsUnknown":              stopped,
		"ErrorOfTheReaderEndsSnapshotWatchAndHistory":    readerErrors,
		"alone/CompactedWatchSaysSoAndAListGoesOn":       compacted,
		"alone/HistoryBeginsAtTheOldestRevisionThatIsIn": oldestHistory,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, len(name) > 6 && name[:6] == "alone/")
			test(t, &bench{Harness: h, stop: runs(t, h.Store)})
		})
	}
}

// bench is a running store under test.
type bench struct {
	Harness
	stop func()
}

// commit makes a change that must be committed and returns its revision.
func (b *bench) commit(t *testing.T, c record.Change) int64 {
	t.Helper()
	o := b.try(t, c)
	require.Equal(t, record.Committed, o.Verdict, "%+v", o)
	return o.Rev
}

// try makes a change that must be settled.
func (b *bench) try(t *testing.T, c record.Change) record.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o, err := b.Store.Commit(ctx, c)
	require.NoError(t, err)
	require.NotEqual(t, record.Unknown, o.Verdict, "it was not settled")
	return o
}

// get reads a record.
func (b *bench) get(t *testing.T, k record.Key) record.Stored {
	t.Helper()
	at, err := b.Store.Get(t.Context(), k)
	require.NoError(t, err)
	return at
}

// submitAll submits changes at one go and returns their outcomes.
func (b *bench) submitAll(t *testing.T, changes ...record.Change) func() []record.Outcome {
	t.Helper()
	heard := make([]chan record.Outcome, len(changes))
	for i, c := range changes {
		heard[i] = make(chan record.Outcome, 1)
		b.Store.Submit(c, func(o record.Outcome) { heard[i] <- o })
	}
	return func() []record.Outcome {
		t.Helper()
		list := make([]record.Outcome, len(changes))
		for i := range heard {
			list[i] = receive(t, heard[i], fmt.Sprintf("outcome %d", i))
		}
		return list
	}
}

// hold keeps every place of the committer busy, so that what is submitted next
// gathers until Release.
func (b *bench) hold(t *testing.T) {
	t.Helper()
	b.Faults.Inject(Hold, batch.DefaultTxns)
	for i := range batch.DefaultTxns {
		c := insert(record.RunID(fmt.Sprintf("held.%d", i)), "t", 1)
		b.Store.Submit(c, func(record.Outcome) {})
		await(t, fmt.Sprintf("%d held transactions", i+1), func() (int, bool) {
			n := b.Faults.Caught()
			return n, n == i+1
		})
	}
}

// await waits until a condition holds; it fails the test with the last state.
func await[T any](t *testing.T, what string, now func() (T, bool)) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		state, ok := now()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			require.Fail(t, "waited in vain for "+what, "last: %+v", state)
		}
	}
}

// receive takes one value of a channel.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case v := <-c:
		return v
	case <-limit.C:
		require.Fail(t, "waited in vain for "+what)
	}
	var none T
	return none
}

// tail follows active/ in a goroutine of its own.
type tail struct {
	events chan record.Events // capacity: more than any test makes
	ended  chan error
	cancel context.CancelFunc
}

func (b *bench) follow(t *testing.T, after int64) *tail {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &tail{events: make(chan record.Events, 1000), ended: make(chan error, 1), cancel: cancel}
	go func() {
		f.ended <- b.Store.Watch(ctx, after, func(e record.Events) error {
			f.events <- e
			return nil
		})
	}()
	t.Cleanup(cancel)
	return f
}

// next returns the next Events that are not empty.
func (f *tail) next(t *testing.T) record.Events {
	t.Helper()
	for {
		if e := receive(t, f.events, "events"); len(e.Events) > 0 {
			return e
		}
	}
}

// rowOf is an intent as one write left it.
func rowOf(run record.RunID, task record.TaskID, n int, write record.WriteID) record.Attempt {
	return record.Attempt{
		Schema: record.Schema, Run: run, Task: task, Attempt: n, Kind: record.KindExec, State: record.Queued, Token: "token",
		Transitions: []record.Transition{{State: string(record.Queued), Rule: record.RuleStart, By: "replica/r", Write: write}},
	}
}

// insert makes a change that inserts a row.
func insert(run record.RunID, task record.TaskID, n int, expect ...record.Expect) record.Change {
	write := record.WriteID(fmt.Sprintf("insert-%s-%s-%d", run, task, n))
	row := rowOf(run, task, n, write)
	key := record.AttemptKey(row.Ref())
	return record.Change{
		Rule: record.RuleStart, Write: write, Expect: append([]record.Expect{record.Absent(key)}, expect...),
		Put: []record.Put{{Key: key, Value: row}},
	}
}

// move makes a change that moves a row which stands at a revision.
func move(row record.Attempt, rev int64, state record.AttemptState, write record.WriteID, expect ...record.Expect) record.Change {
	row.State = state
	row.Transitions = append(row.Transitions[:len(row.Transitions):len(row.Transitions)], record.Transition{State: string(state), Write: write})
	key := record.AttemptKey(row.Ref())
	return record.Change{
		Rule: record.RuleClaim, Write: write, Expect: append([]record.Expect{record.At(key, rev)}, expect...),
		Put: []record.Put{{Key: key, Value: row}},
	}
}

// putRun makes a change that writes run a.b, which stands at a revision, 0 for none.
func putRun(rev int64, state record.RunState, write record.WriteID) record.Change {
	const id record.RunID = "a.b"
	run := record.Run{Schema: record.Schema, Run: id, Workflow: id.Workflow(), State: state, Transitions: []record.Transition{{State: string(state), Write: write}}}
	return record.Change{
		Rule: record.RuleCreate, Write: write, Expect: []record.Expect{record.At(record.RunKey(id), rev)},
		Put: []record.Put{{Key: record.RunKey(id), Value: run}},
	}
}
