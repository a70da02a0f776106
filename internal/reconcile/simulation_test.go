package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// release ends every hold, as the operator of a simulation does at its end.
func (c *chaos) release() {
	for _, r := range c.v.Runs() {
		if r.Record.Paused != nil && !r.Record.State.Terminal() {
			c.rewrite(r.ID(), record.RunMove{To: r.Record.State}, func(r *record.Run) { r.Paused = nil })
		}
	}
}

// proveAll attests every death, as the operator's resolve --dead would.
func (c *chaos) proveAll() {
	for _, s := range c.v.Holding() {
		if kept, ok := c.v.Session(s); ok && !kept.Record.GoneAt.IsZero() && kept.Record.Attested == nil {
			c.bury(s)
		}
	}
}

// settle lets the world come to rest: no more faults, workers finish what they
// hold, time goes on, until every run has its document.
func (c *chaos) settle(seed uint64) {
	c.faults, c.operators = 0, 0
	c.release()
	c.hire()
	for range 400 {
		if len(c.v.Runs()) == 0 {
			return
		}
		c.lead(c.v, c.living[len(c.living)-1:])
		c.proveAll()
		for range 4 {
			c.worker()
		}
		for _, r := range c.v.Runs() {
			if r.Record.Phase == record.PhaseEnding {
				c.end(r.ID())
			}
		}
		c.now = c.now.Add(3 * time.Second)
	}
	for _, r := range c.v.Runs() {
		res := reconcile.Pass(c.v, view.Touched{Full: true}, c.turn())
		require.Fail(c.t, "a run does not end", "seed %d: %s is %s, counts %v, waits %+v", seed, r.ID(), r.Record.State, r.Counts(), res.Waits)
	}
}

// TestRandomRunsComeToTheirEnd runs random graphs under random outcomes,
// crashes, cancels and clears; whatever happened, every run is ended and its
// rows are numbered without a hole.
func TestRandomRunsComeToTheirEnd(t *testing.T) {
	t.Parallel()
	seeds := uint64(600)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		c := newChaos(t, 1_000_000+seed, 3)
		for range 150 {
			c.happen()
		}
		c.settle(seed)
		for _, id := range c.runs {
			c.numbered(id)
		}
		require.Empty(t, c.v.Holding(), "seed %d", seed)
	}
}

// numbered is I2 and I3 of an ended run, by its document.
func (c *chaos) numbered(id record.RunID) {
	head, ok := c.keys[record.EndedKey(id)].Value.(record.Ended)
	require.True(c.t, ok)
	next := map[record.TaskRef]int{}
	tokens := map[record.Token]bool{}
	for page := 1; page <= head.Pages; page++ {
		p, ok := c.keys[record.PageKey(id, page)].Value.(record.EndedPage)
		require.True(c.t, ok)
		for _, row := range p.Rows {
			next[row.Attempt.TaskRef()]++
			require.Equal(c.t, next[row.Attempt.TaskRef()], row.Attempt.Attempt, "I2 %s", row.Attempt.Ref())
			require.True(c.t, row.Attempt.State.Terminal(), "I2 %s", row.Attempt.Ref())
			require.False(c.t, row.Attempt.Token != "" && tokens[row.Attempt.Token], "I3 %s", row.Attempt.Ref())
			tokens[row.Attempt.Token] = true
		}
	}
}
