package replica

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store"
)

const (
	// compactEvery is how often the leader looks whether history can go.
	compactEvery = 30 * time.Second
	// compactBytes is the use of the database above which history is kept for
	// compactHaste only, DESIGN's "10 minutes or 1 GiB, whichever is less".
	compactBytes = int64(1) << 30
	compactHaste = time.Minute
	// fullShare is the share of the quota above which no new run is admitted.
	fullShare = 0.7
)

// mark is a revision and when it was the newest.
type mark struct {
	at  time.Time
	rev int64
}

// history decides which part of the past may go. One goroutine owns it.
type history struct {
	keep  time.Duration
	marks []mark // oldest first
}

// note adds a mark and returns the revision before which history may go; zero
// means that none may.
func (h *history) note(now time.Time, rev, inUse int64) int64 {
	h.marks = append(h.marks, mark{at: now, rev: rev})
	keep := h.keep
	if inUse > compactBytes {
		keep = min(keep, compactHaste)
	}
	var to int64
	for len(h.marks) > 0 && now.Sub(h.marks[0].at) >= keep {
		to = h.marks[0].rev
		h.marks = h.marks[1:]
	}
	return to
}

// compact lets old history go while this replica leads.
func (p *parts) compact(ctx context.Context, term []record.Expect) {
	h := &history{keep: DefaultKeep}
	tick := time.NewTicker(compactEvery)
	defer tick.Stop()
	for {
		if err := p.compactOnce(ctx, h, term); err != nil && ctx.Err() == nil {
			p.logger.Warn("history is not compacted", zap.Error(err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *parts) compactOnce(ctx context.Context, h *history, term []record.Expect) error {
	status, err := p.store.Status(ctx)
	if err != nil {
		return fmt.Errorf("read the size of etcd: %w", err)
	}
	p.noteSize(status)
	to := h.note(time.Now(), status.Rev, status.InUse)
	if to == 0 || p.config.KeepHistory {
		return nil
	}
	stored, err := p.store.Get(ctx, record.CompactKey())
	if err != nil {
		return fmt.Errorf("read the last compaction: %w", err)
	}
	if last, ok := stored.Value.(record.Compaction); ok && last.Rev >= to {
		return nil
	}
	next := record.Compaction{Schema: record.Schema, Rev: to, At: time.Now().UTC(), Write: writeID()}
	c, err := record.NewChange(record.RuleSweep, next.Write,
		append([]record.Expect{record.At(record.CompactKey(), stored.ModRev)}, term...),
		[]record.Put{{Key: record.CompactKey(), Value: next}})
	if err != nil {
		return err
	}
	o, err := p.store.Commit(ctx, c)
	if err != nil || o.Verdict != record.Committed {
		return err // another replica leads, or was quicker
	}
	return p.store.Compact(ctx, to)
}

// noteSize remembers whether etcd has room for new runs.
func (p *parts) noteSize(s store.Status) {
	full := s.Quota > 0 && float64(s.InUse) > fullShare*float64(s.Quota)
	if p.full.Swap(full) != full {
		p.logger.Warn("room for new runs has changed", zap.Bool("full", full), zap.Int64("in_use_bytes", s.InUse), zap.Int64("quota_bytes", s.Quota))
	}
}
