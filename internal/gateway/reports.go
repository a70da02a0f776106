package gateway

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// reportTries bounds how often a report meets records that have moved; after
// that it stays unanswered, and the worker sends it again.
const reportTries = 16

// seen is a row and its run, from the mirror or from the store.
type seen struct {
	row session.Seen[record.Attempt]
	run session.Seen[record.Run]
}

// look reads a row and its run from the mirror, which is free, or from the
// store where fresh is set or the mirror does not have them, or is older than
// since. A stream asks for its own registration: while the session was gone,
// rows that the mirror still shows running may have been ended.
func (g *Gateway) look(ctx context.Context, ref record.Ref, since int64, fresh bool) (seen, error) {
	var s seen
	if !fresh {
		g.mirror.Read(func(v *view.Active) {
			if v.Rev() < since {
				return
			}
			r, ok := v.Run(ref.Run)
			row, has := v.Row(ref)
			if ok && has {
				s.row = session.Seen[record.Attempt]{Record: row.Attempt, Rev: row.ModRev}
				s.run = session.Seen[record.Run]{Record: r.Record, Rev: r.ModRev}
			}
		})
		if s.row.Rev != 0 {
			return s, nil
		}
	}
	row, err := g.store.Get(ctx, record.AttemptKey(ref))
	if err != nil {
		return s, fmt.Errorf("read %s: %w", ref, err)
	}
	run, err := g.store.Get(ctx, record.RunKey(ref.Run))
	if err != nil {
		return s, fmt.Errorf("read run %s: %w", ref.Run, err)
	}
	s.take(row)
	s.take(run)
	return s, nil
}

// take replaces what is seen by a stored record.
func (s *seen) take(stored record.Stored) {
	switch stored.Key.Family {
	case record.FamilyAttempt:
		a, _ := stored.Value.(record.Attempt)
		s.row = session.Seen[record.Attempt]{Record: a, Rev: stored.ModRev}
	case record.FamilyRun:
		r, _ := stored.Value.(record.Run)
		s.run = session.Seen[record.Run]{Record: r, Rev: stored.ModRev}
	default:
	}
}

// settle asks decide what follows from the records and makes it durable, until
// the answer is final; ok is false where it stays open.
func (s *stream) settle(ctx context.Context, ref record.Ref, decide func(seen) session.Answer) (session.Answer, bool) {
	g := s.gateway
	fresh := false
	for range reportTries {
		now, err := g.look(ctx, ref, s.peer.Rev, fresh)
		if err != nil {
			return session.Answer{}, false
		}
		answer := decide(now)
		if answer.Final && !fresh && !answer.Good {
			fresh = true // the mirror may be behind; a refusal rests on the store
			continue
		}
		if answer.Final {
			return answer, true
		}
		outcome, err := g.store.Commit(ctx, *answer.Change)
		switch {
		case err != nil:
			g.config.Logger.Error("a report cannot be written", zap.Stringer("attempt", ref), zap.Error(err))
			return session.Answer{Final: true, Why: err.Error()}, true
		case outcome.Verdict == record.Committed:
			return session.Answer{Final: true, Good: true}, true
		case outcome.Verdict == record.Unknown:
			return session.Answer{}, false
		}
		if live, ok := outcome.Find(record.WorkerKey(s.ref.Worker, s.ref.Session)); ok && live.ModRev == 0 {
			s.end(errLeaseGone)
			return session.Answer{}, false
		}
		fresh = true
	}
	return session.Answer{}, false
}

// startedHandler answers Started, and a probe that found the attempt running.
func (s *stream) startedHandler(t string, m *writv1.AttemptRef, claim, reply bool) (func(context.Context), error) {
	tok, err := token(t)
	if err != nil {
		return nil, fmt.Errorf("started: %w", err)
	}
	name, err := ref(m)
	if err != nil {
		return nil, fmt.Errorf("started: %w", err)
	}
	said := session.Started{Token: tok, Claim: claim, At: time.Now().UTC()}
	return func(ctx context.Context) {
		answer, ok := s.settle(ctx, name, func(now seen) session.Answer { return session.Start(s.peer, said, now.row, now.run) })
		if !ok || !reply {
			return
		}
		s.say(ctx, &writv1.AttendResponse{Message: &writv1.AttendResponse_StartedAck{StartedAck: &writv1.StartedAck{
			Token: t, Go: answer.Good, Why: answer.Why,
		}}})
	}, nil
}

// probeHandler takes the answer to a probe.
func (s *stream) probeHandler(m *writv1.ProbeAnswer) (func(context.Context), error) {
	switch m.GetPhase() {
	case writv1.TokenPhase_TOKEN_PHASE_RUNNING:
		return s.startedHandler(m.GetToken(), m.GetAttempt(), false, false)
	case writv1.TokenPhase_TOKEN_PHASE_ASSIGNED, writv1.TokenPhase_TOKEN_PHASE_UNREPORTED:
		return func(context.Context) {}, nil // its claim or its report says more
	default:
	}
	tok, err := token(m.GetToken())
	if err != nil {
		return nil, fmt.Errorf("probe answer: %w", err)
	}
	name, err := ref(m.GetAttempt())
	if err != nil {
		return nil, fmt.Errorf("probe answer: %w", err)
	}
	at := time.Now().UTC()
	return func(ctx context.Context) {
		s.settle(ctx, name, func(now seen) session.Answer { return session.Refuse(s.peer, tok, at, now.row) })
	}, nil
}

// finishedHandler answers Finished.
func (s *stream) finishedHandler(m *writv1.Finished) (func(context.Context), error) {
	if _, err := token(m.GetToken()); err != nil {
		return nil, fmt.Errorf("finished: %w", err)
	}
	name, err := ref(m.GetAttempt())
	if err != nil {
		return nil, fmt.Errorf("finished: %w", err)
	}
	f, err := finished(m, s.ref.Session, time.Now().UTC())
	if err != nil {
		return nil, fmt.Errorf("finished %s: %w", name, err)
	}
	return func(ctx context.Context) {
		answer, ok := s.settle(ctx, name, func(now seen) session.Answer {
			if now.row.Rev == 0 {
				return s.past(ctx, name, f)
			}
			return session.Finish(s.peer, f, now.row)
		})
		if !ok {
			return
		}
		ack := &writv1.FinishedAck{Token: m.GetToken(), Answer: writv1.FinishedAnswer_FINISHED_ANSWER_ACCEPTED, Why: answer.Why}
		switch {
		case answer.Good:
		case answer.Why == forgotten:
			ack.Answer = writv1.FinishedAnswer_FINISHED_ANSWER_FORGOTTEN
		case answer.Why == unread:
			return
		default:
			ack.Answer = writv1.FinishedAnswer_FINISHED_ANSWER_REJECTED
			s.prove(ctx, name, f)
		}
		s.say(ctx, &writv1.AttendResponse{Message: &writv1.AttendResponse_FinishedAck{FinishedAck: ack}})
	}, nil
}

// The words by which past says that there is no row.
const (
	forgotten = "nothing is known of the attempt any more"
	unread    = "the ended run cannot be read now"
)

// past answers a report whose row is not active any more from the document of
// its run.
func (s *stream) past(ctx context.Context, name record.Ref, f session.Finished) session.Answer {
	stored, err := s.gateway.store.Get(ctx, record.EndedKey(name.Run))
	if err != nil {
		return session.Answer{Final: true, Why: unread}
	}
	head, ok := stored.Value.(record.Ended)
	if !ok {
		return session.Answer{Final: true, Why: forgotten}
	}
	for n := 1; n <= head.Pages; n++ {
		page, err := s.gateway.store.Get(ctx, record.PageKey(name.Run, n))
		if err != nil {
			return session.Answer{Final: true, Why: unread}
		}
		rows, _ := page.Value.(record.EndedPage)
		for _, row := range rows.Rows {
			if row.Attempt.Ref() == name {
				return session.Finish(s.peer, f, session.Seen[record.Attempt]{Record: row.Attempt, Rev: row.ModRev})
			}
		}
	}
	return session.Answer{Final: true, Why: forgotten}
}

// prove lifts the mark of an attempt that was ended without proof: its session
// has just said that it is over.
func (s *stream) prove(ctx context.Context, name record.Ref, f session.Finished) {
	stored, err := s.gateway.store.Get(ctx, record.UnprovenKey(name))
	mark, ok := stored.Value.(record.Unproven)
	if err != nil || !ok || mark.Session != f.Session {
		return // nothing to lift, or the report comes again
	}
	c, err := session.Prove(f, session.Seen[record.Unproven]{Record: mark, Rev: stored.ModRev})
	if err == nil {
		_, err = s.gateway.store.Commit(ctx, c)
	}
	if err != nil {
		s.gateway.config.Logger.Error("a proof of death cannot be written", zap.Stringer("attempt", name), zap.Error(err))
	}
}

// drain makes the session take no new attempts.
func (s *stream) drain(ctx context.Context, why string) {
	for range reportTries {
		stored, err := s.gateway.store.Get(ctx, record.WorkerKey(s.ref.Worker, s.ref.Session))
		if err != nil {
			return
		}
		live, _ := stored.Value.(record.Worker)
		c, ok, err := session.Drain(s.peer, session.Seen[record.Worker]{Record: live, Rev: stored.ModRev}, why, time.Now().UTC(), writeID())
		if err != nil || !ok {
			return
		}
		outcome, err := s.gateway.store.Commit(ctx, c)
		if err != nil || outcome.Verdict != record.Conflict {
			return
		}
	}
}

// settled says that the results of earlier sessions were all answered.
func (s *stream) settled(ctx context.Context) {
	for range reportTries {
		known, err := s.gateway.known(ctx, s.ref.Worker)
		if err != nil {
			return
		}
		c, ok, err := session.Settle(s.peer, known, writeID())
		if err != nil || !ok {
			return
		}
		outcome, err := s.gateway.store.Commit(ctx, c)
		if err != nil || outcome.Verdict != record.Conflict {
			return
		}
	}
}
