package executor_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/executor"
)

// O26 a and b.
func TestFiftyMegabytesKeepHeadAndTailAndTheExitCode(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 7} {
		b := setup(t)
		require.True(t, b.run(b.spec("warm", "true")).Success())
		s := b.spec("loud", fmt.Sprintf(`echo first; head -c 50000000 /dev/zero; echo last; exit %d`, code))
		r := b.run(s)
		require.Equal(t, code, r.ExitCode)
		require.EqualValues(t, 50_000_011, r.LogBytes)
		require.Empty(t, r.LogError)
		require.Less(t, peakMemory(t, keeperPid(t, b.dir)), 64<<10, "KiB")
		var size int64
		files, err := filepath.Glob(s.Log + "*")
		require.NoError(t, err)
		for _, f := range files {
			fi, err := os.Stat(f)
			require.NoError(t, err)
			size += fi.Size()
		}
		require.Less(t, size, int64(executor.DefaultHead+2*executor.DefaultTail+1000))
		var at, leftOut int64
		var data []byte
		require.NoError(t, executor.FollowLog(t.Context(), s.Log, 0, func(c executor.Chunk) error {
			require.Equal(t, at+c.LeftOut, c.Offset)
			at, leftOut = c.Next, leftOut+c.LeftOut
			data = append(data, c.Data...)
			return nil
		}))
		require.EqualValues(t, 50_000_011, at)
		require.EqualValues(t, 50_000_011, leftOut+int64(len(data)))
		require.True(t, bytes.HasPrefix(data, []byte("first\n")))
		require.True(t, bytes.HasSuffix(data, []byte("last\n")))
		require.GreaterOrEqual(t, len(data), executor.DefaultHead+executor.DefaultTail)
		require.NoError(t, executor.RemoveLog(s.Log))
		_, err = executor.ReadLog(s.Log, 0, 1)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
}

// peakMemory is the peak resident size of a process in KiB.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	require.True(t, ok)
	var kib int
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	return kib
}

func TestLogIsReadWhileItIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := newNews(t, b.work)
	gate := newGate(t, b.work)
	s := b.spec("live", `echo one; read x < go; echo two; echo $$ > news`)
	p := b.start(s)
	<-p.Started()
	var got strings.Builder
	require.NoError(t, executor.FollowLog(t.Context(), s.Log, 0, func(c executor.Chunk) error {
		got.Write(c.Data)
		if got.String() == "one\n" {
			require.False(t, c.Complete)
			gate()
		}
		return nil
	}))
	n.pid()
	require.Equal(t, "one\ntwo\n", got.String())
	require.True(t, wait(t, p).Success())
}

func TestSmallBoundsKeepTheLastBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.spec("small", `i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done`)
	s.Head, s.Tail = 100, 50
	require.True(t, b.run(s).Success())
	var whole strings.Builder
	for i := range 2000 {
		fmt.Fprintln(&whole, i)
	}
	got := logOf(t, s.Log)
	require.True(t, strings.HasPrefix(got, whole.String()[:100]))
	head, tail, ok := strings.Cut(got[100:], " bytes left out]\n")
	require.True(t, ok)
	require.Contains(t, head, "[writ: ")
	require.GreaterOrEqual(t, len(tail), 50)
	require.LessOrEqual(t, len(tail), 100)
	require.True(t, strings.HasSuffix(whole.String(), tail))
	c, err := executor.ReadLog(s.Log, int64(whole.Len())-5, 100)
	require.NoError(t, err)
	require.Equal(t, "1999\n", string(c.Data))
	require.True(t, c.Complete)
}
