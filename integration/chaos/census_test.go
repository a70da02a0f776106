package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/integration/cluster"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// victims names who may be killed, given who leads.
type victims func(c *cluster.Cluster, random *rand.Rand) string

func theLeader(c *cluster.Cluster, _ *rand.Rand) string { return c.Leader() }

func anyReplica(_ *cluster.Cluster, random *rand.Rand) string {
	return fmt.Sprintf("r%d", 1+random.IntN(3))
}

func anyMember(_ *cluster.Cluster, random *rand.Rand) string {
	return fmt.Sprintf("e%d", 1+random.IntN(3))
}

// TestCensusOutlivesAnyReplica kills replicas with the etcd members in them.
func TestCensusOutlivesAnyReplica(t *testing.T) {
	t.Parallel()
	outlive(t, cluster.Config{Replicas: 3, Workers: 2}, theLeader, anyReplica)
}

// TestCensusOutlivesAnyMember has the etcd members apart from the replicas.
func TestCensusOutlivesAnyMember(t *testing.T) {
	t.Parallel()
	outlive(t, cluster.Config{Replicas: 3, Workers: 2, Members: 3}, anyMember, theLeader, anyReplica)
}

// outlive runs the census, again and again, and kills one process at a random
// moment of each. At full scale the two tests are thirty censuses.
func outlive(t *testing.T, config cluster.Config, kinds ...victims) {
	t.Helper()
	rounds, tree := 15, sources(t)
	if testing.Short() {
		rounds, tree = len(kinds), filepath.Join(tree, "crypto")
	}
	chance := random(t)
	c := cluster.Start(t, config)
	c.Apply(filepath.Join("..", "..", "examples", "census", "census.yaml"))
	witness := filepath.Join(t.TempDir(), "witness")
	for round := range rounds {
		run := c.Run("census", fmt.Sprintf("%s/%d", t.Name(), round), map[string]string{"root": tree, "witness": witness})
		moment(t, chance, 7*time.Second)
		victim := kinds[round%len(kinds)](c, chance)
		t.Logf("round %d: %s, kill %s", round, run, victim)
		c.Kill(victim)
		end := c.Ended(run)
		require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, end.GetRun().GetState(), "%s: %v", run, end)
		requireOnce(t, witness, run, "ledger")
		c.Launch(victim)
		if strings.HasPrefix(victim, "r") {
			c.AwaitServing(victim)
		}
		c.AwaitMembers()
	}
	verdict := c.Audit()
	require.Empty(t, verdict.GetViolations())
	require.False(t, verdict.GetTruncated())
	require.EqualValues(t, rounds, verdict.GetRuns())
}

// requireOnce reads in the book that the task itself writes that it began once
// and ended once.
func requireOnce(t *testing.T, witness, run, task string) {
	t.Helper()
	body, err := os.ReadFile(witness)
	require.NoError(t, err)
	began, ended := 0, 0
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, run+" "+task+" ") {
			began += strings.Count(line, " begin\n")
			ended += strings.Count(line, " end\n")
		}
	}
	require.Equal(t, 1, began, "%s of %s began", task, run)
	require.Equal(t, 1, ended, "%s of %s ended", task, run)
}

// sources is the tree of Go's own sources, a real one that every machine has on
// which these tests run.
func sources(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(root)), "src")
}
