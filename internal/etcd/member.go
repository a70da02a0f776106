package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3compactor"
	"go.uber.org/zap"
)

// Member is an etcd server in this process.
type Member struct {
	settings settings
	logger   *zap.Logger
	ready    chan struct{}

	mu        sync.Mutex // guards endpoints
	endpoints []string
}

// New checks the configuration. It touches neither disk (TLS files apart) nor
// network. The logger gets etcd's warnings and errors; nil means none.
func New(config Config, logger *zap.Logger) (*Member, error) {
	settings, err := config.resolve()
	if err != nil {
		return nil, fmt.Errorf("configure etcd member: %w", err)
	}
	if logger == nil {
		logger = zap.NewNop()
	}
	return &Member{settings: settings, logger: logger, ready: make(chan struct{})}, nil
}

// Ready is closed once the member serves, which in a larger cluster needs a
// majority of its members. It stays open where Run fails before.
func (m *Member) Ready() <-chan struct{} { return m.ready }

// Endpoints returns the URLs at which clients reach the member, with the ports
// that were really taken. It is nil before Ready.
func (m *Member) Endpoints() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.endpoints...)
}

// Run serves until ctx ends, and then returns nil with everything stopped. It
// may be called once. Open streams of clients are ended, so they resume at other
// members. See the package comment for its errors; after ErrFatal the process
// must exit.
func (m *Member) Run(ctx context.Context) error {
	lock, err := lockDir(m.settings.Dir)
	if err != nil {
		return fmt.Errorf("start etcd member: %w", err)
	}
	err = m.serve(ctx)
	if errors.Is(err, ErrFatal) {
		// The directory stays locked: etcd's goroutines may still write to it.
		return err
	}
	return errors.Join(err, lock.release())
}

// serve starts etcd, waits for it and for its end, and stops it.
func (m *Member) serve(ctx context.Context) error {
	fatal := newFatalHook()
	stop, drain := context.WithCancel(context.WithoutCancel(ctx))
	defer drain()
	server, err := m.start(ctx, stop, fatal)
	if err != nil {
		return fmt.Errorf("start etcd member in %s: %w", m.settings.Dir, err)
	}
	if server == nil {
		return nil
	}
	err = m.attend(ctx, server, fatal)
	if errors.Is(err, ErrFatal) {
		return fmt.Errorf("run etcd member in %s: %w", m.settings.Dir, err)
	}
	drain()
	_, stopErr := guarded(fatal, func() (struct{}, error) {
		select {
		case <-m.ready:
		default:
			// Close waits for the client server, which waits until the member is
			// ready or stopping.
			server.Server.Stop()
		}
		server.Close()
		return struct{}{}, nil
	})
	if err := errors.Join(err, stopErr); err != nil {
		return fmt.Errorf("run etcd member in %s: %w", m.settings.Dir, err)
	}
	return nil
}

// start brings etcd up. Where the port was left open, it picks one and tries
// again when somebody else was quicker; nothing is written to the data
// directory before both ports are bound. Both results are nil if ctx ended.
func (m *Member) start(ctx, stop context.Context, fatal *fatalHook) (*embed.Etcd, error) {
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return nil, nil //nolint:nilerr // a stop is what was asked for
		}
		client, clientFree, err := bindable(m.settings.client)
		if err != nil {
			return nil, err
		}
		peer, peerFree, err := bindable(m.settings.peer)
		if err != nil {
			return nil, err
		}
		config := m.embedConfig(stop, client, peer, fatal)
		server, err := guarded(fatal, func() (*embed.Etcd, error) { return embed.StartEtcd(config) })
		if err == nil {
			m.mu.Lock()
			m.endpoints = []string{client.String()}
			m.mu.Unlock()
			return server, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
		if try >= bindTries || (!clientFree && !peerFree) || taken(err, client, clientFree) || taken(err, peer, peerFree) {
			return nil, fmt.Errorf("%w: %w (hint: stop the process that listens there, or choose another port)", ErrAddressInUse, err)
		}
	}
}

// attend waits until the member serves, says so, and then for its end. It
// returns nil when ctx ended.
func (m *Member) attend(ctx context.Context, server *embed.Etcd, fatal *fatalHook) error {
	slow := time.NewTimer(slowStart)
	defer slow.Stop()
	ready := server.Server.ReadyNotify()
	for {
		select {
		case <-ready:
			ready = nil
			slow.Stop()
			close(m.ready)
		case <-slow.C:
			m.logger.Warn("etcd member is not ready yet; does a majority of its cluster run?",
				zap.String("name", m.settings.Name), zap.String("initial_cluster", m.settings.InitialCluster))
		case <-ctx.Done():
			return nil
		case err := <-fatal.reason:
			return err
		case err := <-server.Err():
			return fmt.Errorf("serve: %w", err)
		case <-server.Server.StopNotify():
			return errors.New("the server stopped by itself (hint: was the member removed from its cluster?)")
		}
	}
}

// embedConfig translates the settings.
func (m *Member) embedConfig(stop context.Context, client, peer *url.URL, fatal *fatalHook) *embed.Config {
	s := m.settings
	config := embed.NewConfig()
	config.Name = s.Name
	config.Dir = s.Dir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.InitialCluster = s.InitialCluster
	if config.InitialCluster == "" {
		config.InitialCluster = s.Name + "=" + peer.String()
	}
	config.InitialClusterToken = s.Token
	config.ClusterState = string(s.State)
	config.QuotaBackendBytes = s.QuotaBytes
	config.ElectionMs = uint(s.ElectionTimeout.Milliseconds())
	config.TickMs = config.ElectionMs / 10
	config.ClientTLSInfo = s.ClientTLS.server()
	config.PeerTLSInfo = s.PeerTLS.server()
	if s.AutoCompaction > 0 {
		config.AutoCompactionMode = v3compactor.ModePeriodic
		config.AutoCompactionRetention = s.AutoCompaction.String()
	}
	config.UnsafeNoFsync = s.UnsafeNoFsync
	config.EnableGRPCGateway = false
	config.GRPCAdditionalServerOptions = append(config.GRPCAdditionalServerOptions, drainStreams(stop))
	logger := quiet(m.logger, func() bool { return stop.Err() != nil }).Named("etcd").WithOptions(zap.WithFatalHook(fatal), zap.WithPanicHook(fatal))
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	return config
}

// guarded calls etcd in a goroutine of its own, since a Fatal inside ends the
// goroutine, and turns a panic of the call into an error.
func guarded[T any](fatal *fatalHook, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				answers <- answer{err: fmt.Errorf("%w: %v", ErrFatal, cause)}
			}
		}()
		value, err := call()
		answers <- answer{value, err}
	}()
	select {
	case got := <-answers:
		return got.value, got.err
	case err := <-fatal.reason:
		var none T
		return none, err
	}
}

// bindable replaces port 0 by a port that is free now, and reports whether it
// did.
func bindable(u *url.URL) (*url.URL, bool, error) {
	if u.Port() != "0" {
		return u, false, nil
	}
	listener, err := net.Listen("tcp", u.Host)
	if err != nil {
		return nil, false, fmt.Errorf("find a free port at %s: %w", u.Hostname(), err)
	}
	bound := *u
	bound.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	if err := listener.Close(); err != nil {
		return nil, false, fmt.Errorf("find a free port at %s: %w", u.Hostname(), err)
	}
	return &bound, true, nil
}

// taken reports that a bind error is about an address whose port is fixed.
func taken(err error, u *url.URL, free bool) bool {
	var op *net.OpError
	return !free && errors.As(err, &op) && op.Addr != nil && op.Addr.String() == u.Host
}
