package executor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/writ-sched/writ/internal/executor"
	"github.com/writ-sched/writ/internal/keeper"
)

// awaitEnd waits until a process that is not ours has ended.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	require.NoError(t, err)
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
	for err == unix.EINTR {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
	}
	require.NoError(t, err)
	require.Equalf(t, 1, n, "process %d lives", pid)
}

func specIn(dir, token, script string) executor.Spec {
	return executor.Spec{
		Token: token, Ref: "r.1/" + token + "/1", Script: script, Cwd: dir, Grace: time.Hour,
		Env: executor.Environ(os.Environ(), nil, nil), Log: filepath.Join(dir, token+".log"),
	}
}

// O07 (i), O26 d.
func TestKilledAgentTakesEveryProcessWithIt(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	n := newNews(t, work)
	a := newAgent(t, dir)
	require.Contains(t, a.start(specIn(work, "done", "exit 6")), "started")
	require.Equal(t, "ended done exit code 6", a.line())
	require.Contains(t, a.start(specIn(work, "tree", `echo line; `+tree(`trap "" TERM;`))), "started")
	var pids []int
	for range treeSize {
		pids = append(pids, n.pid())
	}
	pids = append(pids, keeperPid(t, dir))
	a.signal(syscall.SIGKILL)
	for _, pid := range pids {
		awaitEnd(t, pid)
	}
	left := endLeftovers(t, dir)
	require.Zero(t, left.Killed, "the keeper left nobody")
	require.False(t, left.Rebooted)
	require.Len(t, left.Attempts, 2)
	byToken := map[string]executor.Leftover{}
	for _, l := range left.Attempts {
		byToken[l.Token] = l
	}
	require.Equal(t, 6, byToken["done"].Result.ExitCode)
	require.Equal(t, "r.1/tree/1", byToken["tree"].Ref)
	require.Equal(t, executor.CauseAgentGone, byToken["tree"].Result.Cause)
	require.Equal(t, 9, byToken["tree"].Result.Signal)
	require.Contains(t, logOf(t, filepath.Join(work, "tree.log")), "line\n")
	require.Contains(t, endNote(t, filepath.Join(work, "tree.log")), "agent is gone")
	require.NoError(t, executor.Forget(dir, "tree"))
	require.Len(t, endLeftovers(t, dir).Attempts, 1)
}

func TestFenceStrikesWhileTheAgentIsStopped(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	n := newNews(t, work)
	a := newAgent(t, dir)
	s := specIn(work, "fenced", tree(`trap "" TERM;`))
	s.Fence = executor.Now().Add(3 * time.Second)
	require.Contains(t, a.start(s), "started")
	var pids []int
	for range treeSize {
		pids = append(pids, n.pid())
	}
	a.signal(syscall.SIGSTOP)
	for _, pid := range pids {
		awaitEnd(t, pid)
	}
	require.GreaterOrEqual(t, executor.Now(), s.Fence)
	a.signal(syscall.SIGCONT)
	require.Equal(t, "ended fenced ended: fence deadline", a.line())
}

func TestStoppedAgentBlocksNoTaskThatWrites(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	n := newNews(t, work)
	a := newAgent(t, dir)
	gate := newGate(t, work)
	require.Contains(t, a.start(specIn(work, "loud", `echo $$ > news; read x < go; head -c 5000000 /dev/zero; echo wrote > news`)), "started")
	n.pid()
	a.signal(syscall.SIGSTOP)
	gate()
	require.Equal(t, "wrote", n.next())
	a.signal(syscall.SIGCONT)
	require.Equal(t, "ended loud exit code 0", a.line())
}

// O12: the parent that a task sees is the keeper.
func TestKilledKeeperLosesItsAttemptsAndIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	p := b.start(b.spec("neighbour", "echo line; "+tree(`trap "" TERM;`)))
	var pids []int
	for range treeSize {
		pids = append(pids, n.pid())
	}
	pill := b.start(b.spec("pill", "kill -9 $PPID; sleep 1000"))
	r := wait(t, p)
	require.True(t, r.Lost, r.String())
	requireDead(t, pids...)
	require.True(t, wait(t, pill).Lost)
	require.Contains(t, endNote(t, filepath.Join(b.work, "neighbour.log")), "keeper died")
	require.True(t, b.run(b.spec("next", "true")).Success(), "a new keeper serves")
}

func TestKeeperThatIsStoppedIsKilledAndItsAttemptsAreLost(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *executor.Config) { c.PingEvery, c.PingsMissed = 50*time.Millisecond, 10 })
	n := newNews(t, b.work)
	p := b.start(b.spec("tree", tree("")))
	var pids []int
	for range treeSize {
		pids = append(pids, n.pid())
	}
	require.NoError(t, unix.Kill(keeperPid(t, b.dir), unix.SIGSTOP))
	require.True(t, wait(t, p).Lost)
	requireDead(t, pids...)
}

func TestKeeperTakesNoSignalOfATerminalOrAServiceManager(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	p := b.start(b.spec("t", "echo $$ > news; kill -TERM $$; sleep 1000"))
	k := keeperPid(t, b.dir)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGPIPE, unix.SIGTSTP} {
		require.NoError(t, unix.Kill(k, sig))
	}
	n.pid()
	require.Equal(t, 15, wait(t, p).Signal, "and its tasks take them as usual")
	require.True(t, b.run(b.spec("after", "true")).Success())
	require.Equal(t, k, keeperPid(t, b.dir), "the same keeper")
}

// The keeper is killed together with its agent, so only marks are left.
func TestLeftoversOfAKilledKeeperAreFoundAndEnded(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	n := newNews(t, work)
	a := newAgent(t, dir)
	require.Contains(t, a.start(specIn(work, "tree", tree(`trap "" TERM;`))), "started")
	var pids []int
	for range treeSize {
		pids = append(pids, n.pid())
	}
	a.signal(syscall.SIGSTOP)
	k := keeperPid(t, dir)
	require.NoError(t, unix.Kill(k, unix.SIGKILL))
	a.signal(syscall.SIGKILL)
	left := endLeftovers(t, dir)
	requireDead(t, pids...)
	require.Positive(t, left.Killed)
	require.Len(t, left.Attempts, 1)
	require.True(t, left.Attempts[0].Result.Lost)
	require.Contains(t, endNote(t, filepath.Join(work, "tree.log")), "worker died")
}

func TestSweepOfOneDirectorySparesAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	p := b.start(b.spec("mine", tree("")))
	for range treeSize {
		n.pid()
	}
	require.Zero(t, endLeftovers(t, t.TempDir()).Killed)
	require.Equal(t, []string{"mine"}, b.Live())
	require.NoError(t, b.Kill(t.Context(), "mine", 0))
	wait(t, p)
}

func TestEndLeftoversRefusesToRunInsideAnAttempt(t *testing.T) {
	dir := t.TempDir()
	endLeftovers(t, dir)
	var rec struct{ ID string }
	_, err := keeper.ReadJSON(filepath.Join(dir, "executor.json"), &rec)
	require.NoError(t, err)
	t.Setenv(keeper.EnvState, rec.ID)
	_, err = executor.EndLeftovers(t.Context(), dir)
	require.ErrorIs(t, err, executor.ErrInside)
}

func TestBrokenStateDirectoryIsAnErrorAndNoAttestation(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"{", `{"id":"zz"}`, `{"id":"00000000"}`} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "executor.json"), []byte(content), 0o644))
		_, err := executor.EndLeftovers(t.Context(), dir)
		require.Error(t, err)
	}
}

func TestLeftoversOfAnEarlierBootAreDead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	endLeftovers(t, dir)
	path := filepath.Join(dir, "executor.json")
	rec, err := os.ReadFile(path)
	require.NoError(t, err)
	// This very process under an earlier boot: it is somebody else's pid now.
	old := fmt.Sprintf(`,"keeper":{"pid":%d,"ticks":%d},"boot":"an-earlier-one"}`, os.Getpid(), keeper.StartTicks(os.Getpid()))
	require.NoError(t, os.WriteFile(path, []byte(strings.TrimSuffix(strings.TrimSpace(string(rec)), "}")+old), 0o644))
	attempt := executor.AttemptDir(dir, "tok")
	require.NoError(t, os.MkdirAll(attempt, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(attempt, "attempt.json"), []byte(`{"token":"tok","ref":"r.1/t/1","boot":"an-earlier-one"}`), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(attempt, "pid.json"), []byte(`{"pid":`+strconv.Itoa(os.Getppid())+`,"ticks":1}`), 0o644))
	left := endLeftovers(t, dir)
	require.True(t, left.Rebooted)
	require.Zero(t, left.Killed)
	require.Len(t, left.Attempts, 1)
	require.True(t, left.Attempts[0].Result.Lost)
}
