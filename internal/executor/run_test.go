package executor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/executor"
)

func TestExitCodeAndSignalAreToldAsTheyWere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.run(b.spec("ok", "echo out; echo err >&2"))
	require.True(t, r.Success(), r.String())
	require.Equal(t, "out\nerr\n", logOf(t, filepath.Join(b.work, "ok.log")))
	require.EqualValues(t, 8, r.LogBytes)
	require.Positive(t, r.Ended.Sub(r.Started))
	require.False(t, r.EndedAt.Before(r.StartedAt))

	r = b.run(b.spec("seven", "exit 7"))
	require.Equal(t, 7, r.ExitCode)
	require.False(t, r.Success())

	r = b.run(b.spec("signal", "kill -9 $$"))
	require.Equal(t, 9, r.Signal)
	require.Empty(t, r.Cause)
}

func TestScriptStopsAtTheFirstErrorAndAtUnsetVariables(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, 1, b.run(b.spec("e", "false; exit 0")).ExitCode)
	require.NotZero(t, b.run(b.spec("u", "echo $nobody_set_this; exit 0")).ExitCode)
}

func TestWhatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plain := filepath.Join(b.work, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("x"), 0o644))
	noInterpreter := filepath.Join(b.work, "script")
	require.NoError(t, os.WriteFile(noInterpreter, []byte("#!/nowhere/sh\n"), 0o755))
	binary := filepath.Join(b.work, "binary")
	require.NoError(t, os.WriteFile(binary, []byte("\x00\x01"), 0o755))
	for i, c := range []struct {
		change func(*executor.Spec)
		want   string
	}{
		{func(s *executor.Spec) { s.Argv = []string{"no-such-command"} }, `command "no-such-command" not found in PATH`},
		{func(s *executor.Spec) { s.Argv = []string{"/no/such"} }, `command "/no/such" does not exist`},
		{func(s *executor.Spec) { s.Argv = []string{plain} }, "may not be executed"},
		{func(s *executor.Spec) { s.Argv = []string{b.work} }, "is a directory"},
		{func(s *executor.Spec) { s.Argv = []string{noInterpreter} }, "its interpreter does not exist"},
		{func(s *executor.Spec) { s.Argv = []string{binary} }, "not a program"},
		{func(s *executor.Spec) { s.Argv = []string{"true"}; s.Cwd = "/no/such" }, `working directory "/no/such" does not exist`},
		{func(s *executor.Spec) { s.Argv = []string{"true"}; s.Cwd = plain }, "is not a directory"},
		{func(s *executor.Spec) { s.Argv = []string{"true", strings.Repeat("x", 1_200_000)} }, "too long"},
		{func(s *executor.Spec) { s.Argv = []string{"true", strings.Repeat("x", 9<<20)} }, "bytes, at most"},
		{func(s *executor.Spec) { s.Argv = []string{"true"}; s.Log = plain + "/log" }, "open the log"},
		{func(s *executor.Spec) { s.Argv = []string{"true"}; s.Fence = 1 }, "fence"},
	} {
		s := b.spec("t"+strconv.Itoa(i), "")
		c.change(&s)
		r := b.run(s)
		require.Contains(t, r.StartError, c.want)
		require.False(t, r.Success())
		require.Zero(t, r.Started)
	}
	require.True(t, b.run(b.spec("after", "true")).Success(), "the keeper goes on")
}

func TestBadSpecIsRefusedBeforeAnythingHappens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, change := range []func(*executor.Spec){
		func(s *executor.Spec) { s.Token = "" },
		func(s *executor.Spec) { s.Token = "../x" },
		func(s *executor.Spec) { s.Argv = []string{"true"} },
		func(s *executor.Spec) { s.Script = "" },
		func(s *executor.Spec) { s.Cwd = "relative" },
		func(s *executor.Spec) { s.Log = "relative" },
		func(s *executor.Spec) { s.Script = "true\x00" },
	} {
		s := b.spec("x", "true")
		change(&s)
		_, err := b.Start(t.Context(), s)
		require.Error(t, err)
	}
	require.Empty(t, b.Live())
	_, err := executor.New(executor.Config{StateDir: "relative"})
	require.Error(t, err)
}

func TestTokenIsNeverStartedTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.spec("once", "echo begin >> ledger")
	require.True(t, b.run(s).Success())
	_, err := b.Start(t.Context(), s)
	require.ErrorIs(t, err, executor.ErrStartedBefore)
	require.NoError(t, b.Forget("once"))
	require.NoError(t, b.Forget("once"))
	ledger, err := os.ReadFile(filepath.Join(b.work, "ledger"))
	require.NoError(t, err)
	require.Equal(t, "begin\n", string(ledger))
}

func TestAttemptSeesItsOwnVariablesAndNoneOfTheAgent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.spec("env", `cat "$WRIT_INPUTS"; echo '{"n":1}' > "$WRIT_RESULT"; env; read x || echo empty-stdin`)
	s.Env = executor.Environ([]string{"LD_PRELOAD=/evil.so", "SECRET=1", "PATH=/usr/bin:/bin"}, map[string]string{"A": "b"}, nil)
	s.Env = append(s.Env, "WRIT_TOKEN=forged")
	s.Inputs = []byte(`{"up":"/x"}`)
	r := b.run(s)
	require.True(t, r.Success(), r.String())
	out := logOf(t, s.Log)
	require.Contains(t, out, `{"up":"/x"}`)
	require.Contains(t, out, "WRIT_TOKEN=env\n")
	require.Contains(t, out, "A=b\n")
	require.Contains(t, out, "empty-stdin\n")
	require.NotContains(t, out, "forged")
	require.NotContains(t, out, "LD_PRELOAD")
	require.NotContains(t, out, "SECRET")
	got, err := executor.ReadResult(executor.ResultPath(b.dir, "env"))
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(got))
}

func TestAHundredAttemptsRunSideBySide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	gate := filepath.Join(b.work, "gate")
	const width = 100
	all := make([]*executor.Process, width)
	for i := range all {
		all[i] = b.start(b.spec(fmt.Sprintf("p%d", i), "echo here > news; while [ ! -e gate ]; do sleep 0.1; done; exit "+strconv.Itoa(i)))
	}
	for range width {
		require.Equal(t, "here", n.next())
	}
	require.Len(t, b.Live(), width)
	require.NoError(t, os.WriteFile(gate, nil, 0o644))
	for i, p := range all {
		r := wait(t, p)
		require.Equal(t, i, r.ExitCode)
		require.Empty(t, r.Cause)
	}
	require.Empty(t, b.Live())
}

func TestRunEndsEverythingWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	p := b.start(b.spec("long", "trap '' TERM; echo $$ > news; while :; do sleep 100; done"))
	pid := n.pid()
	k := keeperPid(t, b.dir)
	require.NoError(t, b.stop())
	requireDead(t, pid, k)
	r := wait(t, p)
	require.False(t, r.Success())
	_, err := b.Start(t.Context(), b.spec("late", "true"))
	require.ErrorIs(t, err, executor.ErrStopped)
	require.ErrorIs(t, b.Kill(t.Context(), "long", 0), executor.ErrStopped)
}

func TestStartGivesUpWithItsContextWhereNoKeeperComes(t *testing.T) {
	t.Parallel()
	x, err := executor.New(executor.Config{StateDir: t.TempDir()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = x.Start(ctx, executor.Spec{Token: "x", Script: "true"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestProgramThatIsNoKeeperEndsRunWithAnError(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"/bin/true", "/bin/cat", "/no/such/program"} {
		x, err := executor.New(executor.Config{StateDir: t.TempDir(), Executable: program})
		require.NoError(t, err)
		require.ErrorContains(t, x.Run(t.Context()), "start the keeper", program)
	}
}
