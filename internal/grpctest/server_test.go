package grpctest_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/writ-sched/writ/internal/grpctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func healthy() *grpc.Server {
	s := grpc.NewServer()
	healthv1.RegisterHealthServer(s, health.NewServer())
	return s
}

func TestDialReachesTheServer(t *testing.T) {
	t.Parallel()
	answer, err := healthv1.NewHealthClient(grpctest.Dial(t, healthy())).Check(t.Context(), &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, answer.GetStatus())
}

func TestListenIsOnLoopback(t *testing.T) {
	t.Parallel()
	host, _, err := net.SplitHostPort(grpctest.Listen(t, healthy()))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
}

func TestATestMayEndBeforeItsServerHasBegun(t *testing.T) {
	t.Parallel()
	server := healthy()
	server.Stop()
	grpctest.Listen(t, server)
}
