package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/audit"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

func TestTheRelationOfAttemptsIsThatOfTheRecords(t *testing.T) {
	t.Parallel()
	var want []string
	for _, s := range record.AttemptTable() {
		for _, k := range s.Kinds {
			want = append(want, fmt.Sprintf("%s -> %s by %s of %s", s.From, s.To, s.By, k))
		}
	}
	slices.Sort(want)
	require.Equal(t, slices.Compact(want), audit.Relation())
}

func TestTheRelationOfRunsIsThatOfTheRecords(t *testing.T) {
	t.Parallel()
	var want []string
	for _, s := range record.RunTable() {
		want = append(want, fmt.Sprintf("%q %q -> %q %q by %s", s.From, s.FromPhase, s.To, s.ToPhase, s.By))
	}
	slices.Sort(want)
	require.Equal(t, want, audit.RunRelation())
}

func TestTheTriggerRulesAgreeWithThoseOfSpec(t *testing.T) {
	t.Parallel()
	words := map[spec.Decision]string{
		spec.Undecided: "wait", spec.Run: "run", spec.Skip: "end skipped", spec.UpstreamFail: "end upstream_failed",
	}
	for _, rule := range append(spec.TriggerRules(), "") {
		for n := range 5 * 5 * 5 * 5 {
			tally := spec.Tally{Open: n % 5, Success: n / 5 % 5, Bad: n / 25 % 5, Skipped: n / 125}
			if tally.Total() == 0 && rule != spec.AllSuccess && rule != spec.Always && rule != "" {
				continue // Validate refuses it
			}
			got := audit.Judge(rule, tally.Success > 0, tally.Bad > 0, tally.Skipped > 0, tally.Open)
			require.Equal(t, words[rule.Decide(tally)], got, "%s of %+v", rule, tally)
		}
	}
}

func TestTheManualNamesTheTriggerRulesInTheirOrder(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "manual", "states.md"))
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "## Trigger rules")
	require.True(t, ok)
	table, _, ok = strings.Cut(table, "\n## ")
	require.True(t, ok)
	var named []spec.TriggerRule
	for line := range strings.Lines(table) {
		if cell, found := strings.CutPrefix(line, "| `"); found {
			name, _, _ := strings.Cut(cell, "`")
			named = append(named, spec.TriggerRule(name))
		}
	}
	require.Equal(t, spec.TriggerRules(), named)
}
