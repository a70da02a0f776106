package keeper_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/keeper"
)

func TestAProcessIsKnownByItsPidAndStart(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	seen := find(t, cmd.Process.Pid)
	require.Equal(t, os.Getpid(), seen.Parent)
	require.Equal(t, keeper.StartTicks(cmd.Process.Pid), seen.Ticks)
	require.True(t, seen.Alive())
	reused := seen
	reused.Ticks++ // the pid is in use, by another process
	require.False(t, reused.Alive())
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	require.False(t, seen.Alive())
	require.Zero(t, keeper.StartTicks(cmd.Process.Pid))
}

func find(t *testing.T, pid int) keeper.Proc {
	t.Helper()
	procs, err := keeper.ReadProcs()
	require.NoError(t, err)
	for _, p := range procs {
		if p.Pid == pid {
			return p
		}
	}
	require.FailNow(t, "the process is not in /proc")
	return keeper.Proc{}
}

func TestDescendantsAreThoseThatAWalkOfParentsReaches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(t, "processes")
		procs := make([]keeper.Proc, 0, n)
		parent := make(map[int]int, n)
		for pid := 1; pid <= n; pid++ { // a reading may hold loops
			parent[pid] = rapid.IntRange(0, n).Draw(t, "parent")
			procs = append(procs, keeper.Proc{Pid: pid, Parent: parent[pid]})
		}
		ancestor := rapid.IntRange(1, n).Draw(t, "ancestor")
		got := make(map[int]int)
		for top, members := range keeper.Descendants(procs, ancestor) {
			for _, m := range members {
				require.NotContains(t, got, m.Pid)
				got[m.Pid] = top
			}
		}
		want := make(map[int]int)
		for pid := 1; pid <= n; pid++ {
			for p, steps := pid, 0; steps <= n && p != 0 && pid != ancestor; p, steps = parent[p], steps+1 {
				if parent[p] == ancestor {
					want[pid] = p
					break
				}
			}
		}
		require.Equal(t, want, got)
	})
}

func TestBootClockGoesOn(t *testing.T) {
	t.Parallel()
	before := keeper.Now()
	require.Positive(t, before)
	require.GreaterOrEqual(t, keeper.Now(), before)
	require.EqualValues(t, 5, before.Add(5).Sub(before))
	id, err := keeper.BootID()
	require.NoError(t, err)
	require.Len(t, id, 36)
}
