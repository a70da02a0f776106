package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/integration/cluster"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func TestMain(m *testing.M) { cluster.Main(m) }

const hello = `name: hello
tasks:
  one: {run: 'echo one'}
  two: {run: 'exit 99', needs: [one]}
`

func TestReplicaIsStoppedAndStartedAgainBesideTheOthers(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Config{Replicas: 3, Workers: 1, Members: 1})
	c.ApplyText("hello.yaml", []byte(hello))
	first := c.Leader()
	run := c.Run("hello", "one", nil)
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, c.Ended(run).GetRun().GetState())
	require.NoError(t, c.Stop(first))
	require.NotEqual(t, first, c.Leader(first))
	require.Equal(t, run, c.Run("hello", "one", nil), "a key stands for one run")
	c.Launch(first)
	c.AwaitServing(first)
	require.Empty(t, c.Audit().GetViolations())
}

func TestPausedWorkerGoesOn(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Config{Replicas: 1, Workers: 1})
	c.ApplyText("hello.yaml", []byte(hello))
	c.Pause("w1")
	run := c.Run("hello", "one", nil)
	c.Resume("w1")
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, c.Ended(run).GetRun().GetState())
	require.NoError(t, c.Stop("w1"))
	c.AwaitWorkers(0)
}

func TestKilledReplicaIsKnownAgainByItsName(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Config{Replicas: 2, Members: 1})
	victim := "r1"
	if c.Leader() == victim {
		victim = "r2"
	}
	before := since(t, c, victim)
	c.Kill(victim)
	c.Launch(victim)
	c.Await("the replica's new life", func(context.Context) error {
		if !since(t, c, victim).After(before) {
			return errors.New("its earlier life is listed, or none")
		}
		return nil
	})
}

// since is when a replica that is listed began, or zero.
func since(t *testing.T, c *cluster.Cluster, name string) time.Time {
	t.Helper()
	status, err := writv1.NewAdminServiceClient(c.Conn()).GetStatus(t.Context(), &writv1.GetStatusRequest{})
	require.NoError(t, err)
	for _, r := range status.GetReplicas() {
		if r.GetReplica() == name {
			return r.GetSince().AsTime()
		}
	}
	return time.Time{}
}
