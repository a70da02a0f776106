package gateway_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/record"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// worker is a worker's end of one stream, in the hands of the test.
type worker struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[writv1.AttendRequest, writv1.AttendResponse]
	end    func()
	heard  chan *writv1.AttendResponse
	ended  chan error // how the stream ended
}

// dial opens a stream that has said nothing.
func (w *world) dial() *worker {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	stream, err := w.client.Attend(ctx)
	require.NoError(w.t, err)
	k := &worker{t: w.t, stream: stream, end: cancel, heard: make(chan *writv1.AttendResponse, 100), ended: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			m, err := stream.Recv()
			if err != nil {
				k.ended <- err
				return
			}
			k.heard <- m
		}
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
	return k
}

// hello is the first message of a session's stream, edited.
func hello(stream int64, edit ...func(*writv1.Hello)) *writv1.AttendRequest {
	h := &writv1.Hello{
		Protocol: 1, Worker: string(crane), Session: string(mine), Stream: stream, Slots: 2, Queues: []string{"default"},
		Processes: true, Host: "crane-1",
	}
	for _, f := range edit {
		f(h)
	}
	return &writv1.AttendRequest{Message: &writv1.AttendRequest_Hello{Hello: h}}
}

// holds makes a Hello name the row of a task.
func holds(task record.TaskID) func(*writv1.Hello) {
	return func(h *writv1.Hello) {
		h.Held = append(h.Held, &writv1.HeldToken{Token: token(task), Phase: writv1.TokenPhase_TOKEN_PHASE_RUNNING, Attempt: named(task)})
	}
}

func named(task record.TaskID) *writv1.AttemptRef {
	return &writv1.AttemptRef{Run: string(census), Task: string(task), Attempt: 1}
}

// attend opens a stream that counts.
func (w *world) attend(stream int64, edit ...func(*writv1.Hello)) *worker {
	w.t.Helper()
	k := w.dial()
	k.say(hello(stream, edit...))
	require.NotNil(w.t, k.hear().GetWelcome())
	return k
}

func (k *worker) say(m *writv1.AttendRequest) {
	k.t.Helper()
	require.NoError(k.t, k.stream.Send(m))
}

// hear returns the next message.
func (k *worker) hear() *writv1.AttendResponse {
	k.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case m := <-k.heard:
		return m
	case err := <-k.ended:
		k.ended <- err
		select {
		case m := <-k.heard: // its last word
			return m
		default:
			require.NoError(k.t, err, "the stream is to go on")
		}
	case <-limit.C:
		require.Fail(k.t, "nothing was said")
	}
	return nil
}

// over returns how the stream ended, whatever was said before.
func (k *worker) over() *status.Status {
	k.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case err := <-k.ended:
		return status.Convert(err)
	case <-limit.C:
		require.Fail(k.t, "the stream does not end")
		return nil
	}
}

func (k *worker) requireOver(code codes.Code, why string) {
	k.t.Helper()
	s := k.over()
	require.Equal(k.t, code, s.Code(), s.Message())
	require.Contains(k.t, s.Message(), why)
}

// quiet holds that nothing is said for a while.
func (k *worker) quiet(d time.Duration) {
	k.t.Helper()
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case m := <-k.heard:
		require.Fail(k.t, "something was said", "%v", m)
	case <-limit.C:
	}
}

func (k *worker) beat(number int64) {
	k.t.Helper()
	k.say(&writv1.AttendRequest{Message: &writv1.AttendRequest_Heartbeat{Heartbeat: &writv1.Heartbeat{Number: number}}})
}

// claims asks for the right to start the count.
func (k *worker) claims() {
	k.t.Helper()
	k.say(&writv1.AttendRequest{Message: &writv1.AttendRequest_Started{Started: &writv1.Started{
		Token: token("count"), Attempt: named("count"), Claim: true,
	}}})
}

func (k *worker) finishes(task record.TaskID, edit ...func(*writv1.Finished)) {
	k.t.Helper()
	f := &writv1.Finished{Token: token(task), Attempt: named(task), State: writv1.TaskState_TASK_STATE_SUCCESS, Exit: &writv1.Exit{}, Result: []byte(`{"n":3}`)}
	for _, e := range edit {
		e(f)
	}
	k.say(&writv1.AttendRequest{Message: &writv1.AttendRequest_Finished{Finished: f}})
}

func (k *worker) answers(task record.TaskID, phase writv1.TokenPhase) {
	k.t.Helper()
	k.say(&writv1.AttendRequest{Message: &writv1.AttendRequest_ProbeAnswer{ProbeAnswer: &writv1.ProbeAnswer{
		Token: token(task), Attempt: named(task), Phase: phase,
	}}})
}

// hearStarted is the answer to a claim.
func (k *worker) hearStarted() *writv1.StartedAck {
	k.t.Helper()
	m := k.hear()
	require.NotNil(k.t, m.GetStartedAck(), "%v", m)
	require.Equal(k.t, token("count"), m.GetStartedAck().GetToken())
	return m.GetStartedAck()
}

// hearFinished is the answer to a report.
func (k *worker) hearFinished(task record.TaskID) *writv1.FinishedAck {
	k.t.Helper()
	m := k.hear()
	require.NotNil(k.t, m.GetFinishedAck(), "%v", m)
	require.Equal(k.t, token(task), m.GetFinishedAck().GetToken())
	return m.GetFinishedAck()
}

func (k *worker) hearAssign(task record.TaskID) *writv1.Assign {
	k.t.Helper()
	m := k.hear()
	require.NotNil(k.t, m.GetAssign(), "%v", m)
	require.Equal(k.t, token(task), m.GetAssign().GetToken())
	return m.GetAssign()
}
