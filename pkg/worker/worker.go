package worker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// Worker executes attempts. Make it with New.
type Worker struct {
	config Config
	now    func() session.Instant
}

// New checks the configuration. It touches neither disk nor network.
func New(config Config) (*Worker, error) {
	config, err := config.resolve()
	if err != nil {
		return nil, fmt.Errorf("configure worker: %w", err)
	}
	return &Worker{config: config, now: bootTime}, nil
}

// farewell bounds how long a worker that has nothing left to run waits for the
// answers to its last reports; with a state directory the next life sends
// them again.
const farewell = 10 * time.Second

// hangUpLimit bounds the wait for the end of the last stream.
const hangUpLimit = 2 * time.Second

// Run attends until ctx ends, then drains, and returns when nothing of it runs
// any more.
func (w *Worker) Run(ctx context.Context) error {
	state, err := openState(w.config.StateDir)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer state.close() //nolint:errcheck // the lock ends with the file, whatever close says
	l := &life{
		Worker: w, state: state, agent: session.NewAgent(w.config.Slots), events: make(chan func(), 256), fences: make(chan time.Duration, 1),
		attempts: map[record.Token]*attempt{}, legacy: map[string]*writv1.Finished{}, patience: firstPatience,
	}
	if err := l.inherit(ctx); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	// The session outlives ctx: what runs is reported.
	calm, end := context.WithCancel(context.WithoutCancel(ctx))
	l.calm = calm
	var parts sync.WaitGroup
	refused := make(chan error, 1)
	parts.Go(func() { refused <- l.attend(calm) })
	parts.Go(func() { l.extend(calm) })
	err = l.loop(ctx, refused)
	l.do(l.agent.Drain()) // nothing begins any more, whatever is still heard
	l.stopAll(ErrStopped)
	l.settleRuns()
	l.hangUp()
	end()
	l.emptyEvents(&parts)
	return err
}

// attempt is one that the worker has not closed.
type attempt struct {
	assign *writv1.Assign
	stop   context.CancelCauseFunc // nil before it began
	report *writv1.Finished        // nil before it ended
	tell   session.Instant         // when to tell that it runs; zero: not
}

// life is one run of a worker: one session. The loop owns all of it but what
// says otherwise.
type life struct {
	*Worker
	state    *state
	agent    *session.Agent
	events   chan func()     // for the loop; capacity 256, full: who posts waits
	calm     context.Context //nolint:containedctx // attempts outlive the call that began them
	attempts map[record.Token]*attempt
	runs     sync.WaitGroup // attempts that execute
	running  atomic.Int64   // how many they are
	fences   chan time.Duration

	// legacy are reports of earlier sessions, which this one delivers.
	legacy    map[string]*writv1.Finished
	attested  bool
	unsettled int             // how many legacy there were
	legacyAt  session.Instant // when they were last sent
	settledOn *link           // where it was said that all are answered

	link     *link // the stream that counts; nil between streams
	streams  int64
	beats    atomic.Int64       // the number of the last heartbeat, over all streams
	asked    *writv1.AttemptRef // what the server last spoke of
	drained  bool
	leaving  atomic.Bool   // no stream is opened any more
	patience time.Duration // with a server that was said Hello; attend's own
}

// inherit takes over what earlier lives of the state directory left, and then
// begins a session of its own: whatever is found now, the session before left.
func (l *life) inherit(ctx context.Context) error {
	kept, err := l.state.kept()
	if err != nil {
		return err
	}
	for _, f := range kept {
		l.legacy[f.GetToken()] = f
	}
	p := l.config.Processes
	swept := p != nil && p.Prepare != nil
	if swept {
		left, err := p.Prepare(ctx)
		if err != nil {
			return fmt.Errorf("end what an earlier life left: %w", err)
		}
		for _, f := range left {
			if l.legacy[f.GetToken()] != nil {
				continue // its own report says more
			}
			f.Session = l.state.before.name()
			if err := l.state.keep(f); err != nil {
				return err
			}
			l.legacy[f.GetToken()] = f
		}
	}
	// Handlers died with the program that had the lock.
	l.attested = l.state.before.Sessions > 0 && (swept || !l.state.before.Processes)
	l.unsettled = len(l.legacy)
	return l.state.begin(p != nil)
}

// tick is how often the agent looks at the clock.
const tick = 200 * time.Millisecond

// loop owns the life until the worker has nothing left to do.
func (l *life) loop(ctx context.Context, refused <-chan error) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	stopping := ctx.Done()
	var drain, last <-chan time.Time
	for {
		select {
		case f := <-l.events:
			f()
		case <-ticker.C:
			l.do(l.agent.Tick(l.now()))
			l.sendLate()
			l.resendLegacy()
			l.settleLegacy()
		case err := <-refused:
			return err
		case <-stopping:
			stopping = nil
			l.beginDrain()
			drain = time.After(l.config.Drain)
		case <-drain:
			drain = nil
			l.stopAll(ErrStopped)
		case <-last:
			return nil
		}
		if l.drained && l.agent.Empty() && len(l.legacy) == 0 {
			return nil
		}
		if l.drained && l.agent.Idle() && last == nil {
			last = time.After(farewell)
		}
	}
}

// post hands f to the loop; false means that the life is over.
func (l *life) post(ctx context.Context, f func()) bool {
	select {
	case l.events <- f:
		return true
	case <-ctx.Done():
		return false
	}
}

// settleRuns waits for what executes while the loop takes its ends in.
func (l *life) settleRuns() {
	done := make(chan struct{})
	go func() { // it ends with the runs
		l.runs.Wait()
		close(done)
	}()
	for {
		select {
		case f := <-l.events:
			f()
		case <-done:
			return
		}
	}
}

// hangUp sends what is queued, ends the stream, and waits a little for the
// server's end of it, so that the last words are not lost with the connection.
func (l *life) hangUp() {
	l.leaving.Store(true)
	if l.link == nil {
		return
	}
	limit := time.NewTimer(hangUpLimit)
	defer limit.Stop()
	close(l.link.bye)
	for l.link != nil {
		select {
		case f := <-l.events:
			f()
		case <-limit.C:
			return
		}
	}
}

// emptyEvents lets nobody wait for a loop that is over.
func (l *life) emptyEvents(parts *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { // it ends with the parts
		parts.Wait()
		close(done)
	}()
	for {
		select {
		case <-l.events:
		case <-done:
			return
		}
	}
}

func (l *life) beginDrain() {
	l.drained = true
	l.config.Logger.Info("the worker stops", "running", l.running.Load(), "drain", l.config.Drain)
	l.do(l.agent.Drain())
	l.send(&writv1.AttendRequest{Message: &writv1.AttendRequest_Drain{Drain: &writv1.Drain{Why: "the worker stops"}}})
}

// stopAll ends everything that executes.
func (l *life) stopAll(cause error) {
	for _, a := range l.attempts {
		if a.stop != nil && a.report == nil {
			a.stop(cause)
		}
	}
}

// extend moves the fence of what runs, beside the loop.
func (l *life) extend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case until := <-l.fences:
			if p := l.config.Processes; p != nil && p.Extend != nil {
				p.Extend(ctx, until)
			}
		}
	}
}
