package etcd_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/etcd"
)

func version(t *testing.T, text string) etcd.Version {
	t.Helper()
	v, err := etcd.ParseVersion(text)
	require.NoError(t, err)
	return v
}

func TestVersionIsReadAndWrittenAsEtcdDoes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"3.5.28", "3.6.0-rc.0", "3.7.3", "10.0.12"} {
		require.Equal(t, text, version(t, text).String())
	}
	require.Equal(t, version(t, "3.7.3"), version(t, "3.7.3+git"))
	for _, text := range []string{"", "3", "3.7", "3.7.x", "v3.7.3", "3.7.3.1", "3.-7.3", "3.7.3-", "3.7.99999999999"} {
		_, err := etcd.ParseVersion(text)
		require.ErrorContains(t, err, "expected three numbers", text)
	}
}

func TestVersionsAreOrderedByAge(t *testing.T) {
	t.Parallel()
	ordered := []string{
		"2.9.9", "3.4.40", "3.5.28", "3.6.0-alpha", "3.6.0-alpha.1", "3.6.0-rc.2", "3.6.0-rc.10",
		"3.6.0", "3.6.9", "3.6.14", "3.7.0-0", "3.7.0-rc.0", "3.7.0", "4.0.0",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			switch order := version(t, a).Compare(version(t, b)); {
			case i < j:
				require.Negative(t, order, "%s %s", a, b)
			case i > j:
				require.Positive(t, order, "%s %s", a, b)
			default:
				require.Zero(t, order, "%s %s", a, b)
			}
		}
	}
}

func TestVersionsBelowTheFloorAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"2.3.8", "3.4.40", "3.5.0", "3.5.27", "3.6.0", "3.6.8", "3.7.0-rc.0"} {
		err := version(t, text).Supported()
		require.ErrorIs(t, err, etcd.ErrTooOld, text)
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, "3.5.28, 3.6.9, 3.7.0")
	}
	for _, text := range []string{"3.5.28", "3.5.40", "3.6.9", "3.6.14", "3.7.0", "3.7.3", "3.8.0", "4.0.0"} {
		require.NoError(t, version(t, text).Supported(), text)
	}
}

// defectEdges states, for every defect, the last bad and the first good version
// of each release line that the fixes name, and lines wholly bad or good.
var defectEdges = map[string]struct{ bad, good []string }{
	"stale-reads-after-pause":           {[]string{"3.4.40", "3.5.27", "3.6.8", "3.7.0-rc.0"}, []string{"3.5.28", "3.6.9", "3.7.0"}},
	"stale-reads-on-leader-change":      {[]string{"3.4.40", "3.5.27", "3.6.8", "3.7.0-rc.0"}, []string{"3.5.28", "3.6.9", "3.7.0"}},
	"renewal-of-revoked-lease":          {[]string{"3.5.22", "3.6.4"}, []string{"3.5.23", "3.6.5", "3.7.0"}},
	"corruption-by-snapshot-and-defrag": {[]string{"3.5.22", "3.6.4"}, []string{"3.5.23", "3.6.5", "3.7.0"}},
	"old-events-on-future-watch":        {[]string{"3.5.21", "3.6.1"}, []string{"3.5.22", "3.6.2", "3.7.0"}},
	"missing-delete-event":              {[]string{"3.4.40", "3.5.17"}, []string{"3.5.18", "3.6.0"}},
	"missing-event-after-compaction":    {[]string{"3.4.40", "3.5.15"}, []string{"3.5.16", "3.6.0"}},
	"lost-watch-events":                 {[]string{"3.4.40", "3.5.12"}, []string{"3.5.13", "3.6.0"}},
	"revision-goes-back":                {[]string{"3.4.40", "3.5.13"}, []string{"3.5.14", "3.6.0"}},
	"old-leader-revokes-leases":         {[]string{"3.4.40", "3.5.12"}, []string{"3.5.13", "3.6.0"}},
	"inconsistent-revision-after-crash": {[]string{"3.4.40", "3.5.2"}, []string{"3.5.3", "3.6.0"}},
	"lost-write-of-single-member":       {[]string{"3.4.40", "3.5.4"}, []string{"3.5.5", "3.6.0"}},
	"diverging-revisioned-range":        {[]string{"3.5.40", "3.6.99", "3.7.0-alpha.1"}, []string{"3.7.0-rc.0", "3.7.0", "3.8.0"}},
	"nested-txn-escapes-quota":          {[]string{"3.5.40", "3.6.13", "3.7.0"}, []string{"3.6.14", "3.7.1", "3.8.0"}},
	"member-update-promotes-learner":    {[]string{"3.5.40", "3.6.11"}, []string{"3.6.12", "3.7.0"}},
	"no-member-add-with-one-down":       {[]string{"3.5.40", "3.6.10"}, []string{"3.6.11", "3.7.0"}},
	"range-stream-aliasing":             {[]string{"3.7.0", "3.7.1", "3.7.2"}, []string{"3.6.14", "3.7.3", "3.8.0"}},
	"not-recommended":                   {[]string{"3.5.40", "3.6.13", "3.7.2"}, []string{"3.6.14", "3.7.3", "3.8.0"}},
	"panic-on-two-snapshots":            {[]string{"3.5.28", "3.6.14", "3.7.3", "3.9.0"}, nil},
}

func TestEveryDefectIsNamedForExactlyTheVersionsThatHaveIt(t *testing.T) {
	t.Parallel()
	named := make(map[string]bool)
	has := func(text, name string) bool {
		return slices.ContainsFunc(etcd.Warnings(version(t, text)), func(w etcd.Warning) bool {
			named[w.Name] = true
			require.NotEmpty(t, w.Text)
			require.Equal(t, w.Open, w.FixedIn == "")
			return w.Name == name
		})
	}
	for name, edges := range defectEdges {
		for _, text := range edges.bad {
			require.True(t, has(text, name), "%s has %s", text, name)
		}
		for _, text := range edges.good {
			require.False(t, has(text, name), "%s has no %s", text, name)
		}
	}
	for name := range named {
		require.Contains(t, defectEdges, name, "a defect without edges in this test")
	}
	require.Len(t, named, len(defectEdges))
}

func TestRecommendedVersionsHaveNothingThatAnUpgradeWouldRemove(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"3.7.3", "3.7.9", "3.8.0"} {
		for _, w := range etcd.Warnings(version(t, text)) {
			require.True(t, w.Open, "%s %s", text, w.Name)
		}
	}
}
