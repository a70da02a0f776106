package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// teller shows a run that is followed. Refresh is called several times a
// second, and both it and end may be nil.
type teller struct {
	tell    func(b *board, m *writv1.WatchRunResponse) error
	refresh func(b *board)
	end     func(b *board)
}

// teller picks how a followed run is shown.
func (a *app) teller() teller {
	if _, _, is := a.env.Terminal(); is && !a.json && a.env.Getenv("TERM") != "dumb" {
		return a.liveTable()
	}
	return teller{
		tell: func(b *board, m *writv1.WatchRunResponse) error {
			if a.json {
				return a.line(m)
			}
			for _, l := range b.changes(m) {
				a.printf("%s\n", l)
			}
			return nil
		},
		end: func(b *board) {
			if !a.json {
				a.printf("%s\n", b.summary(a.env.Now(), 0, false))
			}
		},
	}
}

// liveTable redraws the table of tasks in place.
func (a *app) liveTable() teller {
	s := &screen{w: a.env.Stdout}
	draw := func(b *board, bounded bool) {
		width, height, _ := a.env.Terminal()
		if !bounded {
			height = 0
		}
		s.draw(b.lines(a.env.Now(), width, height, a.painted()))
	}
	return teller{
		tell: func(b *board, _ *writv1.WatchRunResponse) error {
			if s.drawn == 0 {
				draw(b, true)
			}
			return nil
		},
		refresh: func(b *board) { draw(b, true) },
		end:     func(b *board) { draw(b, false) },
	}
}

// lastWord says nothing before the run has ended.
func (a *app) lastWord() teller {
	var last *writv1.WatchRunResponse
	return teller{
		tell: func(_ *board, m *writv1.WatchRunResponse) error {
			last = m
			return nil
		},
		end: func(b *board) {
			if a.json {
				_ = a.line(last.GetRun())
				return
			}
			a.printf("%s %s\n", b.run.GetRun(), runState(b.run.GetState()))
		},
	}
}

// refreshEvery is how often a live table is drawn.
const refreshEvery = 200 * time.Millisecond

// follow shows a run until it has ended; its error tells how it ended.
func (a *app) follow(ctx context.Context, s *servers, run string, t teller) error {
	ctx, cancel := a.bound(ctx, 0)
	messages, watched := make(chan *writv1.WatchRunResponse), make(chan error, 1)
	go func() {
		watched <- a.watch(ctx, s, run, func(m *writv1.WatchRunResponse) error {
			select {
			case messages <- m:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	b, err := showing(messages, watched, t)
	interrupted := errors.Is(context.Cause(ctx), context.Canceled)
	cancel()
	if err != nil && interrupted {
		return &exitError{code: ExitUnreachable, err: fmt.Errorf("stopped to follow, the run goes on: %s", run)}
	}
	if err != nil {
		return fmt.Errorf("follow run %s: %w", run, err)
	}
	if err := <-watched; err != nil {
		return fmt.Errorf("follow run %s: %w", run, err)
	}
	if t.end != nil {
		t.end(b)
	}
	return outcome(b.run)
}

// showing hands what was watched to the teller until the run has ended.
func showing(messages <-chan *writv1.WatchRunResponse, watched <-chan error, t teller) (*board, error) {
	b := newBoard()
	var refresh <-chan time.Time
	if t.refresh != nil {
		tick := time.NewTicker(refreshEvery)
		defer tick.Stop()
		refresh = tick.C
	}
	for {
		select {
		case m := <-messages:
			b.merge(m)
			if err := t.tell(b, m); err != nil {
				return nil, err
			}
			if m.GetEnded() {
				return b, nil
			}
		case err := <-watched:
			return nil, err
		case <-refresh:
			t.refresh(b)
		}
	}
}

// outcome turns the end of a run into the command's.
func outcome(r *writv1.Run) error {
	switch r.GetState() {
	case writv1.RunState_RUN_STATE_SUCCESS:
		return nil
	case writv1.RunState_RUN_STATE_CANCELLED:
		return verdict(ExitCancelled, "run %s was cancelled", r.GetRun())
	default:
		return verdict(ExitBad, "run %s ended %s", r.GetRun(), runState(r.GetState()))
	}
}
