package specfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/specfile"
)

func TestO08TheSchemaSaysWhatEachRuleDoesWhenAllWereSkipped(t *testing.T) {
	t.Parallel()
	text := string(specfile.Schema())
	for rule, says := range map[spec.TriggerRule]string{
		spec.NoneFailed:              "none_failed: all ended and none failed, all skipped too",
		spec.NoneFailedMinOneSuccess: "all skipped: skipped",
		spec.AllDone:                 "all_done: all ended, however they ended, all skipped too",
	} {
		require.Contains(t, text, says, string(rule))
	}
}

func TestO09AnUnknownRuleIsNoHarmlessOne(t *testing.T) {
	t.Parallel()
	src := "name: o09\ntasks:\n  a: {run: x}\n  b: {run: x, needs: [a], trigger_rule: none_faild}\n"
	require.Contains(t, refuse(t, src)[0], `w.yaml:4:41: tasks.b.trigger_rule: "none_faild" is no trigger rule, expected one of "all_success", `)
	require.Contains(t, refuse(t, src)[0], "(hint: did you mean none_failed?)")
}

func TestO10ACleanUpReadsBack(t *testing.T) {
	t.Parallel()
	w := decode(t, "name: o10\ntasks:\n  a: {run: x}\n  z: {run: x, needs: [a], trigger_rule: all_done}\n")
	require.Equal(t, spec.AllDone, w.Tasks[1].Rule())
	require.Equal(t, []string{"w.yaml:3:29: tasks.z.trigger_rule: all_done asks about upstream tasks, and the task needs none; expected all_success or always (hint: name needs, or leave the rule out)"},
		refuse(t, "name: o10\ntasks:\n  z: {run: x, trigger_rule: all_done}\n"))
}

func TestO21LargeFilesAreTakenOrRefusedWithSizeAndLimit(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("name: wide\ntasks:\n  root: {run: x}\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "  t%05d:\n    run: x\n    needs: [root]\n    env: {A: %s}\n", i, strings.Repeat("x", 200))
	}
	require.Len(t, decode(t, b.String()).Tasks, 10_001)

	require.Equal(t, []string{"w.yaml:3:12: tasks.a.run: is 1200000 bytes long, at most 131071 are allowed"},
		refuse(t, "name: long\ntasks:\n  a: {run: "+strings.Repeat("x", 1_200_000)+"}\n"))
	require.Equal(t, []string{"w.yaml:3:23: tasks.a.command[1]: is 1200000 bytes long, at most 131071 are allowed"},
		refuse(t, "name: long\ntasks:\n  a: {command: [echo, "+strings.Repeat("x", 1_200_000)+"]}\n"))
	require.Equal(t, []string{"w.yaml: is 8388609 bytes long, at most 8388608 are allowed (hint: split it into several workflows)"},
		refuse(t, "#"+strings.Repeat("x", specfile.MaxBytes)))

	// A file of three megabytes is well as long as no task is too large.
	b.Reset()
	b.WriteString("name: heavy\ntasks:\n")
	for i := range 30 {
		fmt.Fprintf(&b, "  t%d: {run: %s}\n", i, strings.Repeat("x", 100_000))
	}
	require.Len(t, decode(t, b.String()).Tasks, 30)
}

func TestO28CyclesAreNamedAndDeepChainsTaken(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("name: chain\ntasks:\n  t0: {run: x}\n")
	for i := 1; i < 20_000; i++ {
		fmt.Fprintf(&b, "  t%d: {run: x, needs: [t%d]}\n", i, i-1)
	}
	require.Len(t, decode(t, b.String()).Tasks, 20_000)

	ring := strings.Replace(b.String(), "t0: {run: x}", "t0: {run: x, needs: [t19999]}", 1)
	said := refuse(t, ring)
	require.Len(t, said, 1)
	require.True(t, strings.HasPrefix(said[0], "w.yaml:4:24: tasks.t1.needs[0]: closes a cycle of 20000 tasks: t0 → t19999 → "), said[0][:200])
	require.Equal(t, 20_000, strings.Count(said[0], " → t"))
}

func TestO29NoValueIsSpelledOtherwiseThanInTheFile(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		"no", "yes", "on", "1.10", "01234", "12:30", "12345678901234567890", "2026-01-02", "~", "1e3", "null", "True", "y", "N",
		"0x1f", "0o17", "0b1", "1_000", "+1", "-0", ".5", "1.", ".inf", "-.Inf", ".NaN", "1:30:00", "2026-1-2", "2026-01-02 03:04:05", "",
	} {
		said := refuse(t, "name: o29\ntasks:\n  a:\n    run: x\n    env:\n      A: "+word+"\n")
		require.Len(t, said, 1, word)
		require.Contains(t, said[0], "tasks.a.env.A: ", word)
		quoted := decode(t, fmt.Sprintf("name: o29\ntasks:\n  a:\n    run: x\n    env:\n      A: %q\n", word))
		require.Equal(t, word, quoted.Tasks[0].Env["A"])
	}
	for _, word := range []string{"Norway", "nope", "0", "8080", "-1", "1.2.3", "127.0.0.1:80", "v1.10", "12:30pm", "2026-01", "-x", "a no", "e3", "ñ"} {
		w := decode(t, "name: o29\ntasks:\n  a:\n    run: x\n    env:\n      A: "+word+"\n")
		require.Equal(t, word, w.Tasks[0].Env["A"])
	}
}

func TestO29NamesThatNeedEscapingAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"报表", "ñ_ö", "a b", "x+y&z=1?#", "50%", "🚀", "\u200fx", "team/daily", "e\u0301", "\u00e9", "A", "-a", "_a", strings.Repeat("n", 41)} {
		said := refuse(t, fmt.Sprintf("name: %q\ntasks: {a: {run: x}}\n", name))
		require.True(t, strings.HasPrefix(said[0], "w.yaml:1:7: name: "), said[0])
	}
}
