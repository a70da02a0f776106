package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"github.com/writ-sched/writ/internal/election"
	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/leader"
	"github.com/writ-sched/writ/internal/metrics"
	"github.com/writ-sched/writ/internal/mirror"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store"

	"github.com/prometheus/client_golang/prometheus"
)

// Replica is one scheduler process.
type Replica struct {
	config Config
	id     record.ReplicaID
	logger *zap.Logger
	ready  chan struct{}

	mu      sync.Mutex // guards address
	address string
	etcdURL []string
}

// New checks the configuration. It touches neither disk nor network. A nil
// logger means none.
func New(config Config, logger *zap.Logger) (*Replica, error) {
	config, err := config.resolve()
	if err != nil {
		return nil, fmt.Errorf("configure replica: %w", err)
	}
	if logger == nil {
		logger = zap.NewNop()
	}
	id := config.ID
	if id == "" {
		id = "r-" + letters(4)
	}
	return &Replica{config: config, id: record.ReplicaID(id), logger: logger.With(zap.String("replica", id)), ready: make(chan struct{})}, nil
}

// ID returns the replica's id.
func (r *Replica) ID() record.ReplicaID { return r.id }

// Ready is closed once clients and workers are served.
func (r *Replica) Ready() <-chan struct{} { return r.ready }

// Address is where clients and workers are served, known once Ready.
func (r *Replica) Address() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.address
}

// Endpoints are those of the etcd that the replica uses, known once Ready.
func (r *Replica) Endpoints() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.etcdURL
}

// Run serves until ctx ends.
func (r *Replica) Run(ctx context.Context) error {
	listener, err := net.Listen("tcp", r.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w (hint: is another replica running here? --listen names another port)", r.config.Listen, err)
	}
	defer listener.Close()
	endpoints, stopMember, memberEnd, err := r.member(ctx)
	if err != nil {
		return err
	}
	err = r.serve(ctx, listener, endpoints, memberEnd)
	return errors.Join(err, stopMember())
}

// member starts the embedded etcd where one is asked for. The returned stop
// ends it and returns what it ended with; end is closed when it ended by
// itself.
func (r *Replica) member(ctx context.Context) (endpoints []string, stop func() error, end <-chan struct{}, err error) {
	if len(r.config.Endpoints) > 0 {
		return r.config.Endpoints, func() error { return nil }, nil, nil
	}
	m, err := etcd.New(r.config.Etcd, r.logger)
	if err != nil {
		return nil, nil, nil, err
	}
	// The member outlives everything that writes to it.
	memberCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	var result error
	go func() {
		defer close(ended)
		result = m.Run(memberCtx)
	}()
	stop = func() error {
		cancel()
		<-ended
		return result
	}
	select {
	case <-m.Ready():
		return m.Endpoints(), stop, ended, nil
	case <-ended:
	case <-ctx.Done():
	}
	if err := stop(); err != nil {
		return nil, nil, nil, err
	}
	return nil, nil, nil, fmt.Errorf("start etcd: %w", context.Cause(ctx))
}

// parts are what a running replica is made of.
type parts struct {
	*Replica
	store   *store.Store
	mirror  *mirror.Mirror
	elector *election.Elector
	metrics *metrics.Set
	clients *etcd.Clients
	meta    record.Meta
	attend  *attendance
	health  *health.Server
	server  *grpc.Server
	full    atomic.Bool // etcd has no room for new runs
	tide    *tide
	group   group
}

// serve connects, assembles and runs everything that needs etcd.
func (r *Replica) serve(ctx context.Context, listener net.Listener, endpoints []string, memberEnd <-chan struct{}) error {
	clients, err := etcd.Dial(ctx, etcd.DialConfig{Endpoints: endpoints, TLS: r.config.EtcdTLS}, r.logger)
	if err != nil {
		return err
	}
	defer clients.Close() //nolint:errcheck // whoever used it has ended and had its errors
	p, err := r.assemble(clients, listener.Addr().String())
	if err != nil {
		return err
	}
	// The store outlives whoever still has something to write.
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(ctx))
	p.group.run(storeCtx, "store", p.store.Run)
	err = p.live(ctx, listener, endpoints, memberEnd)
	stopStore()
	p.group.wait()
	return err
}

// assemble makes the parts; nothing runs yet.
func (r *Replica) assemble(clients *etcd.Clients, address string) (*parts, error) {
	space, err := keyspace.New(r.config.Cluster)
	if err != nil {
		return nil, err
	}
	advertise := r.config.Advertise
	if advertise == "" {
		advertise = address
	}
	p := &parts{Replica: r, clients: clients, metrics: metrics.New(prometheus.NewRegistry())}
	p.store, err = store.New(store.Config{Bulk: clients.Bulk, Live: clients.Live, Space: space, Metrics: p.metrics, Logger: r.logger})
	if err != nil {
		return nil, err
	}
	p.mirror = mirror.New(p.store, r.logger)
	p.elector, err = election.New(election.Config{
		Prefix: space.ElectionPrefix(), Replica: string(r.id), Address: advertise, TTL: r.config.LeaderTTL,
	}, clients.Bulk, clients.Live, r.logger)
	if err != nil {
		return nil, err
	}
	p.tide = newTide(r.config.breaker())
	p.attend = &attendance{
		store: p.store, logger: r.logger, ttl: r.config.LeaderTTL,
		record: record.Replica{Schema: record.Schema, Replica: r.id, Address: advertise, Version: Version, Since: time.Now().UTC()},
	}
	return p, nil
}

// Version is what this build calls itself.
const Version = "0.1.0-dev"

// startLimit bounds the first look at the store and the first list.
const startLimit = 30 * time.Second

// live runs everything between the store's start and its end.
func (p *parts) live(ctx context.Context, listener net.Listener, endpoints []string, memberEnd <-chan struct{}) error {
	startCtx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var err error
	if p.meta, err = openMeta(startCtx, p.store); err != nil {
		return err
	}
	// What runs here ends in the order of stop, not with ctx.
	runCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	leadCtx, endLead := context.WithCancel(runCtx)
	defer endLead()
	var lead, rest group
	rest.run(runCtx, "mirror", p.mirror.Run)
	rest.run(runCtx, "tide", func(ctx context.Context) error { p.tide.run(ctx, p.mirror); return nil })
	rest.run(runCtx, "attend", func(ctx context.Context) error { p.attend.run(ctx); return nil })
	if err := p.mirror.Await(startCtx, 0); err != nil {
		end()
		rest.wait()
		return fmt.Errorf("list the active records: %w", err)
	}
	gate := p.open(runCtx, listener, &rest)
	p.campaign(leadCtx, &lead)
	rest.run(runCtx, "depose", func(ctx context.Context) error { p.deposeDead(ctx, p.elector); return nil })
	p.announceReady(listener.Addr().String(), endpoints)

	select {
	case <-ctx.Done():
		err = nil
	case <-memberEnd:
		err = errors.New("the embedded etcd ended")
	case err = <-rest.failed():
	case err = <-lead.failed():
	}
	p.logger.Info("the replica stops", zap.Error(err))
	p.health.Shutdown()
	endLead()
	lead.wait()
	gate.close()
	end()
	rest.wait()
	return err
}

func (p *parts) announceReady(address string, endpoints []string) {
	p.mu.Lock()
	p.address, p.etcdURL = address, endpoints
	p.mu.Unlock()
	close(p.ready)
	p.logger.Info("the replica serves", zap.String("address", address), zap.String("cluster", p.config.Cluster), zap.Strings("etcd", endpoints))
}

// campaign runs the election, or leads at once where everyone does.
func (p *parts) campaign(ctx context.Context, g *group) {
	if p.config.EveryoneLeads {
		g.run(ctx, "lead", func(ctx context.Context) error { return p.lead(ctx, election.Term{}) })
		return
	}
	g.run(ctx, "election", func(ctx context.Context) error { return p.elector.Run(ctx, p.lead) })
}

// lead is one term: the mirror catches up, and then the loop decides, old
// history goes and ended runs are swept.
func (p *parts) lead(ctx context.Context, term election.Term) error {
	rev, err := p.attend.announce(ctx)
	if err != nil {
		return err
	}
	if err := p.mirror.Await(ctx, rev); err != nil {
		return fmt.Errorf("catch up with the store: %w", err)
	}
	var guard []record.Expect
	if term.Rev != 0 {
		guard = append(guard, record.CreatedAt(record.ElectionKey(term.Lease), term.Rev))
	}
	l := leader.New(leader.Config{
		Replica: p.id, Policy: p.policy(), FullPass: p.config.FullPass, Stale: p.config.LeaderTTL,
		Losses: p.tide.look, Progress: p.elector.Progress, Metrics: p.metrics, Logger: p.logger,
	}, p.store, shown{p.mirror}, p.store)
	var chores sync.WaitGroup
	chores.Go(func() { p.compact(ctx, guard) })
	chores.Go(func() { p.sweep(ctx, guard) })
	l.Lead(ctx, leader.Term{Lease: term.Lease, Rev: term.Rev})
	chores.Wait()
	return nil
}

// shown is the mirror as the leader wants it.
type shown struct{ *mirror.Mirror }

func (s shown) Feed() leader.Feed { return s.Mirror.Feed() }
