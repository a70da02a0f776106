package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Term is one leadership of one replica.
type Term struct {
	// Lease is the leader's lease, and Key the leader's key attached to it.
	Lease int64
	Key   string
	// Rev is the create revision of Key. It grows from term to term, and every
	// write of the leader compares it.
	Rev int64
	// Since is when this replica learned that it leads, by its own clock.
	Since time.Time
}

// Standing is how this replica stands in the election, for its readiness.
type Standing struct {
	// Leading reports that Term is this replica's present leadership.
	Leading bool
	// Term is the present leadership or, if not Leading, the last one.
	Term Term
	// Ended says why the last leadership ended, and is nil before that. EndedAt
	// is when, by this replica's clock.
	Ended   error
	EndedAt time.Time
}

// Standing returns how this replica stands.
func (e *Elector) Standing() Standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.standing
}

// Progress is called by the leader's loop whenever it got somewhere, with its
// reading of the clock. Without a call for Config.StallLimit the term ends.
func (e *Elector) Progress(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.After(e.progress) {
		e.progress = now
	}
}

// Resign gives leadership up, for a reason that appears in Standing beside
// ErrResigned, and campaigns again behind all others. It does not wait, and
// does nothing where this replica does not lead.
func (e *Elector) Resign(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.giveUp != nil {
		e.giveUp(fmt.Errorf("%w: %s", ErrResigned, why))
	}
}

// lead runs one term, and hands leadership over before it returns.
func (e *Elector) lead(ctx context.Context, s *session, term Term, lead func(context.Context, Term) error) error {
	termCtx, end := context.WithCancelCause(ctx)
	defer end(nil)
	e.begin(term, end)
	e.logger.Info("leadership won", zap.String("replica", e.config.Replica), zap.Int64("term", term.Rev))

	led := make(chan error, 1)
	go func() { led <- lead(termCtx, term) }()
	returned, err := e.guard(termCtx, end, s, term, led)
	cause := context.Cause(termCtx)
	if !returned && (errors.Is(cause, ErrResigned) || ctx.Err() != nil) {
		returned, err = e.drain(led)
	}
	e.finish(cause)
	handed := e.handOver(ctx, term)
	e.logger.Info("leadership ended", zap.String("replica", e.config.Replica), zap.Int64("term", term.Rev),
		zap.NamedError("cause", cause), zap.Bool("handed_over", handed == nil))
	if !returned {
		// Leadership is gone already; only this replica waits for its loop.
		s.cancel()
		err = <-led
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("lead: %w", errors.Join(cause, err))
	}
	return cause
}

// guard watches over a term until lead returns or the term's context ends, and
// ends it for each of the reasons of the package comment. It reports whether
// lead returned, and with what.
func (e *Elector) guard(ctx context.Context, end context.CancelCauseFunc, s *session, term Term, led <-chan error) (bool, error) {
	stall := time.NewTimer(e.config.StallLimit)
	defer stall.Stop()
	for {
		changed := e.roll.changed()
		if e.roll.place(term) == placeGone {
			end(ErrKeyGone)
		}
		select {
		case err := <-led:
			end(fmt.Errorf("%w: the leader's loop returned", ErrResigned))
			return true, err
		case <-ctx.Done():
			return false, nil
		case <-s.done:
			end(ErrSessionEnded)
		case <-changed:
		case <-stall.C:
			left := e.config.StallLimit - time.Since(e.lastProgress())
			if left <= 0 {
				end(fmt.Errorf("%w for %s", ErrStalled, e.config.StallLimit))
			}
			stall.Reset(max(left, time.Millisecond))
		}
	}
}

// drain lets lead end by itself for a moment.
func (e *Elector) drain(led <-chan error) (bool, error) {
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	select {
	case err := <-led:
		return true, err
	case <-limit.C:
		return false, nil
	}
}

// handOver deletes the term's key, which makes the next candidate the leader at
// once. It is tried in spite of a context that ended.
func (e *Elector) handOver(ctx context.Context, term Term) error {
	ctx, cancel := call(context.WithoutCancel(ctx))
	defer cancel()
	_, err := e.bulk.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(term.Key), "=", term.Rev)).
		Then(clientv3.OpDelete(term.Key)).
		Commit()
	return err
}

// begin records that a term began; its start counts as progress.
func (e *Elector) begin(term Term, end context.CancelCauseFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.standing.Leading, e.standing.Term = true, term
	e.progress, e.giveUp = term.Since, end
}

// finish records that the term ended.
func (e *Elector) finish(cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.standing.Leading = false
	e.standing.Ended, e.standing.EndedAt = cause, time.Now()
	e.giveUp = nil
}

// lastProgress returns the newest report of progress.
func (e *Elector) lastProgress() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.progress
}
