package reconcile

import (
	"fmt"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// abandon replaces a dispatch into a void.
//
// When: an intent was refused by its worker, or its session is gone, or it is
// older than the confirm and the probe time.
// Then: queued → abandoned, with the next attempt waiting in the same change;
// no retry is spent, a session that is gone counts as a loss, and repeated
// ones back off. Over the loss limit: queued → failed (loss_limit).
// Guard: row as seen, next row absent, run as seen. A claim that lands first
// moves the row.
// Keeps: I2, I8; I7, since nothing starts a row that is terminal.
func (p *pass) abandon(r *view.Run, t *view.Task) *Verdict {
	row, ok := t.Latest()
	if !ok || !row.Intent() {
		return nil
	}
	a := p.seek(row.Holder())
	if !a.alive && row.Refused == nil {
		if w, ok := p.delay(row, a); ok {
			return waiting(w)
		}
	}
	cause, until, void := p.void(row, a)
	if !void {
		w := aboutRow(row, ReasonUnconfirmed)
		w.Until = until
		return waiting(w)
	}
	w := aboutRow(row, ReasonUnconfirmed)
	if cause.Code.Loss() && row.Losses >= t.Spec.Losses() {
		c := p.plan(record.RuleLost).row(row).run(r)
		return c.move(row.Attempt, record.Failed, lossLimit(row)).verdict(w)
	}
	c := p.plan(record.RuleAbandon).row(row)
	next := c.fresh(r, t)
	next.Abandons = row.Abandons + 1
	if cause.Code.Loss() {
		next.Losses = row.Losses + 1
	}
	if d := p.again(row); d > 0 {
		next.NotBefore = p.turn.Now.Add(d)
	}
	return c.move(row.Attempt, record.Abandoned, cause).move(next, record.Queued, record.Because(record.CauseRetry, "")).verdict(w)
}

// void says that nobody will take up an intent, and why; otherwise until is
// when that will be so unless it is confirmed.
func (p *pass) void(row view.Row, a absence) (cause record.Cause, until time.Time, void bool) {
	if !row.Intent() {
		return record.Cause{}, time.Time{}, false
	}
	until = row.EnteredAt.Add(p.turn.Policy.Confirm + p.turn.Policy.Probe)
	switch {
	case row.Refused != nil:
		return record.Because(record.CauseRefused, "its worker does not know the token"), until, true
	case !a.alive:
		return record.Because(record.CauseSessionGone, "its session is gone"), until, true
	case !p.turn.Now.Before(until):
		return record.Because(record.CauseUnconfirmed, "nobody confirmed the dispatch in time"), until, true
	default:
		return record.Cause{}, until, false
	}
}

// again is the wait before the dispatch that follows one into a void: none
// after the first.
func (p *pass) again(row view.Row) time.Duration {
	if row.Abandons == 0 {
		return 0
	}
	d := p.turn.Policy.AbandonDelay
	for range row.Abandons - 1 {
		if d *= 2; d >= p.turn.Policy.AbandonMax {
			d = p.turn.Policy.AbandonMax
			break
		}
	}
	// Up to a quarter more, so that many do not come back at once.
	return d + time.Duration(share(row.Ref().String(), "abandon")*float64(d)/4)
}

func lossLimit(row view.Row) record.Cause {
	return record.Because(record.CauseLossLimit, fmt.Sprintf("its worker was lost %d times", row.Losses+1))
}
