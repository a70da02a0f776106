package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// chaos is a world in which anything lawful happens, drawn from a seed.
type chaos struct {
	*world
	rng      *rand.Rand
	runs     []record.RunID
	living   []view.SessionRef
	sessions int
	// faults is how many more sessions may die, and operators how many more
	// cancels, clears and holds may come.
	faults    int
	operators int
	// begun are the non-idempotent attempts that were started, by task; lost is
	// when a session's key went, dead whose processes were really ended.
	begun map[record.TaskRef][]record.Attempt
	lost  map[view.SessionRef]time.Time
	dead  map[view.SessionRef]bool
}

func newChaos(t testing.TB, seed uint64, runs int) *chaos {
	t.Helper()
	c := &chaos{world: newWorld(t), rng: rand.New(rand.NewPCG(seed, 7)), faults: 12, operators: 6}
	c.begun, c.lost, c.dead = map[record.TaskRef][]record.Attempt{}, map[view.SessionRef]time.Time{}, map[view.SessionRef]bool{}
	for i := range runs {
		f := c.graph(fmt.Sprintf("w%d", i))
		c.flow(f)
		id := record.MakeRunID(f.Name, "one")
		c.runs = append(c.runs, id)
		c.start(c.running(id))
	}
	c.watch = c.lawfulMove
	c.hire()
	c.hire()
	return c
}

// graph draws a workflow.
func (c *chaos) graph(name string) *spec.Workflow {
	f := flowOf(name)
	rules := spec.TriggerRules()
	for i := range 1 + c.rng.IntN(7) {
		t := task(fmt.Sprintf("t%d", i))
		for j := range i {
			if c.rng.IntN(3) == 0 {
				t.Needs = append(t.Needs, record.TaskID(fmt.Sprintf("t%d", j)))
			}
		}
		if len(t.Needs) > 0 {
			t.TriggerRule = rules[c.rng.IntN(len(rules))]
		}
		if t.Idempotent = c.rng.IntN(2) == 0; !t.Idempotent {
			t.OnLost = []record.OnLost{record.OnLostWait, record.OnLostRetry, record.OnLostFail}[c.rng.IntN(3)]
		}
		t.Retries = spec.Retry{Limit: c.rng.IntN(3), Delay: record.Duration(c.rng.IntN(3)) * record.Duration(time.Second), Jitter: 0.5}
		t.AllowFailure = c.rng.IntN(4) == 0
		if c.rng.IntN(5) == 0 {
			t.QueueTimeout = record.Duration(30 * time.Second)
		}
		f.Tasks = append(f.Tasks, t)
	}
	return f
}

func (c *chaos) hire() {
	c.sessions++
	c.living = append(c.living, c.enlist(record.WorkerName(fmt.Sprintf("w%d", c.sessions)), record.SessionID(fmt.Sprintf("s%d", c.sessions)), 2))
}

// lawfulMove holds every move of a row against what no interleaving may break.
func (c *chaos) lawfulMove(before, after record.Attempt) {
	require.False(c.t, before.State.Terminal(), "I3 %s", after.Ref())
	r, ok := c.v.Run(after.Run)
	require.True(c.t, ok, "a row of %s is written without its run", after.Run)
	if before.State == record.None && after.Live() || before.Waiting() && after.Live() {
		require.True(c.t, r.Record.Startable(), "I11 %s", after.Ref())
		c.soleAttempt(r, after)
	}
	if after.State == record.Running {
		require.Equal(c.t, record.RunRunning, r.Record.State, "I11 %s", after.Ref())
		c.process(after)
	}
}

// process checks I7 where a process starts: every process of the task before
// it was ended by its session's word, is dead by an attestation, or was fenced
// and is past its deadline.
func (c *chaos) process(after record.Attempt) {
	if after.Idempotent {
		return
	}
	for _, old := range c.begun[after.TaskRef()] {
		row, _ := c.row(old.Ref())
		s := view.SessionRef{Worker: old.Worker, Session: old.Session}
		at, gone := c.lost[s]
		said := row.State.Terminal() && strings.HasPrefix(row.Transitions[len(row.Transitions)-1].By, "session/")
		fenced := old.Fenced() && gone && !c.now.Before(at.Add(13*time.Second))
		require.True(c.t, said || c.dead[s] || fenced, "I7 %s beside %s", after.Ref(), old.Ref())
	}
	c.begun[after.TaskRef()] = append(c.begun[after.TaskRef()], after)
}

// bury ends the processes of a lost session and attests it.
func (c *chaos) bury(s view.SessionRef) {
	c.dead[s] = true
	c.attest(s, "none", true)
}

// soleAttempt checks what must hold where a token is written: I2, I5, I6, I7.
func (c *chaos) soleAttempt(r *view.Run, after record.Attempt) {
	t, ok := r.Task(after.TaskRef())
	require.True(c.t, ok)
	for _, row := range t.Rows() {
		if row.Attempt.Attempt == after.Attempt {
			continue
		}
		require.True(c.t, row.State.Terminal(), "I2 %s", after.Ref())
		require.False(c.t, row.State == record.Success && t.Counts(row), "I5 %s", after.Ref())
	}
	if !after.Idempotent {
		require.Empty(c.t, r.Marks(t.Ref), "I7 %s", after.Ref())
	}
	var success, bad, skipped, open int
	for _, i := range r.Graph.Up(t.Index) {
		switch r.At(i).Class() {
		case spec.ClassSuccess:
			success++
		case spec.ClassBad:
			bad++
		case spec.ClassSkipped:
			skipped++
		default:
			open++
		}
	}
	require.True(c.t, mayRun(t.Spec.Rule(), success, bad, skipped, open), "I6 %s", after.Ref())
}

// held picks a live row.
func (c *chaos) heldRow() (view.Row, bool) {
	var rows []view.Row
	for _, s := range c.v.Holding() {
		rows = append(rows, c.v.Held(s)...)
	}
	if len(rows) == 0 {
		return view.Row{}, false
	}
	return rows[c.rng.IntN(len(rows))], true
}

// worker lets a worker say something about a row that it holds; where its key
// is gone, or the row has moved, the guards refuse it.
func (c *chaos) worker() {
	row, ok := c.heldRow()
	if !ok {
		return
	}
	r, _ := c.v.Run(row.Run)
	cause, exit := failure()
	switch c.rng.IntN(8) {
	case 0:
		c.report(row.Ref(), record.Failed, cause, exit)
	case 1:
		c.report(row.Ref(), record.Skipped, record.Because(record.CauseSkippedByTask, ""), nil)
	case 2:
		c.report(row.Ref(), record.Failed, record.Because(record.CauseWorkerStopped, ""), nil)
	case 3:
		if row.Intent() {
			c.report(row.Ref(), record.Queued, record.Cause{}, nil)
		}
	case 4, 5:
		if row.Intent() {
			c.report(row.Ref(), record.Running, record.Cause{}, nil)
			return
		}
		fallthrough
	default:
		if _, stop := r.Unwanted(row, c.now); stop {
			c.report(row.Ref(), record.Cancelled, record.Because(record.CauseCancelled, ""), nil)
			return
		}
		c.report(row.Ref(), record.Success, record.Cause{}, nil)
	}
}

// fault kills a session, brings a new one, or attests a death.
func (c *chaos) fault() {
	switch {
	case c.faults > 0 && len(c.living) > 0 && c.rng.IntN(2) == 0:
		c.faults--
		i := c.rng.IntN(len(c.living))
		s := c.living[i]
		c.living = append(c.living[:i], c.living[i+1:]...)
		c.lost[s] = c.now
		c.drop(record.WorkerKey(s.Worker, s.Session))
	case c.rng.IntN(2) == 0 || len(c.living) == 0:
		c.hire()
	default:
		for _, s := range c.v.Holding() {
			if kept, ok := c.v.Session(s); ok && !kept.Record.GoneAt.IsZero() {
				c.bury(s)
				return
			}
		}
	}
}

// operate is what a person does.
func (c *chaos) operate() {
	if c.operators == 0 {
		return
	}
	c.operators--
	id := c.runs[c.rng.IntN(len(c.runs))]
	r, ok := c.v.Run(id)
	if !ok {
		return
	}
	switch c.rng.IntN(4) {
	case 0:
		c.cancelRun(id)
	case 1:
		hold := &record.Hold{By: "ann", At: c.now}
		if r.Record.Paused != nil {
			hold = nil
		}
		c.rewrite(id, record.RunMove{To: r.Record.State}, func(r *record.Run) { r.Paused = hold })
	default:
		var tasks []record.TaskID
		for _, i := range r.Graph.Downstream(c.rng.IntN(r.Len())) {
			tasks = append(tasks, r.Graph.Task(i).ID)
		}
		if r.Record.State == record.RunRunning && r.Record.Phase == record.PhaseNone {
			c.clearTasks(id, tasks...)
		}
	}
}

// happen is one random event.
func (c *chaos) happen() {
	switch n := c.rng.IntN(20); {
	case n < 12:
		c.worker()
	case n < 14:
		c.fault()
	case n < 15:
		c.operate()
	case n < 17:
		c.now = c.now.Add(time.Duration(c.rng.IntN(8)) * time.Second)
	default:
		c.lead(c.v, c.living)
	}
}

// lead decides on a view, which may be old, and commits what it found.
func (c *chaos) lead(v *view.Active, living []view.SessionRef) {
	turn := c.turn()
	res := reconcile.Pass(v, view.Touched{Full: true}, turn)
	require.Empty(c.t, res.Faults)
	changes := res.Changes
	for _, r := range res.Ready {
		if len(living) == 0 || c.rng.IntN(3) == 0 {
			continue
		}
		c.writes++
		change, ok, err := reconcile.Dispatch(v, reconcile.Assignment{
			Ref: r.Ref, Session: living[c.rng.IntN(len(living))], Token: record.Token(fmt.Sprintf("token%06d", c.writes)),
		}, turn)
		require.NoError(c.t, err)
		if ok {
			changes = append(changes, change)
		}
	}
	c.rng.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	for _, change := range changes {
		c.commit(change, record.Leader)
	}
}

// TestAStaleViewDoesNoHarm decides on a view, lets anything happen, and then
// commits: each change is refused by its guards or still lawful, as commit and
// lawfulMove check.
func TestAStaleViewDoesNoHarm(t *testing.T) {
	t.Parallel()
	seeds := uint64(400)
	if testing.Short() {
		seeds = 25
	}
	for seed := range seeds {
		c := newChaos(t, seed, 1)
		for range 40 {
			old, living := c.relist(false), append([]view.SessionRef(nil), c.living...)
			for range c.rng.IntN(6) {
				c.happen()
			}
			c.lead(old, living)
			for _, id := range c.runs {
				require.NoError(t, c.v.Recount(id), "seed %d", seed)
			}
		}
	}
}
