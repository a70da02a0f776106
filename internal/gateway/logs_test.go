package gateway_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/gateway"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

var who = view.SessionRef{Worker: crane, Session: mine}

// logs is a worker's end of the stream of logs.
type logs struct {
	w      *world
	stream grpc.BidiStreamingClient[writv1.ServeLogsRequest, writv1.ServeLogsResponse]
	end    func()
}

func (w *world) serveLogs() *logs {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	stream, err := w.client.ServeLogs(ctx)
	require.NoError(w.t, err)
	return &logs{w, stream, cancel}
}

// open names the session of the tests, and returns when the gateway holds the stream.
func (l *logs) open() {
	l.w.t.Helper()
	require.NoError(l.w.t, l.stream.Send(&writv1.ServeLogsRequest{Message: &writv1.ServeLogsRequest_Open{
		Open: &writv1.LogOpen{Worker: string(crane), Session: string(mine)},
	}}))
	require.Eventually(l.w.t, func() bool { return l.w.gateway.Holds(who) }, patience, 5*time.Millisecond)
}

// answer takes one question and answers it.
func (l *logs) answer(chunk *writv1.LogChunk) (*writv1.ServeLogsResponse, error) {
	asked, err := l.stream.Recv()
	if err != nil {
		return nil, err
	}
	chunk.Ask = asked.GetAsk()
	return asked, l.stream.Send(&writv1.ServeLogsRequest{Message: &writv1.ServeLogsRequest_Chunk{Chunk: chunk}})
}

func (l *logs) requireOver(code codes.Code, why string) {
	l.w.t.Helper()
	_, err := l.stream.Recv()
	require.Equal(l.w.t, code, status.Code(err), "%v", err)
	require.ErrorContains(l.w.t, err, why)
}

func TestALogIsReadFromTheWorkerThatCapturedIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.attend(1)
	l := w.serveLogs()
	l.open()
	type said struct {
		asked *writv1.ServeLogsResponse
		err   error
	}
	for _, c := range []struct {
		chunk *writv1.LogChunk
		err   error
	}{
		{&writv1.LogChunk{Offset: 7, Data: []byte("three files\n"), Complete: true}, nil},
		{&writv1.LogChunk{Missing: "it was swept"}, gateway.ErrNoLog},
	} {
		heard := make(chan said, 1)
		go func() {
			asked, err := l.answer(c.chunk)
			heard <- said{asked, err}
		}()
		chunk, err := w.gateway.ReadLog(t.Context(), who, ref("count"), 7, 100)
		question := <-heard
		require.NoError(t, question.err)
		require.Equal(t, "count", question.asked.GetAttempt().GetTask())
		require.Equal(t, int64(7), question.asked.GetOffset())
		require.Equal(t, int32(100), question.asked.GetLimit())
		require.ErrorIs(t, err, c.err)
		if c.err == nil {
			require.Equal(t, "three files\n", string(chunk.GetData()))
			require.True(t, chunk.GetComplete())
		} else {
			require.ErrorContains(t, err, "it was swept")
		}
	}
}

func TestALogIsNotReadFromASessionThatIsNotHeld(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.attend(1)
	require.False(t, w.gateway.Holds(who))
	_, err := w.gateway.ReadLog(t.Context(), who, ref("count"), 0, 100)
	require.ErrorIs(t, err, gateway.ErrNotHeld)
}

func TestAQuestionEndsWithTheStreamThatItWasAskedOn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.attend(1)
	l := w.serveLogs()
	l.open()
	failed := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		_, err := w.gateway.ReadLog(ctx, who, ref("count"), 0, 100)
		failed <- err
	}()
	_, err := l.stream.Recv()
	require.NoError(t, err)
	l.end()
	require.ErrorIs(t, <-failed, gateway.ErrNotHeld)
	require.Eventually(t, func() bool { return !w.gateway.Holds(who) }, patience, 5*time.Millisecond)
}

func TestAQuestionEndsWithWhoAsksIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.attend(1)
	l := w.serveLogs()
	l.open()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := w.gateway.ReadLog(ctx, who, ref("count"), 0, 100)
		failed <- err
	}()
	_, err := l.answer(&writv1.LogChunk{})
	require.NoError(t, err)
	require.NoError(t, <-failed)
	go func() {
		_, err := w.gateway.ReadLog(ctx, who, ref("count"), 0, 100)
		failed <- err
	}()
	_, err = l.stream.Recv()
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
}

func TestAStreamOfLogsOpensForASessionThatAttends(t *testing.T) {
	t.Parallel()
	w := setup(t)
	l := w.serveLogs()
	require.NoError(t, l.stream.Send(&writv1.ServeLogsRequest{Message: &writv1.ServeLogsRequest_Open{
		Open: &writv1.LogOpen{Worker: string(crane), Session: string(mine)},
	}}))
	l.requireOver(codes.FailedPrecondition, "does not attend")

	l = w.serveLogs()
	require.NoError(t, l.stream.Send(&writv1.ServeLogsRequest{}))
	l.requireOver(codes.InvalidArgument, "expected an open")

	w.attend(1)
	first, second := w.serveLogs(), w.serveLogs()
	first.open()
	second.open()
	first.requireOver(codes.Unavailable, "the stream is over")
	require.NoError(t, second.stream.Send(&writv1.ServeLogsRequest{}))
	second.requireOver(codes.InvalidArgument, "expected a chunk")
}
