package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

const (
	// helloLimit is how long a new stream may say nothing.
	helloLimit = 10 * time.Second
	// outgoing is how many messages wait for a slow worker; more wait in the
	// records, where they come from.
	outgoing = 256
	// reportsAtOnce bounds the reports of one session that are being committed.
	reportsAtOnce = 256
)

var (
	errSuperseded = status.Error(codes.Aborted, "a later stream of the session took over")
	errClosing    = status.Error(codes.Unavailable, "this replica stops (hint: attend another)")
	errLeaseGone  = status.Error(codes.Unavailable, "the session's lease is gone (hint: open a new stream to register again)")
)

// stream is one stream of one session.
type stream struct {
	gateway *Gateway
	ref     view.SessionRef
	peer    session.Peer
	lease   int64
	end     context.CancelCauseFunc

	out   chan *writv1.AttendResponse // capacity outgoing; full: who sends waits
	wake  chan struct{}               // capacity 1: look at the view
	beats chan int64                  // capacity 1: the newest heartbeat that is not answered
	jobs  chan func(context.Context)  // no capacity: hear waits while reportsAtOnce are at work
}

// Attend serves one stream of a session.
func (g *Gateway) Attend(wire grpc.BidiStreamingServer[writv1.AttendRequest, writv1.AttendResponse]) error {
	ctx, end := context.WithCancelCause(wire.Context())
	defer end(nil)
	first, err := g.firstWord(ctx, end, wire)
	if err != nil {
		return err
	}
	h, err := hello(first)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "hello: %v", err)
	}
	reg, refusal, err := g.register(ctx, h, first.GetTtl().AsDuration())
	if err != nil {
		return unavailable(ctx, fmt.Errorf("register session %s of worker %s: %w", h.Session, h.Worker, err))
	}
	if refusal != nil {
		m := &writv1.Refused{Code: string(refusal.Code), Text: refusal.Why}
		if refusal.RetryAfter > 0 {
			m.RetryAfter = durationpb.New(refusal.RetryAfter)
		}
		return wire.Send(&writv1.AttendResponse{Message: &writv1.AttendResponse_Refused{Refused: m}})
	}
	s := &stream{
		gateway: g, ref: view.SessionRef{Worker: h.Worker, Session: h.Session}, peer: reg.peer, lease: reg.lease, end: end,
		out: make(chan *writv1.AttendResponse, outgoing), wake: make(chan struct{}, 1), beats: make(chan int64, 1),
		jobs: make(chan func(context.Context)),
	}
	g.enter(s)
	defer g.leave(s)
	g.config.Logger.Info("a session attends", zap.String("worker", string(h.Worker)), zap.String("session", string(h.Session)), zap.Int64("stream", h.Stream))
	return s.run(ctx, wire, first.GetHeld())
}

// firstWord waits for the Hello.
func (g *Gateway) firstWord(ctx context.Context, end context.CancelCauseFunc, wire grpc.BidiStreamingServer[writv1.AttendRequest, writv1.AttendResponse]) (*writv1.Hello, error) {
	type word struct {
		m   *writv1.AttendRequest
		err error
	}
	heard := make(chan word, 1)
	go func() { // it ends with the stream, which ends when Attend returns
		m, err := wire.Recv()
		heard <- word{m, err}
	}()
	limit := time.NewTimer(helloLimit)
	defer limit.Stop()
	select {
	case w := <-heard:
		switch {
		case w.err != nil:
			return nil, w.err
		case w.m.GetHello() == nil:
			return nil, status.Error(codes.InvalidArgument, "expected a hello as the first message of a stream")
		}
		return w.m.GetHello(), nil
	case <-limit.C:
		end(nil)
		return nil, status.Errorf(codes.DeadlineExceeded, "no hello within %s", helloLimit)
	case <-g.closing:
		return nil, errClosing
	case <-ctx.Done():
		return nil, unavailable(ctx, context.Cause(ctx))
	}
}

// run is the life of a registered stream. It returns when everything that it
// started has ended.
func (s *stream) run(ctx context.Context, wire grpc.BidiStreamingServer[writv1.AttendRequest, writv1.AttendResponse], held []*writv1.HeldToken) error {
	g := s.gateway
	s.say(ctx, &writv1.AttendResponse{Message: &writv1.AttendResponse_Welcome{Welcome: &writv1.Welcome{
		Replica: string(g.config.Replica), Ttl: durationpb.New(s.peer.TTL), Margin: durationpb.New(g.config.Margin),
		HeartbeatEvery: durationpb.New(s.peer.TTL / 3), KillGrace: durationpb.New(g.config.KillGrace),
	}}})
	var work sync.WaitGroup
	defer work.Wait()
	defer s.end(nil)
	heard := make(chan error, 1)
	work.Go(func() { s.speak(ctx, wire) })
	work.Go(func() { s.beat(ctx) })
	work.Go(func() { s.push(ctx, held) })
	work.Go(func() { s.work(ctx, &work) })
	go func() { heard <- s.hear(ctx, wire) }() // it ends with the stream, which ends when Attend returns
	select {
	case err := <-heard:
		if err == nil {
			return nil
		}
		return unavailable(ctx, err)
	case <-g.closing:
		return errClosing
	case <-ctx.Done():
		return unavailable(ctx, context.Cause(ctx))
	}
}

// unavailable gives an error the status that makes a worker come back, unless
// it has one of its own.
func unavailable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

// say queues a message; it waits for a slow worker while the stream lasts.
func (s *stream) say(ctx context.Context, m *writv1.AttendResponse) {
	select {
	case s.out <- m:
	case <-ctx.Done():
	}
}

// speak sends what is queued.
func (s *stream) speak(ctx context.Context, wire grpc.BidiStreamingServer[writv1.AttendRequest, writv1.AttendResponse]) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-s.out:
			if err := wire.Send(m); err != nil {
				s.end(err)
				return
			}
		}
	}
}

func (s *stream) knock() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// hear takes what the worker says until the stream ends. A clean end is nil.
func (s *stream) hear(ctx context.Context, wire grpc.BidiStreamingServer[writv1.AttendRequest, writv1.AttendResponse]) error {
	for {
		m, err := wire.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		if beat := m.GetHeartbeat(); beat != nil {
			s.heartbeat(beat.GetNumber())
			continue
		}
		handle, err := s.handler(m)
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "%v", err)
		}
		select {
		case s.jobs <- handle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// work does what was heard, several reports at a time.
func (s *stream) work(ctx context.Context, work *sync.WaitGroup) {
	slots := make(chan struct{}, reportsAtOnce)
	for {
		select {
		case <-ctx.Done():
			return
		case handle := <-s.jobs:
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			work.Go(func() {
				defer func() { <-slots }()
				handle(ctx)
			})
		}
	}
}

// handler reads one message and says what is to be done about it.
func (s *stream) handler(m *writv1.AttendRequest) (func(context.Context), error) {
	switch m := m.GetMessage().(type) {
	case *writv1.AttendRequest_Started:
		return s.startedHandler(m.Started.GetToken(), m.Started.GetAttempt(), m.Started.GetClaim(), true)
	case *writv1.AttendRequest_ProbeAnswer:
		return s.probeHandler(m.ProbeAnswer)
	case *writv1.AttendRequest_Finished:
		return s.finishedHandler(m.Finished)
	case *writv1.AttendRequest_Drain:
		why := record.Because(record.CauseNone, m.Drain.GetWhy()).Text
		return func(ctx context.Context) { s.drain(ctx, why) }, nil
	case *writv1.AttendRequest_Settled:
		return s.settled, nil
	case *writv1.AttendRequest_Hello:
		return nil, errors.New("a second hello on one stream")
	default:
		return nil, errors.New("a message of a kind that this server does not know (hint: is the worker newer than the server?)")
	}
}

// heartbeat hands the newest number to beat.
func (s *stream) heartbeat(number int64) {
	for {
		select {
		case s.beats <- number:
			return
		default:
		}
		select {
		case <-s.beats: // an older one; the answer to the newer covers it
		default:
		}
	}
}

// beat renews the lease for each heartbeat, and acknowledges it once etcd has
// renewed and the session's key was seen, both after the heartbeat arrived:
// etcd can renew a lease whose revocation it has yet to apply.
func (s *stream) beat(ctx context.Context) {
	for {
		var number int64
		select {
		case <-ctx.Done():
			return
		case number = <-s.beats:
		}
		left, err := s.gateway.leases.Renew(ctx, s.lease)
		if err != nil {
			continue // unanswered: the worker's own deadline stands where it was
		}
		there := false
		if left > 0 {
			if there, err = s.gateway.store.Present(ctx, record.WorkerKey(s.ref.Worker, s.ref.Session)); err != nil {
				continue
			}
		}
		if !there {
			s.end(errLeaseGone)
			return
		}
		s.say(ctx, &writv1.AttendResponse{Message: &writv1.AttendResponse_HeartbeatAck{HeartbeatAck: &writv1.HeartbeatAck{Number: number}}})
	}
}
