package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// summarise runs a stream, one event per line, in a short form: action,
// package, test, output, parted by bars.
func summarise(t *testing.T, lines ...string) (string, bool) {
	t.Helper()
	var in strings.Builder
	for _, l := range lines {
		f := append(strings.Split(l, "|"), "", "", "")
		in.WriteString(`{"Action":"` + f[0] + `","Package":"` + f[1] + `","Test":"` + f[2] + `","Output":"` + f[3] + `"}` + "\n")
	}
	var out bytes.Buffer
	s := newSummary(&out)
	require.NoError(t, s.read(strings.NewReader(in.String())))
	ok := s.close()
	return out.String(), ok
}

func TestPassesAreCountedThroughSubtestsAndTheirOutputIsDropped(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t,
		"run|p|TestA", "run|p|TestA/one", "output|p|TestA/one|noise\\n", "pass|p|TestA/one",
		"run|p|TestA/two", "pass|p|TestA/two", "pass|p|TestA",
		"run|p|TestB", "pass|p|TestB",
		"output|p||ok  \\tp\\t0.1s\\n", "pass|p|",
	)
	require.True(t, ok)
	require.Equal(t, "ok  \tp\t0.1s\n3 passed, 0 failed, 0 skipped\n", got)
}

func TestFailureShowsItsOutputAndCountsOnce(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t,
		"run|p|TestA", "run|p|TestA/one", "output|p|TestA/one|why it failed\\n", "fail|p|TestA/one", "fail|p|TestA",
		"output|p||FAIL\\tp\\t0.1s\\n", "fail|p|",
	)
	require.False(t, ok)
	require.Equal(t, "why it failed\nFAIL\tp\t0.1s\nfailed:\n  p TestA/one\n0 passed, 1 failed, 0 skipped\n", got)
}

func TestFailureOfAParentAloneIsCounted(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t,
		"run|p|TestA", "run|p|TestA/one", "pass|p|TestA/one", "fail|p|TestA", "fail|p|",
	)
	require.False(t, ok)
	require.Contains(t, got, "1 passed, 1 failed, 0 skipped\n")
}

func TestSkippedTestIsNamedWithItsReason(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t,
		"run|p|TestA", "pass|p|TestA",
		"run|p|TestB", "output|p|TestB|    b_test.go:7: haproxy is not installed\\n", "output|p|TestB|--- SKIP: TestB (0.00s)\\n", "skip|p|TestB",
		"pass|p|",
	)
	require.True(t, ok)
	require.Equal(t, "skipped:\n  p TestB: haproxy is not installed\n1 passed, 0 failed, 1 skipped\n", got)
}

func TestPackageThatFailsWithoutAFailedTestCountsAsOne(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t,
		"run|p|TestA", "pass|p|TestA", "output|p||goleak: leaked\\n", "fail|p|",
	)
	require.False(t, ok)
	require.Equal(t, "goleak: leaked\nfailed:\n  p\n1 passed, 1 failed, 0 skipped\n", got)
}

func TestBuildFailureShowsTheCompilersWords(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newSummary(&out)
	require.NoError(t, s.read(strings.NewReader(`
{"ImportPath":"p [p.test]","Action":"build-output","Output":"a.go:1: undefined: x\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}
`[1:])))
	require.False(t, s.close())
	require.Equal(t, "a.go:1: undefined: x\nFAIL\tp [build failed]\nfailed:\n  p\n0 passed, 1 failed, 0 skipped\n", out.String())
}

func TestProcessThatDiesFailsTheTestsItWasRunning(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t,
		"run|p|TestA", "output|p|TestA|=== RUN   TestA\\n", "output|p|TestA|panic: I5\\n",
		"run|p|TestB", "output|p|TestB|=== RUN   TestB\\n", "fail|p|",
	)
	require.False(t, ok)
	require.Equal(t, "panic: I5\nfailed:\n  p TestA\n  p TestB\n0 passed, 2 failed, 0 skipped\n", got)
}

func TestStreamThatBreaksOffIsAFailure(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t, "run|p|TestA", "pass|p|TestA")
	require.False(t, ok)
	require.Contains(t, got, "1 passed, 1 failed, 0 skipped\n")
}

func TestNothingRunIsAFailure(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t, "output|p||ok  \\tp\\t0.1s [no tests to run]\\n", "pass|p|")
	require.False(t, ok)
	require.Contains(t, got, "no test ran")
	require.Contains(t, got, "0 passed, 0 failed, 0 skipped\n")
}

func TestRepeatedTestCountsEveryRound(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t, "run|p|TestA", "pass|p|TestA", "run|p|TestA", "fail|p|TestA", "fail|p|")
	require.False(t, ok)
	require.Contains(t, got, "1 passed, 1 failed, 0 skipped\n")
}

func TestLineThatIsNoEventPassesThrough(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newSummary(&out)
	require.NoError(t, s.read(strings.NewReader("test: unit: go test\n")))
	require.Equal(t, "test: unit: go test\n", out.String())
}
