package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/etcd"
)

func contextFor(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

func TestMemberConfigurationIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		config etcd.Config
		want   string
	}{
		"no directory":      {etcd.Config{}, "data directory is empty"},
		"state":             {etcd.Config{State: "old"}, `initial cluster state "old"`},
		"quota":             {etcd.Config{QuotaBytes: -1}, "quota of -1 bytes"},
		"election":          {etcd.Config{ElectionTimeout: time.Millisecond}, "election timeout 1ms: expected 100ms to 50s"},
		"compaction":        {etcd.Config{AutoCompaction: -time.Second}, "auto compaction after -1s"},
		"no scheme":         {etcd.Config{ClientURL: "127.0.0.1:2379"}, "client URL"},
		"other scheme":      {etcd.Config{ClientURL: "unix://a:1"}, "expected http://address:port"},
		"path":              {etcd.Config{PeerURL: "http://127.0.0.1:1/x"}, "peer URL"},
		"no port":           {etcd.Config{PeerURL: "http://127.0.0.1"}, "expected http://address:port"},
		"a name":            {etcd.Config{ClientURL: "http://example.org:1"}, "not a name"},
		"https, no files":   {etcd.Config{ClientURL: "https://127.0.0.1:1"}, "https needs a certificate"},
		"http with files":   {etcd.Config{ClientURL: "http://127.0.0.1:1", ClientTLS: etcd.TLS{CAFile: "ca"}}, "TLS files are given"},
		"cluster syntax":    {etcd.Config{InitialCluster: "a,b"}, "expected name=url,name=url"},
		"cluster without":   {etcd.Config{Name: "c", InitialCluster: "a=http://127.0.0.1:1"}, `does not name this member, "c"`},
		"cluster free port": {etcd.Config{Name: "a", InitialCluster: "a=http://127.0.0.1:0"}, "needs a fixed port"},
	}
	for name, c := range cases {
		if name != "no directory" {
			c.config.Dir = t.TempDir()
		}
		_, err := etcd.New(c.config, nil)
		require.ErrorContains(t, err, c.want, name)
	}
}

func TestMemberListensBeyondLoopbackOnlyWhenToldSo(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://0.0.0.0:0", "http://192.0.2.1:1", "http://[::]:0"} {
		for _, config := range []etcd.Config{{ClientURL: address}, {PeerURL: address}} {
			config.Dir = t.TempDir()
			_, err := etcd.New(config, nil)
			require.ErrorIs(t, err, etcd.ErrNotLoopback, address)
			require.ErrorContains(t, err, address)
			config.Insecure = true
			_, err = etcd.New(config, nil)
			require.NoError(t, err)
		}
	}
	for _, address := range []string{"http://localhost:0", "http://127.0.0.2:0", "http://[::1]:0"} {
		_, err := etcd.New(etcd.Config{Dir: t.TempDir(), ClientURL: address}, nil)
		require.NoError(t, err, address)
	}
}
