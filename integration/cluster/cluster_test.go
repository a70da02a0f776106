package cluster_test

import (
	"testing"

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
