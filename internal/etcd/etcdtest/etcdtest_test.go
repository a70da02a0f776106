package etcdtest_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/etcd/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func TestOneBinarySharesOneMember(t *testing.T) {
	t.Parallel()
	require.Same(t, etcdtest.Start(t), etcdtest.Start(t))
	prefix := etcdtest.Prefix(t)
	require.NotEqual(t, prefix, etcdtest.Prefix(t))
	client := etcdtest.Start(t).Client(t)
	_, err := client.Put(t.Context(), prefix+"a", "1")
	require.NoError(t, err)
	got, err := client.Get(t.Context(), prefix+"a")
	require.NoError(t, err)
	require.Equal(t, "1", string(got.Kvs[0].Value))
}

func TestOwnMemberKeepsItsDataOverARestart(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t)
	client := member.Client(t)
	_, err := client.Put(t.Context(), "a", "1")
	require.NoError(t, err)
	address := member.Endpoints()
	member.Restart(t)
	require.Equal(t, address, member.Endpoints())
	got, err := client.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "1", string(got.Kvs[0].Value))
	entries, err := os.ReadDir(member.Dir())
	require.NoError(t, err)
	require.NotEmpty(t, entries)
}

func TestThreeMembersOfOneProcessFormACluster(t *testing.T) {
	t.Parallel()
	members := etcdtest.StartCluster(t, 3)
	_, err := members[0].Client(t).Put(t.Context(), "a", "1")
	require.NoError(t, err)
	members[0].Stop(t)
	got, err := members[2].Client(t).Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "1", string(got.Kvs[0].Value))
	members[0].Restart(t)
	got, err = members[0].Client(t).Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "1", string(got.Kvs[0].Value))
}
