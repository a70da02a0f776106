package replica

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/record"
)

const (
	// sweepEvery is how often the leader looks for ended runs past their time.
	sweepEvery = time.Minute
	// sweepPage is how many lines of the index are read at a time.
	sweepPage = 500
)

// sweep deletes ended runs by age and count while this replica leads.
func (p *parts) sweep(ctx context.Context, term []record.Expect) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if n, err := p.sweepOnce(ctx, time.Now(), term); err != nil && ctx.Err() == nil {
			p.logger.Warn("ended runs are not swept", zap.Error(err))
		} else if n > 0 {
			p.logger.Info("ended runs were swept", zap.Int("runs", n))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sweepOnce reads the index, newest first, and deletes what is beyond the
// bounds. It returns how many runs went.
func (p *parts) sweepOnce(ctx context.Context, now time.Time, term []record.Expect) (int, error) {
	kept := map[record.WorkflowName]int{}
	swept := 0
	var after record.Key
	for {
		lines, err := p.store.List(ctx, record.AllOf(record.FamilyIndex), after, sweepPage)
		if err != nil {
			return swept, fmt.Errorf("list ended runs: %w", err)
		}
		for _, stored := range lines {
			after = stored.Key
			line, ok := stored.Value.(record.IndexLine)
			if !ok {
				continue // it was logged when it was read
			}
			kept[line.Workflow]++
			if now.Sub(line.EndedAt) <= p.config.Retention && kept[line.Workflow] <= p.config.RetainRuns {
				continue
			}
			gone, err := p.store.Sweep(ctx, stored, term...)
			if err != nil {
				return swept, fmt.Errorf("sweep run %s: %w", line.Run, err)
			}
			if gone {
				swept++
			}
		}
		if len(lines) < sweepPage {
			return swept, nil
		}
	}
}
