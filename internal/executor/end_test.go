package executor_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/executor"
)

var daemons = flag.Int("daemons", 200, "attempts that each leave one background child (O07 counts 2000)")

// tree is a script that starts a child, a setsid stray, a double-forked daemon
// with an empty environment, and tells all their ids; on gets each of them.
func tree(on string) string {
	loop := "echo $$ > news; while :; do sleep 100; done"
	return fmt.Sprintf(`
body='%s %s'
sh -c "$body" &
setsid sh -c "$body" &
(setsid env -i PATH="$PATH" sh -c "$body" &) &
(sh -c "(sh -c \"\$1\" x &)" x "$body") &
eval "$body"
`, on, loop)
}

const treeSize = 5

func TestKillReachesTheWholeTree(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]string{"polite": "", "stubborn": `trap "" TERM INT HUP;`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			n := newNews(t, b.work)
			p := b.start(b.spec("tree", tree(on)))
			var pids []int
			for range treeSize {
				pids = append(pids, n.pid())
			}
			require.NoError(t, b.Kill(t.Context(), "tree", 200*time.Millisecond))
			r := wait(t, p)
			requireDead(t, pids...)
			require.Equal(t, executor.CauseKilled, r.Cause)
			if name == "stubborn" {
				require.Equal(t, 9, r.Signal)
			} else {
				require.Equal(t, 15, r.Signal)
			}
			require.Empty(t, processesOf(t, keeperPid(t, b.dir)))
		})
	}
}

func TestNeighbourSurvivesTheEndOfATree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	neighbour := b.start(b.spec("neighbour", tree("")))
	var theirs []int
	for range treeSize {
		theirs = append(theirs, n.pid())
	}
	for i := range 10 {
		token := fmt.Sprintf("short%d", i)
		p := b.start(b.spec(token, tree("")))
		for range treeSize {
			n.pid()
		}
		require.NoError(t, b.Kill(t.Context(), token, 0))
		wait(t, p)
	}
	for _, pid := range theirs {
		require.DirExists(t, fmt.Sprintf("/proc/%d", pid))
	}
	require.NoError(t, b.Kill(t.Context(), "neighbour", 0))
	wait(t, neighbour)
	requireDead(t, theirs...)
}

func TestNothingOutlivesTheMainProcessAndItsExitCodeStands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	gate := filepath.Join(b.work, "gate")
	p := b.start(b.spec("bg", `setsid env -i PATH="$PATH" sh -c 'trap "" TERM; echo $$ > news; while :; do sleep 100; done' &
while [ ! -e gate ]; do sleep 0.05; done; exit 3`))
	stray := n.pid()
	require.NoError(t, os.WriteFile(gate, nil, 0o644))
	r := wait(t, p)
	requireDead(t, stray)
	require.Equal(t, 3, r.ExitCode)
	require.Empty(t, r.Cause, "the main process ended by itself")
	require.Positive(t, r.Strays)
}

func TestInheritedPipeHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.spec("pipe", "echo before; (sleep 1000) & exit 0")
	s.Grace = time.Hour // the stray takes TERM; nobody waits for the pipe or the grace
	r := b.run(s)
	require.True(t, r.Success(), r.String())
	require.Equal(t, "before\n", logOf(t, s.Log))
}

func TestTimeoutEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	s := b.spec("slow", tree(`trap "" TERM;`))
	s.Timeout = 2 * time.Second
	p := b.start(s)
	var pids []int
	for range treeSize {
		pids = append(pids, n.pid())
	}
	r := wait(t, p)
	requireDead(t, pids...)
	require.Equal(t, executor.CauseTimeout, r.Cause)
	require.GreaterOrEqual(t, r.Ended.Sub(r.Started), s.Timeout)
	require.Contains(t, endNote(t, s.Log), "timeout")
}

func endNote(t *testing.T, path string) string {
	t.Helper()
	c, err := executor.ReadLog(path, 1<<40, 1)
	require.NoError(t, err)
	require.True(t, c.Complete)
	return c.Note
}

func TestGracefulEndKeepsItsExitCodeAndSaysWhoAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	p := b.start(b.spec("polite", `trap 'echo bye; exit 4' TERM; echo $$ > news; while :; do sleep 0.1; done`))
	n.pid()
	require.NoError(t, b.KillAll(t.Context(), time.Hour))
	r := wait(t, p)
	require.Equal(t, 4, r.ExitCode)
	require.Equal(t, executor.CauseKilled, r.Cause)
	require.Contains(t, logOf(t, filepath.Join(b.work, "polite.log")), "bye\n")
}

func TestStoppedProcessesAreEndedToo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	p := b.start(b.spec("stopped", `echo $$ > news; kill -STOP $$; sleep 1000`))
	pid := n.pid()
	require.NoError(t, b.Kill(t.Context(), "stopped", time.Hour))
	require.Equal(t, 15, wait(t, p).Signal)
	requireDead(t, pid)
}

func TestProcessesThatForkWithoutPauseAreEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	// Each child leaves its session and forks on; eight at a time, for ever.
	s := b.spec("bomb", `
cat > spawn <<'END'
trap "" TERM
sh -c 'exit 0'
setsid sh ./spawn &
exit 0
END
for i in 1 2 3 4; do setsid sh ./spawn & done
echo $$ > news
while :; do sh -c 'exit 0'; done`)
	p := b.start(s)
	n.pid()
	require.NoError(t, b.Kill(t.Context(), "bomb", 0))
	require.Equal(t, executor.CauseKilled, wait(t, p).Cause)
	require.Empty(t, processesOf(t, keeperPid(t, b.dir)))
	require.Zero(t, endWith(t, b).Killed, "the sweep finds nobody after the keeper")
}

// endWith stops a bench and sweeps its directory.
func endWith(t *testing.T, b *bench) executor.Leftovers {
	t.Helper()
	require.NoError(t, b.stop())
	return endLeftovers(t, b.dir)
}

// O07 (iii).
func TestBackgroundChildrenLeaveNoZombieAndNoProcess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.True(t, b.run(b.spec("warm", "true")).Success())
	k := keeperPid(t, b.dir)
	const width = 8
	slots := make(chan struct{}, width)
	ends := make(chan string, *daemons)
	for i := range *daemons {
		slots <- struct{}{}
		s := b.spec(fmt.Sprintf("d%d", i), "setsid sleep 1000 & exit 0")
		s.Grace = time.Hour
		p := b.start(s)
		go func() {
			<-p.Done()
			r, err := p.Wait(t.Context())
			ends <- fmt.Sprint(r, err)
			<-slots
		}()
	}
	for range *daemons {
		require.Equal(t, "exit code 0 <nil>", <-ends)
	}
	require.Empty(t, processesOf(t, k))
	require.Zero(t, endWith(t, b).Killed)
}

func TestFenceStrikesWithoutTermAndExtendMovesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	s := b.spec("fenced", `trap 'echo term' TERM; echo $$ > news; while :; do sleep 0.02; done`)
	s.Fence = executor.Now().Add(30 * time.Second)
	s.Grace = time.Hour
	free := b.spec("free", `echo $$ > news; sleep 1000`)
	p, q := b.start(s), b.start(free)
	n.pid()
	n.pid()
	require.NoError(t, b.Extend(t.Context(), s.Fence.Add(-time.Hour)), "an earlier deadline changes nothing")
	until := executor.Now().Add(31 * time.Second)
	require.NoError(t, b.Extend(t.Context(), until))
	short := b.spec("short", `trap 'echo term' TERM; echo $$ > news; while :; do sleep 0.02; done`)
	short.Fence = executor.Now().Add(time.Second)
	short.Grace = time.Hour
	u := b.start(short)
	pid := n.pid()
	r := wait(t, u)
	requireDead(t, pid)
	require.Equal(t, executor.CauseFenced, r.Cause)
	require.Equal(t, 9, r.Signal)
	require.GreaterOrEqual(t, r.Ended, short.Fence)
	require.Empty(t, logOf(t, short.Log))
	require.ElementsMatch(t, []string{"fenced", "free"}, b.Live())
	require.NoError(t, b.KillAll(t.Context(), 0))
	wait(t, p)
	wait(t, q)
}

func TestExtendedFenceStrikesLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.spec("later", `while :; do sleep 0.02; done`)
	s.Fence = executor.Now().Add(5 * time.Second)
	p := b.start(s)
	until := s.Fence.Add(time.Second)
	<-p.Started()
	require.NoError(t, b.Extend(t.Context(), until))
	r := wait(t, p)
	require.Equal(t, executor.CauseFenced, r.Cause)
	require.GreaterOrEqual(t, r.Ended, until)
}

func TestFenceTermWarnsAheadOfTheFence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.spec("warned", `trap 'echo term; exit 5' TERM; while :; do sleep 0.02; done`)
	s.Fence, s.FenceTerm = executor.Now().Add(60*time.Second), 58*time.Second
	r := b.run(s)
	require.Equal(t, executor.CauseFenced, r.Cause)
	require.Equal(t, 5, r.ExitCode)
	require.Less(t, r.Ended, s.Fence)
	require.Contains(t, logOf(t, s.Log), "term\n")
}
