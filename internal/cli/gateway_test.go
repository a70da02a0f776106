package cli_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/writ-sched/writ/internal/grpctest"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// gateway is the server's end of the worker protocol, as far as one worker
// that gets its way needs it.
type gateway struct {
	writv1.UnimplementedWorkerServiceServer

	address  string
	hello    chan *writv1.Hello
	started  chan *writv1.Started
	finished chan *writv1.Finished
	drained  chan *writv1.Drain
	send     chan *writv1.AttendResponse
	ask      chan *writv1.ServeLogsResponse
	chunks   chan *writv1.LogChunk
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{
		hello: make(chan *writv1.Hello, 16), started: make(chan *writv1.Started, 16), finished: make(chan *writv1.Finished, 16),
		drained: make(chan *writv1.Drain, 16), send: make(chan *writv1.AttendResponse, 16),
		ask: make(chan *writv1.ServeLogsResponse, 16), chunks: make(chan *writv1.LogChunk, 16),
	}
	s := grpc.NewServer()
	writv1.RegisterWorkerServiceServer(s, g)
	g.address = grpctest.Listen(t, s)
	return g
}

// Attend answers what a worker says, and sends what the test wants said.
func (g *gateway) Attend(stream grpc.BidiStreamingServer[writv1.AttendRequest, writv1.AttendResponse]) error {
	var mu sync.Mutex // a stream takes one Send at a time
	send := func(m *writv1.AttendResponse) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.Send(m)
	}
	done := make(chan struct{})
	told := make(chan struct{})
	defer func() {
		close(done)
		<-told
	}()
	go func() {
		defer close(told)
		for {
			select {
			case m := <-g.send:
				if send(m) != nil {
					return
				}
			case <-done:
				return
			}
		}
	}()
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if answer := g.answer(m); answer != nil {
			if err := send(answer); err != nil {
				return err
			}
		}
		if m.GetHello() != nil {
			g.hello <- m.GetHello() // only now, since nothing may come before the welcome
		}
	}
}

// answer is what a gateway says to a message at once; nil for nothing.
func (g *gateway) answer(m *writv1.AttendRequest) *writv1.AttendResponse {
	switch {
	case m.GetHello() != nil:
		return &writv1.AttendResponse{Message: &writv1.AttendResponse_Welcome{Welcome: &writv1.Welcome{
			Replica: "r1", Ttl: durationpb.New(15 * time.Second), Margin: durationpb.New(2 * time.Second),
			HeartbeatEvery: durationpb.New(5 * time.Second), KillGrace: durationpb.New(200 * time.Millisecond),
		}}}
	case m.GetHeartbeat() != nil:
		return &writv1.AttendResponse{Message: &writv1.AttendResponse_HeartbeatAck{HeartbeatAck: &writv1.HeartbeatAck{Number: m.GetHeartbeat().GetNumber()}}}
	case m.GetStarted() != nil:
		g.started <- m.GetStarted()
		return &writv1.AttendResponse{Message: &writv1.AttendResponse_StartedAck{StartedAck: &writv1.StartedAck{Token: m.GetStarted().GetToken(), Go: true}}}
	case m.GetFinished() != nil:
		g.finished <- m.GetFinished()
		return &writv1.AttendResponse{Message: &writv1.AttendResponse_FinishedAck{FinishedAck: &writv1.FinishedAck{
			Token: m.GetFinished().GetToken(), Answer: writv1.FinishedAnswer_FINISHED_ANSWER_ACCEPTED,
		}}}
	case m.GetDrain() != nil:
		g.drained <- m.GetDrain()
	}
	return nil
}

// ServeLogs asks a worker for pieces of logs.
func (g *gateway) ServeLogs(stream grpc.BidiStreamingServer[writv1.ServeLogsRequest, writv1.ServeLogsResponse]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	for {
		select {
		case a := <-g.ask:
			if err := stream.Send(a); err != nil {
				return err
			}
			m, err := stream.Recv()
			if err != nil {
				return err
			}
			g.chunks <- m.GetChunk()
		case <-stream.Context().Done():
			return nil
		}
	}
}

// assign hands out an attempt of a task.
func (g *gateway) assign(token string, task *writv1.Task) *writv1.AttemptRef {
	ref := &writv1.AttemptRef{Run: "hello.k-1", Task: "t-" + token, Attempt: 1}
	task.Id = ref.GetTask()
	g.send <- &writv1.AttendResponse{Message: &writv1.AttendResponse_Assign{Assign: &writv1.Assign{
		Token: token, Attempt: ref, Kind: writv1.AttemptKind_ATTEMPT_KIND_EXEC, Task: task, Fence: 7, Workflow: "hello", Revision: 1,
		Params: map[string]string{"who": "world"},
	}}}
	return ref
}

// patience bounds what a test waits for something that must come.
const patience = 60 * time.Second

// next waits for what a channel brings.
func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		require.Fail(t, "nothing came")
		panic("unreachable")
	}
}
