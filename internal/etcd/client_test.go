package etcd_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/etcd/etcdtest"
	"github.com/writ-sched/writ/internal/grpctest"
)

// ample is a dial timeout for tests that are to succeed.
const ample = 60 * time.Second

func dial(t *testing.T, config etcd.DialConfig, logger *zap.Logger) *etcd.Clients {
	t.Helper()
	if config.Timeout == 0 {
		config.Timeout = ample
	}
	clients, err := etcd.Dial(t.Context(), config, logger)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, clients.Close()) })
	return clients
}

// fakeEtcd answers as an etcd of some version would to a dialling client.
type fakeEtcd struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedKVServer
	version string
}

func (f *fakeEtcd) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{}, Version: f.version, Leader: 1}, nil
}

func (f *fakeEtcd) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{}}, nil
}

// serve runs a grpc server for the test and returns its endpoint.
func serve(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	server := grpc.NewServer()
	register(server)
	return "http://" + grpctest.Listen(t, server)
}

func oldEtcd(t *testing.T, version string) string {
	t.Helper()
	return serve(t, func(s *grpc.Server) {
		fake := &fakeEtcd{version: version}
		pb.RegisterMaintenanceServer(s, fake)
		pb.RegisterKVServer(s, fake)
	})
}

// deadEndpoint is an address that refuses connections: its port is bound, so
// that nobody else gets it, and not listened on.
func deadEndpoint(t *testing.T) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Close(socket)) })
	require.NoError(t, unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	bound, err := unix.Getsockname(socket)
	require.NoError(t, err)
	return fmt.Sprintf("http://127.0.0.1:%d", bound.(*unix.SockaddrInet4).Port)
}

func TestBulkAndLiveWorkOnConnectionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.WarnLevel)
	clients := dial(t, etcd.DialConfig{Endpoints: etcdtest.Start(t).Endpoints()}, zap.New(core))
	require.Empty(t, logs.All(), "the embedded version has nothing to warn of")
	require.NotSame(t, clients.Bulk.ActiveConnection(), clients.Live.ActiveConnection())
	key := etcdtest.Prefix(t) + "a"
	ctx, cancel := etcd.Call(t.Context(), ample)
	defer cancel()
	watch := clients.Live.Watch(ctx, key, clientv3.WithCreatedNotify())
	require.True(t, (<-watch).Created)
	_, err := clients.Bulk.Put(ctx, key, "1")
	require.NoError(t, err)
	require.Equal(t, "1", string((<-watch).Events[0].Kv.Value))
}

func TestUnreachableEtcdIsNamedWithinTheDeadline(t *testing.T) {
	t.Parallel()
	endpoint := deadEndpoint(t)
	start := time.Now()
	_, err := etcd.Dial(t.Context(), etcd.DialConfig{Endpoints: []string{endpoint}, Timeout: 300 * time.Millisecond}, nil)
	require.Less(t, time.Since(start), 30*time.Second)
	require.ErrorIs(t, err, etcd.ErrUnreachable)
	require.ErrorContains(t, err, endpoint)
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "hint:")
}

func TestSilentAddressIsGivenUpAtTheDeadline(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	require.NoError(t, err)
	_, err = etcd.Dial(t.Context(), etcd.DialConfig{Endpoints: []string{listener.Addr().String()}, Timeout: 300 * time.Millisecond}, nil)
	require.ErrorIs(t, err, etcd.ErrUnreachable)
	require.NoError(t, listener.Close())
}

func TestCancelEndsDialing(t *testing.T) {
	t.Parallel()
	ctx, cancel := contextFor(t)
	cancel()
	_, err := etcd.Dial(ctx, etcd.DialConfig{Endpoints: []string{deadEndpoint(t)}, Timeout: time.Hour}, nil)
	require.ErrorIs(t, err, etcd.ErrUnreachable)
}

func TestOneDeadEndpointIsAWarningOnly(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.WarnLevel)
	dead := deadEndpoint(t)
	dial(t, etcd.DialConfig{Endpoints: append(etcdtest.Start(t).Endpoints(), dead)}, zap.New(core))
	found := logs.FilterMessageSnippet("does not answer").All()
	require.Len(t, found, 1)
	require.Contains(t, found[0].ContextMap()["error"], dead)
}

func TestOldEtcdIsRefusedByAnyOfItsEndpoints(t *testing.T) {
	t.Parallel()
	old := oldEtcd(t, "3.6.8")
	_, err := etcd.Dial(t.Context(), etcd.DialConfig{Endpoints: append(etcdtest.Start(t).Endpoints(), old), Timeout: ample}, nil)
	require.ErrorIs(t, err, etcd.ErrTooOld)
	require.ErrorContains(t, err, old)
	require.ErrorContains(t, err, "3.6.8")
}

func TestDefectsOfAnAcceptedVersionAreLoggedByName(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.DebugLevel)
	dial(t, etcd.DialConfig{Endpoints: []string{oldEtcd(t, "3.6.13"), oldEtcd(t, "3.6.13")}}, zap.New(core))
	levels := make(map[string]zapcore.Level)
	entries := logs.FilterMessage("etcd version has a known defect").All()
	for _, entry := range entries {
		levels[entry.ContextMap()["defect"].(string)] = entry.Level
	}
	require.Len(t, entries, len(levels), "one line each, however many endpoints")
	require.Equal(t, map[string]zapcore.Level{
		"diverging-revisioned-range": zapcore.WarnLevel,
		"nested-txn-escapes-quota":   zapcore.WarnLevel,
		"not-recommended":            zapcore.WarnLevel,
		"panic-on-two-snapshots":     zapcore.InfoLevel,
	}, levels)
}

func TestServersThatAreNoEtcdAreNamed(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(page.Close)
	for _, endpoint := range []string{serve(t, func(*grpc.Server) {}), oldEtcd(t, "latest")} {
		_, err := etcd.Dial(t.Context(), etcd.DialConfig{Endpoints: []string{endpoint}, Timeout: ample}, nil)
		require.ErrorIs(t, err, etcd.ErrUnreachable)
		require.ErrorContains(t, err, endpoint)
	}
	_, err := etcd.Dial(t.Context(), etcd.DialConfig{Endpoints: []string{page.URL}, Timeout: 300 * time.Millisecond}, nil)
	require.ErrorIs(t, err, etcd.ErrUnreachable)
	require.ErrorContains(t, err, page.URL)
}

func TestClusterWithoutMajorityHasMembersButNoLeader(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.StartCluster(t, 3)
	var endpoints []string
	for _, member := range cluster {
		endpoints = append(endpoints, member.Endpoints()...)
	}
	clients := dial(t, etcd.DialConfig{Endpoints: endpoints}, nil)
	members, err := clients.Members(t.Context())
	require.NoError(t, err)
	require.Len(t, members, 3)
	leaders := 0
	for i, m := range members {
		require.NoError(t, m.Err)
		require.Equal(t, []string{"m1", "m2", "m3"}[i], m.Name)
		require.Equal(t, "3.7.3", m.Version.String())
		require.Equal(t, cluster[i].Endpoints(), m.ClientURLs)
		require.Equal(t, etcd.DefaultQuotaBytes, m.Quota)
		require.Positive(t, m.DBInUse)
		require.GreaterOrEqual(t, m.DBSize, m.DBInUse)
		require.Empty(t, m.Alarms)
		if m.Leader {
			leaders++
		}
	}
	require.Equal(t, 1, leaders)

	kept := cluster[0].Endpoints()
	cluster[1].Stop(t)
	cluster[2].Stop(t)
	members, err = clients.Members(t.Context())
	require.NoError(t, err)
	require.NoError(t, members[0].Err)
	require.ErrorContains(t, members[1].Err, "m2")
	require.Error(t, members[2].Err)
	require.Eventually(t, func() bool {
		ctx, cancel := etcd.Call(t.Context(), ample)
		defer cancel()
		_, err := clients.Live.Grant(ctx, 60)
		return err != nil
	}, ample, 10*time.Millisecond)
	_, err = etcd.Dial(t.Context(), etcd.DialConfig{Endpoints: kept, Timeout: 300 * time.Millisecond}, nil)
	require.ErrorIs(t, err, etcd.ErrNoLeader)
	require.ErrorContains(t, err, "majority")

	cluster[1].Restart(t)
	dial(t, etcd.DialConfig{Endpoints: kept}, nil)
}

func TestCallHasADeadlineAndRequiresALeader(t *testing.T) {
	t.Parallel()
	ctx, cancel := etcd.Call(t.Context(), time.Minute)
	defer cancel()
	deadline, bounded := ctx.Deadline()
	require.True(t, bounded)
	require.WithinDuration(t, time.Now().Add(time.Minute), deadline, 30*time.Second)
	sent, ok := metadata.FromOutgoingContext(ctx)
	require.True(t, ok)
	require.Equal(t, []string{rpctypes.MetadataHasLeader}, sent.Get(rpctypes.MetadataRequireLeaderKey))
}

func TestFullDatabaseShowsItsAlarm(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t, func(c *etcd.Config) { c.QuotaBytes = 256 << 10 })
	clients := dial(t, etcd.DialConfig{Endpoints: member.Endpoints()}, nil)
	value := string(make([]byte, 64<<10))
	require.Eventually(t, func() bool {
		_, err := clients.Bulk.Put(t.Context(), "a", value)
		return err != nil
	}, ample, time.Millisecond)
	members, err := clients.Members(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"NOSPACE"}, members[0].Alarms)
	require.EqualValues(t, 256<<10, members[0].Quota)
}

func TestClientConfigurationIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]etcd.DialConfig{
		"no endpoint is given":       {},
		"timeout -1s":                {Endpoints: []string{"127.0.0.1:1"}, Timeout: -time.Second},
		`endpoint "127.0.0.1"`:       {Endpoints: []string{"127.0.0.1"}},
		`endpoint "ftp://a:1"`:       {Endpoints: []string{"ftp://a:1"}},
		`endpoint "http://a:1/b"`:    {Endpoints: []string{"http://a:1/b"}},
		`endpoint "http://u:p@a:1"`:  {Endpoints: []string{"http://u:p@a:1"}},
		"http and https are mixed":   {Endpoints: []string{"http://a:1", "https://a:1"}},
		"the endpoints are plain":    {Endpoints: []string{"http://a:1"}, TLS: etcd.TLS{CAFile: "ca"}},
		"must be given together":     {Endpoints: []string{"a:1"}, TLS: etcd.TLS{CertFile: "cert"}},
		"open nowhere.pem":           {Endpoints: []string{"a:1"}, TLS: etcd.TLS{CAFile: "nowhere.pem"}},
		"expected host:port, http:/": {Endpoints: []string{"http://"}},
	} {
		_, err := etcd.Dial(t.Context(), config, nil)
		require.ErrorContains(t, err, want)
	}
}
