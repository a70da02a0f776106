package worker_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/writ-sched/writ/internal/grpctest"
	"github.com/writ-sched/writ/pkg/worker"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The times of the sessions in these tests; the worker's own deadline is
// ttl - margin after the last acknowledged heartbeat.
const (
	ttl    = 15 * time.Second
	margin = 2 * time.Second
)

// server is the other end of the protocol, in the hands of a test.
type server struct {
	writv1.UnimplementedWorkerServiceServer

	listener *bufconn.Listener
	streams  chan *stream // those that were welcomed
	logs     chan grpc.BidiStreamingServer[writv1.ServeLogsRequest, writv1.ServeLogsResponse]

	mu     sync.Mutex      // guards all below
	mute   bool            // nothing is answered, neither Hello nor heartbeat
	refuse *writv1.Refused // the answer to a Hello
	hellos int
}

// stream is one that the server welcomed.
type stream struct {
	wire  grpc.BidiStreamingServer[writv1.AttendRequest, writv1.AttendResponse]
	mu    sync.Mutex // a stream takes one Send at a time
	hello *writv1.Hello
	said  chan *writv1.AttendRequest // all but heartbeats
	end   chan struct{}              // closed: the stream breaks
	ended chan struct{}              // closed when the worker has ended it
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{
		listener: bufconn.Listen(1 << 20), streams: make(chan *stream, 16),
		logs: make(chan grpc.BidiStreamingServer[writv1.ServeLogsRequest, writv1.ServeLogsResponse], 16),
	}
	g := grpc.NewServer()
	writv1.RegisterWorkerServiceServer(g, s)
	grpctest.Serve(t, g, s.listener)
	return s
}

func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *server) muted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mute
}

func (s *server) refusal() *writv1.Refused {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hellos++
	return s.refuse
}

// Attend welcomes a worker and answers its heartbeats; the rest is the test's.
func (s *server) Attend(wire grpc.BidiStreamingServer[writv1.AttendRequest, writv1.AttendResponse]) error {
	m, err := wire.Recv()
	if err != nil {
		return err
	}
	if r := s.refusal(); r != nil {
		return wire.Send(&writv1.AttendResponse{Message: &writv1.AttendResponse_Refused{Refused: r}})
	}
	if s.muted() {
		<-wire.Context().Done()
		return nil
	}
	st := &stream{wire: wire, hello: m.GetHello(), said: make(chan *writv1.AttendRequest, 64), end: make(chan struct{}), ended: make(chan struct{})}
	st.send(&writv1.AttendResponse{Message: &writv1.AttendResponse_Welcome{Welcome: &writv1.Welcome{
		Replica: "r1", Ttl: durationpb.New(ttl), Margin: durationpb.New(margin), HeartbeatEvery: durationpb.New(ttl / 3),
		KillGrace: durationpb.New(time.Second),
	}}})
	s.streams <- st
	go s.hear(st)
	select {
	case <-st.end:
		return status.Error(codes.Unavailable, "broken by the test")
	case <-st.ended:
		return nil
	}
}

func (s *server) hear(st *stream) {
	defer close(st.ended)
	for {
		m, err := st.wire.Recv()
		if err != nil {
			return
		}
		beat := m.GetHeartbeat()
		switch {
		case beat == nil:
			st.said <- m
		case !s.muted():
			st.send(&writv1.AttendResponse{Message: &writv1.AttendResponse_HeartbeatAck{HeartbeatAck: &writv1.HeartbeatAck{Number: beat.GetNumber()}}})
		}
	}
}

// ServeLogs hands the stream to the test.
func (s *server) ServeLogs(wire grpc.BidiStreamingServer[writv1.ServeLogsRequest, writv1.ServeLogsResponse]) error {
	s.logs <- wire
	<-wire.Context().Done()
	return nil
}

func (st *stream) send(m *writv1.AttendResponse) {
	st.mu.Lock()
	defer st.mu.Unlock()
	_ = st.wire.Send(m) // a broken stream shows in what the worker does
}

func ref(token string) *writv1.AttemptRef {
	return &writv1.AttemptRef{Run: "hello.k-1", Task: "t-" + token, Attempt: 1}
}

func (st *stream) assign(token string, task *writv1.Task) {
	task.Id = "t-" + token
	st.send(&writv1.AttendResponse{Message: &writv1.AttendResponse_Assign{Assign: &writv1.Assign{
		Token: token, Attempt: ref(token), Task: task, Fence: 7, Workflow: "hello", Params: map[string]string{"who": "world"},
	}}})
}

func (st *stream) allow(token string) { st.answer(token, true) }

func (st *stream) answer(token string, granted bool) {
	st.send(&writv1.AttendResponse{Message: &writv1.AttendResponse_StartedAck{StartedAck: &writv1.StartedAck{Token: token, Go: granted}}})
}

func (st *stream) accept(token string) {
	st.send(&writv1.AttendResponse{Message: &writv1.AttendResponse_FinishedAck{FinishedAck: &writv1.FinishedAck{
		Token: token, Answer: writv1.FinishedAnswer_FINISHED_ANSWER_ACCEPTED,
	}}})
}

func (st *stream) cancel(token string) {
	st.send(&writv1.AttendResponse{Message: &writv1.AttendResponse_Cancel{Cancel: &writv1.Cancel{Token: token, Attempt: ref(token)}}})
}

func (st *stream) probe(token string) {
	st.send(&writv1.AttendResponse{Message: &writv1.AttendResponse_Probe{Probe: &writv1.Probe{Token: token, Attempt: ref(token)}}})
}

func (st *stream) started(t *testing.T) *writv1.Started {
	t.Helper()
	m := <-st.said
	require.NotNil(t, m.GetStarted(), "%v", m)
	return m.GetStarted()
}

func (st *stream) finished(t *testing.T) *writv1.Finished {
	t.Helper()
	m := <-st.said
	require.NotNil(t, m.GetFinished(), "%v", m)
	return m.GetFinished()
}

// outcome waits for the end of an attempt, however often its start is told.
func (st *stream) outcome(t *testing.T) *writv1.Finished {
	t.Helper()
	m := <-st.said
	for m.GetStarted() != nil {
		m = <-st.said
	}
	require.NotNil(t, m.GetFinished(), "%v", m)
	return m.GetFinished()
}

// hand is a worker that runs.
type hand struct {
	*server
	*stream
	stop context.CancelFunc
	left chan error
	gone bool
}

// dial reaches servers by the first letters of the addresses "a" and "b".
func dial(servers ...*server) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return servers[address[0]-'a'].listener.DialContext(ctx)
	})}
}

// start runs a worker on the bubble's clock.
func start(t *testing.T, c worker.Config, servers ...*server) *hand {
	t.Helper()
	c.Name = "w1"
	c.Servers = []string{"passthrough:///a", "passthrough:///b"}[:len(servers)]
	c.DialOptions = dial(servers...)
	w, err := worker.New(c)
	require.NoError(t, err)
	origin := time.Now()
	worker.WithClock(w, func() time.Duration { return time.Hour + time.Since(origin) })
	ctx, cancel := context.WithCancel(t.Context())
	h := &hand{server: servers[0], stop: cancel, left: make(chan error, 1)}
	go func() { h.left <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if !h.gone {
			require.NoError(t, <-h.left)
		}
	})
	return h
}

// attend runs a worker with one server and waits for its stream.
func attend(t *testing.T, c worker.Config) *hand {
	t.Helper()
	h := start(t, c, newServer(t))
	h.stream = <-h.streams
	return h
}

// end waits for the worker's end.
func (h *hand) end() error {
	h.gone = true
	return <-h.left
}

// handlers is a configuration with one handler, named h.
func handlers(h worker.Handler) worker.Config {
	return worker.Config{Slots: 4, Handlers: map[string]worker.Handler{"h": h}}
}
