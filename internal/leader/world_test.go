package leader_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/leader"
	"github.com/writ-sched/writ/internal/mirror"
	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/store/storetest"
	"github.com/writ-sched/writ/internal/view"
)

// world is a store in memory, replicas that lead, and a worker: all of it
// inside the bubble of one test.
type world struct {
	*storetest.Fake
	t      *testing.T
	mirror *mirror.Mirror
	end    func(record.Ref) record.AttemptState // how attempts end
	// loose is set where several lead: slots are kept by the term's compare
	// and a new leader's catch-up (I12), and neither is there.
	loose bool

	mu      sync.Mutex // guards started
	started map[record.Ref]int
	writes  int
}

type shown struct{ *mirror.Mirror }

func (s shown) Feed() leader.Feed { return s.Mirror.Feed() }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		Fake: storetest.Start(t), t: t, started: map[record.Ref]int{},
		end: func(record.Ref) record.AttemptState { return record.Success },
	}
	w.mirror = mirror.New(w.Fake, nil)
	w.background(func(ctx context.Context) { _ = w.mirror.Run(ctx) })
	return w
}

// background runs f until the end of the test.
func (w *world) background(f func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	w.t.Cleanup(stop)
	return stop
}

// lead makes one more replica lead, without being elected.
func (w *world) lead(name string) (stop func()) {
	l := leader.New(leader.Config{
		Replica: record.ReplicaID(name), Policy: reconcile.Defaults(), FullPass: 10 * time.Second, Stale: time.Minute,
	}, w.Fake, shown{w.mirror}, w.Fake)
	return w.background(func(ctx context.Context) { l.Lead(ctx, leader.Term{}) })
}

func (w *world) id() record.WriteID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	return record.WriteID(fmt.Sprintf("test-write-%06d", w.writes))
}

// apply stores a workflow, and start a run of it.
func (w *world) apply(flow *spec.Workflow) {
	w.t.Helper()
	require.Empty(w.t, spec.Validate(flow))
	encoded, err := spec.Encode(flow)
	require.NoError(w.t, err)
	w.Seed(record.RevisionKey(flow.Name, 1), record.Revision{
		Schema: record.Schema, Workflow: flow.Name, Revision: 1, Bytes: len(encoded), Spec: record.Text(encoded), Write: w.id(),
	}, 0)
	w.Seed(record.WorkflowKey(flow.Name), record.Workflow{Schema: record.Schema, Workflow: flow.Name, Revision: 1, Write: w.id()}, 0)
}

func (w *world) start(id record.RunID) {
	w.t.Helper()
	run, err := record.Run{Schema: record.Schema, Run: id, Workflow: id.Workflow(), Revision: 1, Trigger: record.TriggerManual}.
		Move(record.RunMove{To: record.RunRunning, By: record.API, Who: "person/test", At: time.Now().UTC(), Rule: record.RuleCreate, Write: w.id()})
	require.NoError(w.t, err)
	w.Seed(record.RunKey(id), run, 0)
}

// work lives as a worker with that many slots, through a gateway that does
// nothing but write.
func (w *world) work(name record.WorkerName, slots int) {
	w.t.Helper()
	ref := view.SessionRef{Worker: name, Session: record.SessionID(name) + "-1"}
	lease, _, err := w.Grant(w.t.Context(), time.Hour)
	require.NoError(w.t, err)
	w.Seed(record.SessionKey(name, ref.Session), record.Session{Schema: record.Schema, Worker: name, Session: ref.Session, Write: w.id()}, 0)
	w.Seed(record.WorkerKey(name, ref.Session), record.Worker{
		Schema: record.Schema, Worker: name, Session: ref.Session, Lease: lease, TTL: record.Duration(time.Hour), Slots: slots,
		Queues: []record.Queue{spec.DefaultQueue}, Processes: true, Write: w.id(),
	}, lease)
	feed := w.mirror.Feed()
	w.background(func(ctx context.Context) {
		defer feed.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-feed.Wake():
			}
			feed.Take()
			var held []view.Row
			w.mirror.Read(func(v *view.Active) { held = v.Held(ref) })
			if len(held) > slots && !w.loose {
				w.t.Errorf("%s holds %d attempts, more than its %d slots", name, len(held), slots)
			}
			for _, row := range held {
				w.step(ctx, row)
			}
		}
	})
}

// step claims an intent and ends what runs.
func (w *world) step(ctx context.Context, row view.Row) {
	to, rule := record.Running, record.RuleClaim
	var cause record.Cause
	if row.State == record.Running {
		to, rule = w.end(row.Ref()), record.RuleFinish
		if to == record.Failed {
			cause = record.Because(record.CauseExitCode, "exit code 1")
		}
	}
	write := w.id()
	next, err := row.Move(record.Step{
		To: to, By: record.Gateway, Who: "session/" + string(row.Session), At: time.Now().UTC(), Rule: rule, Write: write, Cause: cause,
	})
	if err != nil {
		return // it moved on
	}
	if to == record.Failed {
		next.Exit = &record.Exit{Code: 1}
	}
	expect := []record.Expect{
		record.At(record.AttemptKey(row.Ref()), row.ModRev), record.Present(record.WorkerKey(row.Worker, row.Session)),
	}
	if to == record.Running {
		w.mirror.Read(func(v *view.Active) {
			if r, ok := v.Run(row.Run); ok {
				expect = append(expect, record.At(record.RunKey(row.Run), r.ModRev))
			}
		})
	}
	c, err := record.NewChange(rule, write, expect, []record.Put{{Key: record.AttemptKey(row.Ref()), Value: next}})
	require.NoError(w.t, err)
	o, err := w.Commit(ctx, c)
	require.NoError(w.t, err)
	if o.Verdict == record.Committed && to == record.Running {
		w.mu.Lock()
		w.started[row.Ref()]++
		w.mu.Unlock()
	}
}

// ended waits for the document of a run.
func (w *world) ended(id record.RunID) record.Ended {
	w.t.Helper()
	feed := w.mirror.Feed()
	defer feed.Close()
	for limit := time.After(time.Hour); ; {
		s, err := w.Get(w.t.Context(), record.EndedKey(id))
		require.NoError(w.t, err)
		if head, ok := s.Value.(record.Ended); ok {
			return head
		}
		select {
		case <-feed.Wake():
			feed.Take()
		case <-limit:
			w.mirror.Read(func(v *view.Active) {
				r, _ := v.Run(id)
				require.Fail(w.t, "the run does not end", "%+v", r)
			})
		}
	}
}

// rows reads the rows of a document.
func (w *world) rows(head record.Ended) []record.EndedRow {
	w.t.Helper()
	var rows []record.EndedRow
	for n := 1; n <= head.Pages; n++ {
		s, err := w.Get(w.t.Context(), record.PageKey(head.Run.Run, n))
		require.NoError(w.t, err)
		page, ok := s.Value.(record.EndedPage)
		require.True(w.t, ok, "page %d", n)
		rows = append(rows, page.Rows...)
	}
	return rows
}
