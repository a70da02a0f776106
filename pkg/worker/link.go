package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/writ-sched/writ/internal/backoff"
	"github.com/writ-sched/writ/internal/session"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

const (
	// protocol is the number of the worker protocol.
	protocol = 1
	// outgoing is how many messages wait for a slow stream; what does not fit
	// is sent again by the agent.
	outgoing = 1024
	// firstPatience bounds the wait for the first Welcome; later ones have a
	// third of the session's time to live, so that another server is asked
	// before the worker's own deadline.
	firstPatience = 10 * time.Second
	// maxMessage is the largest message that either end sends: an assignment
	// holds one task of at most 1 MiB and its parameters.
	maxMessage = 16 << 20
)

// link is one stream that the server has welcomed.
type link struct {
	wire    grpc.BidiStreamingClient[writv1.AttendRequest, writv1.AttendResponse]
	out     chan *writv1.AttendRequest // capacity outgoing; full: dropped
	beats   chan *writv1.AttendRequest // capacity 1, sent before all in out; full: dropped
	bye     chan struct{}              // closed: out is sent, and then the stream is ended
	end     context.CancelCauseFunc
	ttl     time.Duration
	margin  time.Duration
	every   time.Duration
	replica string

	mu    sync.Mutex                // guards the fields below
	sent  map[int64]session.Instant // heartbeats that are not answered
	heard session.Instant           // when the newest answered one was sent
}

var errQuiet = errors.New("the server does not answer in time")

// attend opens one stream after another until ctx ends or the server refuses
// the session for good.
func (l *life) attend(ctx context.Context) error {
	conns := map[string]*grpc.ClientConn{}
	defer func() {
		for _, c := range conns {
			_ = c.Close() // nothing is left to be lost by it
		}
	}()
	pause := backoff.New(backoff.Config{Min: 50 * time.Millisecond, Max: 3 * time.Second}, rand.Float64)
	servers := slices.Clone(l.config.Servers)
	rand.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	for i := 0; ctx.Err() == nil && !l.leaving.Load(); i++ {
		server := servers[i%len(servers)]
		welcomed, err := l.attendOne(ctx, conns, server)
		var refused *RefusedError
		var taken *takenError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused):
			return fmt.Errorf("worker %s: %w", l.config.Name, refused)
		case errors.Is(err, errQuiet):
			// The connection may be dead, which nobody is told.
			l.config.Logger.Warn("a stream is given up", "server", server, "error", err)
			_ = conns[server].Close() // its stream has ended
			delete(conns, server)
		case l.leaving.Load():
			return nil
		case errors.As(err, &taken):
			l.config.Logger.Warn("the worker's name is taken", "server", server, "why", taken.text)
		default:
			l.config.Logger.Info("a stream ended", "server", server, "error", err)
		}
		if welcomed {
			pause.Reset()
		}
		wait(ctx, pause.Next())
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// takenError says that another session of the name lives; it is asked again.
type takenError struct{ text string }

func (e *takenError) Error() string { return e.text }

// attendOne opens one stream and lives on it. It says whether the server
// welcomed it.
func (l *life) attendOne(ctx context.Context, conns map[string]*grpc.ClientConn, server string) (bool, error) {
	conn := conns[server]
	if conn == nil {
		options := append([]grpc.DialOption{
			grpc.WithTransportCredentials(l.config.Credentials),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           grpcbackoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
				MinConnectTimeout: 3 * time.Second,
			}),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		}, l.config.DialOptions...)
		var err error
		if conn, err = grpc.NewClient(server, options...); err != nil {
			return false, fmt.Errorf("dial %s: %w", server, err)
		}
		conns[server] = conn
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	client := writv1.NewWorkerServiceClient(conn)
	k, err := l.open(ctx, client, end)
	if err != nil {
		return false, err
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer end(nil)
	parts.Go(func() { k.speak(ctx) })
	parts.Go(func() { l.beat(ctx, k) })
	if p := l.config.Processes; p != nil && p.ReadLog != nil {
		parts.Go(func() { l.serveLogs(ctx, client) })
	}
	defer l.post(l.calm, func() {
		if l.link == k {
			l.link = nil
		}
	})
	for {
		m, err := k.wire.Recv()
		if err != nil {
			return true, causeOf(ctx, err)
		}
		switch said := m.GetMessage().(type) {
		case *writv1.AttendResponse_HeartbeatAck:
			l.acknowledged(ctx, k, said.HeartbeatAck.GetNumber())
		case *writv1.AttendResponse_Refused:
			return true, refusal(said.Refused)
		default:
			if !l.post(ctx, func() { l.hear(m) }) {
				return true, context.Cause(ctx)
			}
		}
	}
}

// open says Hello and waits for the Welcome.
func (l *life) open(ctx context.Context, client writv1.WorkerServiceClient, end context.CancelCauseFunc) (*link, error) {
	limit := time.AfterFunc(l.patience, func() { end(errQuiet) })
	defer limit.Stop()
	wire, err := client.Attend(ctx)
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	hello := make(chan *writv1.Hello, 1)
	if !l.post(ctx, func() { hello <- l.hello() }) {
		return nil, context.Cause(ctx)
	}
	var first *writv1.Hello
	select {
	case first = <-hello:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	sent := l.now()
	if err := wire.Send(&writv1.AttendRequest{Message: &writv1.AttendRequest_Hello{Hello: first}}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	m, err := wire.Recv()
	if err != nil {
		if status.Code(err) == codes.InvalidArgument {
			return nil, &RefusedError{Code: "malformed", Text: status.Convert(err).Message()}
		}
		return nil, causeOf(ctx, err)
	}
	if m.GetRefused() != nil {
		return nil, refusal(m.GetRefused())
	}
	w := m.GetWelcome()
	if w == nil || w.GetTtl().AsDuration() <= 0 {
		return nil, errors.New("expected a welcome as the first message of a stream")
	}
	k := &link{
		wire: wire, out: make(chan *writv1.AttendRequest, outgoing), beats: make(chan *writv1.AttendRequest, 1), bye: make(chan struct{}), end: end, ttl: w.GetTtl().AsDuration(), margin: w.GetMargin().AsDuration(),
		every: w.GetHeartbeatEvery().AsDuration(), replica: w.GetReplica(), sent: map[int64]session.Instant{}, heard: sent,
	}
	if k.every <= 0 || k.every >= k.ttl {
		k.every = k.ttl / 3
	}
	l.patience = k.ttl / 3
	if !l.post(ctx, func() { l.opened(k, w, sent) }) {
		return nil, context.Cause(ctx)
	}
	return k, nil
}

func refusal(m *writv1.Refused) error {
	if m.GetRetryAfter() != nil {
		return &takenError{text: m.GetText()}
	}
	return &RefusedError{Code: m.GetCode(), Text: m.GetText()}
}

// hello says who the worker is and what it has not closed.
func (l *life) hello() *writv1.Hello {
	l.streams++
	m := &writv1.Hello{
		Protocol: protocol, Worker: l.config.Name, Session: l.state.session, Stream: l.streams, Predecessor: l.state.before.name(),
		Attested: l.attested, Unsettled: int32(len(l.legacy)), Slots: int32(l.config.Slots), Queues: l.config.Queues, Labels: l.config.Labels,
		Processes: l.config.Processes != nil, Host: host(), Draining: l.drained,
	}
	for name := range l.config.Handlers {
		m.Handlers = append(m.Handlers, name)
	}
	slices.Sort(m.Handlers)
	if l.config.TTL > 0 {
		m.Ttl = durationpb.New(l.config.TTL)
	}
	for _, h := range l.agent.Held() {
		m.Held = append(m.Held, &writv1.HeldToken{Token: string(h.Token), Phase: toPhase(h.Phase), Attempt: l.attempts[h.Token].assign.GetAttempt()})
	}
	return m
}

// opened makes a stream the one that counts, and sends what is unanswered.
func (l *life) opened(k *link, w *writv1.Welcome, sent session.Instant) {
	l.link = k
	l.config.Logger.Info("attending", "replica", k.replica, "session", l.state.session, "ttl", k.ttl)
	if p := l.config.Processes; p != nil && p.Grace != nil {
		p.Grace(w.GetKillGrace().AsDuration())
	}
	until := k.until(sent)
	l.do(l.agent.Opened(until, l.now()))
	l.fence(until)
	l.legacyAt = 0
	l.resendLegacy()
	l.settleLegacy()
}

// until is the worker's own deadline after a message that was acknowledged.
func (k *link) until(sent session.Instant) session.Instant {
	return sent + session.Instant(k.ttl-k.margin)
}

// fence has the deadline of processes moved; the newest replaces older ones.
func (l *life) fence(until session.Instant) {
	for {
		select {
		case l.fences <- time.Duration(until):
			return
		default:
		}
		select {
		case <-l.fences: // an older one
		default:
		}
	}
}

// acknowledged takes the answer to a heartbeat.
func (l *life) acknowledged(ctx context.Context, k *link, number int64) {
	k.mu.Lock()
	sent, ok := k.sent[number]
	if ok {
		k.heard = max(k.heard, sent)
		for n := range k.sent {
			if n <= number {
				delete(k.sent, n)
			}
		}
	}
	k.mu.Unlock()
	if ok {
		l.post(ctx, func() {
			l.do(l.agent.Alive(k.until(sent), l.now()))
			l.fence(k.until(sent))
		})
	}
}

// beat sends heartbeats, from a goroutine that nothing else can hold up. A
// stream on which one is not acknowledged before the next is given up, while
// there is time for another before the deadline.
func (l *life) beat(ctx context.Context, k *link) {
	ticker := time.NewTicker(k.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		number := l.beats.Add(1)
		k.mu.Lock()
		quiet := l.now()-k.heard > session.Instant(k.every*3/2)
		k.sent[number] = l.now()
		k.mu.Unlock()
		if quiet {
			k.end(errQuiet)
			return
		}
		select {
		case k.beats <- &writv1.AttendRequest{Message: &writv1.AttendRequest_Heartbeat{Heartbeat: &writv1.Heartbeat{Number: number}}}:
		default: // the stream is stuck
		}
	}
}

// speak sends what is queued, heartbeats first. Why a stream fails is said by
// Recv.
func (k *link) speak(ctx context.Context) {
	for {
		m, ok := k.next(ctx)
		if !ok {
			return
		}
		if m == nil {
			_ = k.wire.CloseSend() // the stream ends either way
			return
		}
		if err := k.wire.Send(m); err != nil {
			return
		}
	}
}

// next is what is to be sent next; nil after the last word.
func (k *link) next(ctx context.Context) (m *writv1.AttendRequest, ok bool) {
	select {
	case m := <-k.beats:
		return m, true
	default:
	}
	select {
	case <-ctx.Done():
		return nil, false
	case m := <-k.beats:
		return m, true
	case m := <-k.out:
		return m, true
	case <-k.bye:
	}
	select {
	case m := <-k.out:
		return m, true
	default:
		return nil, true
	}
}

// causeOf is why ctx ended, where it did, or err.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// send queues a message on the stream that counts. Where there is none, or it
// is slow, the message is dropped: what matters is sent again. It says whether
// it was queued.
func (l *life) send(m *writv1.AttendRequest) bool {
	if l.link == nil {
		return false
	}
	select {
	case l.link.out <- m:
		return true
	default:
		return false
	}
}

// serveLogs answers questions about logs while the stream beside it lasts.
func (l *life) serveLogs(ctx context.Context, client writv1.WorkerServiceClient) {
	for ctx.Err() == nil {
		if err := l.serveLogsOnce(ctx, client); ctx.Err() == nil {
			l.config.Logger.Debug("the stream of logs ended", "error", err)
		}
		wait(ctx, time.Second)
	}
}

func (l *life) serveLogsOnce(ctx context.Context, client writv1.WorkerServiceClient) error {
	wire, err := client.ServeLogs(ctx)
	if err != nil {
		return err
	}
	err = wire.Send(&writv1.ServeLogsRequest{Message: &writv1.ServeLogsRequest_Open{Open: &writv1.LogOpen{Worker: l.config.Name, Session: l.state.session}}})
	if err != nil {
		return err
	}
	for {
		ask, err := wire.Recv()
		if err != nil {
			return err
		}
		chunk := l.config.Processes.ReadLog(ask)
		if err := wire.Send(&writv1.ServeLogsRequest{Message: &writv1.ServeLogsRequest_Chunk{Chunk: chunk}}); err != nil {
			return err
		}
	}
}

// name names an attempt for people.
func name(m *writv1.AttemptRef) string {
	task := m.GetTask()
	if m.GetInstance() != "" {
		task += "." + m.GetInstance()
	}
	return fmt.Sprintf("%s/%s/%d", m.GetRun(), task, m.GetAttempt())
}
