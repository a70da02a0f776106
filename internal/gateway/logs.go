package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// ErrNoLog means that the worker has no log of that attempt.
var ErrNoLog = errors.New("there is no such log")

// logStream is a stream over which a worker answers questions about its logs.
type logStream struct {
	out  chan *writv1.ServeLogsResponse // capacity outgoing; full: who asks waits
	end  context.CancelFunc
	over <-chan struct{} // closed when the stream has ended

	mu   sync.Mutex // guards the fields below
	next int64
	open map[int64]chan *writv1.LogChunk
}

// ServeLogs serves the stream over which a worker answers for its logs.
func (g *Gateway) ServeLogs(wire grpc.BidiStreamingServer[writv1.ServeLogsRequest, writv1.ServeLogsResponse]) error {
	first, err := wire.Recv()
	if err != nil {
		return err
	}
	open := first.GetOpen()
	if open == nil {
		return status.Error(codes.InvalidArgument, "expected an open as the first message of a stream")
	}
	who := view.SessionRef{Worker: record.WorkerName(open.GetWorker()), Session: record.SessionID(open.GetSession())}
	ctx, end := context.WithCancel(wire.Context())
	defer end()
	s := &logStream{out: make(chan *writv1.ServeLogsResponse, outgoing), end: end, over: ctx.Done(), open: map[int64]chan *writv1.LogChunk{}}
	g.mu.Lock()
	attends := g.streams[who] != nil
	if attends {
		if old := g.logs[who]; old != nil {
			old.end()
		}
		g.logs[who] = s
	}
	g.mu.Unlock()
	if !attends {
		return status.Error(codes.FailedPrecondition, "the session does not attend this replica (hint: open the stream of logs after the welcome)")
	}
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.logs[who] == s {
			delete(g.logs, who)
		}
	}()
	heard := make(chan error, 1)
	go func() { heard <- s.hear(wire) }() // it ends with the stream, which ends when ServeLogs returns
	for {
		select {
		case m := <-s.out:
			if err := wire.Send(m); err != nil {
				return err
			}
		case err := <-heard:
			return err
		case <-g.closing:
			return errClosing
		case <-ctx.Done():
			return status.Error(codes.Unavailable, "the stream is over")
		}
	}
}

// hear passes answers to those who asked.
func (s *logStream) hear(wire grpc.BidiStreamingServer[writv1.ServeLogsRequest, writv1.ServeLogsResponse]) error {
	for {
		m, err := wire.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		chunk := m.GetChunk()
		if chunk == nil {
			return status.Error(codes.InvalidArgument, "expected a chunk")
		}
		s.mu.Lock()
		asked := s.open[chunk.GetAsk()]
		delete(s.open, chunk.GetAsk())
		s.mu.Unlock()
		if asked != nil {
			asked <- chunk
		}
	}
}

// ReadLog reads a piece of an attempt's log from the worker that captured it.
// The error wraps ErrNotHeld or ErrNoLog, or is the end of ctx.
func (g *Gateway) ReadLog(ctx context.Context, who view.SessionRef, name record.Ref, offset int64, limit int) (*writv1.LogChunk, error) {
	g.mu.Lock()
	s := g.logs[who]
	g.mu.Unlock()
	if s == nil {
		return nil, fmt.Errorf("read the log of %s: %w", name, ErrNotHeld)
	}
	answer := make(chan *writv1.LogChunk, 1)
	s.mu.Lock()
	s.next++
	ask := s.next
	s.open[ask] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, ask)
	}()
	select {
	case s.out <- &writv1.ServeLogsResponse{Ask: ask, Attempt: toRef(name), Offset: offset, Limit: int32(limit)}:
	case <-s.over:
		return nil, fmt.Errorf("read the log of %s: the stream has ended: %w", name, ErrNotHeld)
	case <-ctx.Done():
		return nil, fmt.Errorf("read the log of %s: %w", name, context.Cause(ctx))
	}
	select {
	case chunk := <-answer:
		if chunk.GetMissing() != "" {
			return nil, fmt.Errorf("read the log of %s: %w: %s", name, ErrNoLog, record.Because("", chunk.GetMissing()).Text)
		}
		return chunk, nil
	case <-s.over:
		return nil, fmt.Errorf("read the log of %s: the stream has ended: %w", name, ErrNotHeld)
	case <-ctx.Done():
		return nil, fmt.Errorf("read the log of %s: %w", name, context.Cause(ctx))
	}
}
