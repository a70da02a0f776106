package gateway

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// told is what a stream has said about a token.
type told struct {
	assigned  bool
	probed    time.Time
	cancelled time.Time
	// runs is set where the Hello says that it runs: what it names.
	runs *writv1.AttemptRef
}

// again is how often a cancel or a probe that had no effect is repeated.
const again = 3 * time.Second

// errand is something to be said about a row.
type errand struct {
	row    view.Row
	assign *writv1.Assign
	cancel record.CauseCode
	probe  bool
	omit   bool // it runs, and the worker does not have it
	// stray, where not nil, is a running attempt that was ended without its
	// worker: nothing waits for it any more, but the proof of its death.
	stray *writv1.Cancel
}

// push keeps the worker informed of the rows that it holds: intents that it
// was not sent, attempts that are to end, dispatches that it never confirmed.
func (s *stream) push(ctx context.Context, held []*writv1.HeldToken) {
	known := map[record.Token]*told{}
	for _, h := range held {
		k := &told{assigned: true}
		if h.GetPhase() == writv1.TokenPhase_TOKEN_PHASE_RUNNING {
			k.runs = h.GetAttempt()
		}
		known[record.Token(h.GetToken())] = k
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for _, e := range s.errands(known, time.Now()) {
			s.run1(ctx, e)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-tick.C:
		}
	}
}

// errands reads from the view what is to be said, and notes it as said.
func (s *stream) errands(known map[record.Token]*told, now time.Time) []errand {
	var list []errand
	s.gateway.mirror.Read(func(v *view.Active) {
		if v.Rev() < s.peer.Rev {
			return // the view is older than the Hello
		}
		rows := v.Held(s.ref)
		live := make(map[record.Token]bool, len(rows))
		for _, row := range rows {
			live[row.Token] = true
			if e, ok := s.errand(v, row, known, now); ok {
				list = append(list, e)
			}
		}
		for t, k := range known {
			if live[t] {
				k.runs = nil // from now on its end is the worker's own
				continue
			}
			if k.runs != nil {
				list = append(list, errand{stray: &writv1.Cancel{Token: string(t), Attempt: k.runs, Why: string(record.CauseResolved)}})
			}
			delete(known, t)
		}
	})
	return list
}

func (s *stream) errand(v *view.Active, row view.Row, known map[record.Token]*told, now time.Time) (errand, bool) {
	r, ok := v.Run(row.Run)
	if !ok || !r.Loaded() {
		return errand{}, false
	}
	t, ok := r.Task(row.TaskRef())
	if !ok {
		return errand{}, false
	}
	k := known[row.Token]
	if row.State == record.Running && k == nil {
		// This stream sent nothing of it, and its Hello did not name it.
		known[row.Token] = &told{assigned: true}
		return errand{row: row, omit: true}, true
	}
	if k == nil {
		k = &told{}
		known[row.Token] = k
	}
	if cause, stop := r.Unwanted(row, now); stop {
		if now.Sub(k.cancelled) < again {
			return errand{}, false
		}
		k.assigned, k.cancelled = true, now
		return errand{row: row, cancel: cause}, true
	}
	switch {
	case !row.Intent() || row.Refused != nil:
		return errand{}, false
	case !k.assigned:
		k.assigned = true
		return errand{row: row, assign: assign(r, t, row)}, true
	case now.Sub(row.EnteredAt) >= s.gateway.config.Confirm && now.Sub(k.probed) >= again:
		k.probed = now
		return errand{row: row, probe: true}, true
	default:
		return errand{}, false
	}
}

// run1 says one thing to the worker, or writes what its Hello left out.
func (s *stream) run1(ctx context.Context, e errand) {
	m := &writv1.AttendResponse{}
	name := toRef(e.row.Ref())
	switch {
	case e.stray != nil:
		m.Message = &writv1.AttendResponse_Cancel{Cancel: e.stray}
	case e.omit:
		s.omitted(ctx, e.row)
		return
	case e.cancel != record.CauseNone:
		m.Message = &writv1.AttendResponse_Cancel{Cancel: &writv1.Cancel{Token: string(e.row.Token), Attempt: name, Why: string(e.cancel)}}
	case e.probe:
		m.Message = &writv1.AttendResponse_Probe{Probe: &writv1.Probe{Token: string(e.row.Token), Attempt: name}}
	default:
		params, err := s.gateway.inputs.of(ctx, e.row.Run)
		if err != nil {
			// The worker is probed later, does not know it, and it is replaced.
			s.gateway.config.Logger.Warn("an attempt is not sent", zap.Stringer("attempt", e.row.Ref()), zap.Error(err))
			return
		}
		e.assign.Params = params
		m.Message = &writv1.AttendResponse_Assign{Assign: e.assign}
	}
	s.say(ctx, m)
}

// omitted declares a running row lost that the worker's Hello does not name.
func (s *stream) omitted(ctx context.Context, row view.Row) {
	answer := session.Omitted(s.peer, time.Now().UTC(), session.Seen[record.Attempt]{Record: row.Attempt, Rev: row.ModRev})
	if answer.Change == nil {
		return
	}
	if _, err := s.gateway.store.Commit(ctx, *answer.Change); err != nil {
		s.gateway.config.Logger.Error("a lost attempt cannot be ended", zap.Stringer("attempt", row.Ref()), zap.Error(err))
	}
}
