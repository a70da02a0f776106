package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/writ-sched/writ/internal/api"
	"github.com/writ-sched/writ/internal/gateway"
	"github.com/writ-sched/writ/internal/mirror"
	"github.com/writ-sched/writ/internal/reconcile"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// policy is how the rules wait.
func (p *parts) policy() reconcile.Policy {
	policy := reconcile.Defaults()
	policy.Confirm, policy.Probe, policy.Margin = p.config.Confirm, p.config.Probe, p.config.Margin
	return policy
}

// gate is the server and what it serves.
type gate struct {
	server  *grpc.Server
	gateway *gateway.Gateway
	close   func()
}

// stopLimit is how long calls may take to finish when the replica stops.
const stopLimit = 5 * time.Second

// open makes the server and serves. Clients and workers are told to go
// elsewhere by close, and calls that are under way finish.
func (p *parts) open(ctx context.Context, listener net.Listener, rest *group) *gate {
	gw := gateway.New(gateway.Config{
		Replica: p.id, TTL: p.config.TTL, Margin: p.config.Margin, Confirm: p.config.Confirm, KillGrace: p.config.KillGrace,
		Metrics: p.metrics, Logger: p.logger,
	}, p.store, p.store, gatewayMirror{p.mirror})
	p.health = health.NewServer()
	p.server = grpc.NewServer(
		grpc.MaxRecvMsgSize(api.MaxMessageBytes), grpc.MaxSendMsgSize(api.MaxMessageBytes),
		// A proxy may close what is idle; clients may ping as often as they need.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 2 * time.Second, PermitWithoutStream: true}),
	)
	peers := newPeers()
	c := &cluster{parts: p, gateway: gw, peers: peers}
	calls := api.New(api.Config{Replica: p.id, Policy: p.policy(), Holds: p.tide.holds, Logger: p.logger}, p.store, apiMirror{p.mirror}, c)
	calls.Register(p.server)
	writv1.RegisterWorkerServiceServer(p.server, gw)
	healthv1.RegisterHealthServer(p.server, p.health)
	reflection.Register(p.server)

	gatewayCtx, endGateway := context.WithCancel(ctx)
	rest.run(gatewayCtx, "gateway", gw.Run)
	rest.run(ctx, "serve", func(context.Context) error {
		// A replica may be told to stop before it has begun to serve.
		if err := p.server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("serve %s: %w", listener.Addr(), err)
		}
		return nil
	})
	return &gate{server: p.server, gateway: gw, close: sync.OnceFunc(func() {
		endGateway()
		calls.Drain()
		graceful(p.server)
		peers.close()
	})}
}

// graceful lets calls finish for a while, and ends the rest.
func graceful(s *grpc.Server) {
	done := make(chan struct{})
	go func() { // it ends with the server
		s.GracefulStop()
		close(done)
	}()
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		s.Stop()
		<-done
	}
}

type gatewayMirror struct{ *mirror.Mirror }

func (m gatewayMirror) Feed() gateway.Feed { return m.Mirror.Feed() }

type apiMirror struct{ *mirror.Mirror }

func (m apiMirror) Feed() api.Feed { return m.Mirror.Feed() }
