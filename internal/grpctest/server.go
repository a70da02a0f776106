package grpctest

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// Serve serves on the listener until the test ends. All services of the server
// are registered before.
func Serve(t testing.TB, server *grpc.Server, listener net.Listener) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		// A test may end before the server has begun.
		if err := <-served; !errors.Is(err, grpc.ErrServerStopped) {
			require.NoError(t, err)
		}
	})
}

// Listen serves on a free port of loopback until the test ends, and returns
// its host:port.
func Listen(t testing.TB, server *grpc.Server) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	Serve(t, server, listener)
	return listener.Addr().String()
}

// Dial serves in memory until the test ends, and returns a connection that ends
// before.
func Dial(t testing.TB, server *grpc.Server, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	Serve(t, server, listener)
	conn, err := grpc.NewClient("passthrough:///test", append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
	}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}
