package keyspace_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store/storetest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func space(t require.TestingT) keyspace.Space {
	s, err := keyspace.New("")
	require.NoError(t, err)
	return s
}

func TestEveryFamilyHasTheKeyAndTheDocumentOfItsGoldenFile(t *testing.T) {
	t.Parallel()
	s := space(t)
	left := map[record.Family]bool{}
	for _, f := range record.Families() {
		left[f] = true
	}
	for _, sample := range storetest.Samples() {
		delete(left, sample.Key.Family)
		value, err := keyspace.EncodeAt(sample.Key, sample.Value)
		require.NoError(t, err)
		path := filepath.Join("testdata", string(sample.Key.Family)+".golden")
		text := s.Key(sample.Key) + "\n" + string(value) + "\n"
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		golden, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(golden), text, "run with -update where this is meant")

		again, err := keyspace.Decode(sample.Key, value)
		require.NoError(t, err)
		require.Equal(t, sample.Value, again)
		key, err := s.Parse(s.Key(sample.Key))
		require.NoError(t, err)
		require.Equal(t, sample.Key, key)
	}
	require.Empty(t, left, "families without a sample")
}

func TestRowOfAFullLifeIsSmall(t *testing.T) {
	t.Parallel()
	row := storetest.SampleAttempt()
	row.Losses, row.Abandons, row.ResultBytes = 2, 1, 65536
	value, err := keyspace.Encode(row)
	require.NoError(t, err)
	require.Less(t, len(value), 1<<10, "a compare loads the value (ETCD.md section 1): %s", value)
}

func TestValueOfAnotherFamilyIsRefused(t *testing.T) {
	t.Parallel()
	_, err := keyspace.EncodeAt(record.RunKey("a.b"), record.Meta{})
	require.ErrorContains(t, err, "expected record.Run, have record.Meta")
	_, err = keyspace.EncodeAt(record.RunKey("a.b"), nil)
	require.Error(t, err)
	_, err = keyspace.Encode(nil)
	require.ErrorContains(t, err, "there is none")
	_, err = keyspace.Decode(record.RunKey("a.b"), []byte("null"))
	require.ErrorContains(t, err, "expected a JSON object")
	_, err = keyspace.Decode(record.RunKey("a.b"), []byte(`{"schema":"x"}`))
	require.ErrorContains(t, err, "decode runs")
}

func TestClusterNamesAreNames(t *testing.T) {
	t.Parallel()
	_, err := keyspace.New("a/b")
	require.ErrorContains(t, err, "cluster")
	s, err := keyspace.New("blue")
	require.NoError(t, err)
	require.Equal(t, "/writ/blue/active/runs/a.b", s.Key(record.RunKey("a.b")))
	require.Equal(t, "/writ/blue/election/", s.ElectionPrefix())
	_, err = s.Parse("/writ/blue2/active/runs/a.b")
	require.ErrorContains(t, err, "does not begin with")
	_, err = keyspace.Space{}.Parse("meta")
	require.Error(t, err, "the zero space has no keys")
}

func TestForeignKeysAreNamed(t *testing.T) {
	t.Parallel()
	s := space(t)
	for path, says := range map[string]string{
		"":                             "no record stands there",
		"strange/x":                    "no record stands there",
		"metadata":                     "no record stands there",
		"active/runs/":                 "a part is missing",
		"active/runs/a.b/c":            "1 parts too many",
		"active/attempts/a.b/t":        "a part is missing",
		"active/attempts/a.b/t/x":      "expected a number",
		"active/attempts/a.b/t/1":      "expected it written as",
		"active/attempts/a.b/t./00001": "expected it written as",
		"active/holders/a%2/00001":     "two hexadecimal digits",
		"active/holders/a%zz/00001":    "two hexadecimal digits",
		"active/holders/a%61/00001":    "expected it written as",
		"election/xyz":                 "expected a lease in hexadecimal",
	} {
		_, err := s.Parse(s.Prefix() + path)
		require.ErrorContains(t, err, says, path)
		require.ErrorContains(t, err, path)
	}
}

func TestNewestHourOfTheIndexStandsFirst(t *testing.T) {
	t.Parallel()
	s := space(t)
	older, newer := record.Key{Family: record.FamilyIndex, Hour: 498_000, Run: "a.b"}, record.Key{Family: record.FamilyIndex, Hour: 498_001, Run: "a.a"}
	require.Less(t, s.Key(newer), s.Key(older))
}

// name draws names of which many are prefixes of each other.
func name(t *rapid.T, label string) string {
	return rapid.StringMatching(`[ab]{1,2}[a.]?`).Draw(t, label) + "x"
}

func number(t *rapid.T, label string) int64 {
	return rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(1, 200_000)).Draw(t, label)
}

// anyKey draws a key of any family with the fields that its family has.
func anyKey(t *rapid.T) record.Key {
	return keyOf(t, rapid.SampledFrom(record.Families()).Draw(t, "family"))
}

func keyOf(t *rapid.T, f record.Family) record.Key {
	run := record.RunID(name(t, "run"))
	ref := record.Ref{TaskRef: record.TaskRef{Run: run, Task: record.TaskID(rapid.SampledFrom([]string{"t", "tt", "t-1"}).Draw(t, "task"))}, N: int(number(t, "n"))}
	if rapid.Bool().Draw(t, "instance") {
		ref.Instance = record.MakeInstance(rapid.IntRange(0, 2).Draw(t, "index"))
	}
	worker, session := record.WorkerName(name(t, "worker")), record.SessionID(name(t, "session"))
	n, part := int(number(t, "number")), int(number(t, "part"))
	k := record.Key{Family: f}
	switch f {
	case record.FamilyMeta, record.FamilyCompact:
	case record.FamilyElection:
		k.N = int64(n)
	case record.FamilyRun, record.FamilyInput, record.FamilyEnded:
		k.Run = run
	case record.FamilyClear:
		return record.ClearKey(run, n)
	case record.FamilyAttempt:
		return record.AttemptKey(ref)
	case record.FamilyUnproven:
		return record.UnprovenKey(ref)
	case record.FamilyResult:
		return record.ResultKey(ref)
	case record.FamilyWorker:
		return record.WorkerKey(worker, session)
	case record.FamilySession:
		return record.SessionKey(worker, session)
	case record.FamilyHolder:
		return record.HolderKey(rapid.StringN(1, 8, 20).Draw(t, "free text"), n)
	case record.FamilyRevision:
		return record.RevisionKey(record.WorkflowName(worker), n)
	case record.FamilyChunk:
		return record.ChunkKey(record.WorkflowName(worker), n, part)
	case record.FamilyPage:
		return record.PageKey(run, part)
	case record.FamilyIndex:
		k.Hour, k.Run = rapid.Int64Range(0, 9_999_999).Draw(t, "hour"), run
	case record.FamilySignal:
		k.Name = name(t, "signal")
		if rapid.Bool().Draw(t, "of a run") {
			k.Run = run
		}
	default:
		k.Name = name(t, "name")
	}
	return k
}

func TestParseUndoesKey(t *testing.T) {
	t.Parallel()
	s := space(t)
	rapid.Check(t, func(t *rapid.T) {
		k := anyKey(t)
		again, err := s.Parse(s.Key(k))
		require.NoError(t, err)
		require.Equal(t, k, again)
	})
}

// rangeAround draws a range that k lies in.
func rangeAround(t *rapid.T, k record.Key) record.Range {
	r := record.Range{Family: k.Family}
	if rapid.Bool().Draw(t, "by run") {
		r.Run = k.Run
	}
	if rapid.Bool().Draw(t, "by task") {
		r.Task, r.Instance = k.Task, k.Instance
	}
	if rapid.Bool().Draw(t, "by name") {
		r.Name = k.Name
	}
	if rapid.Bool().Draw(t, "by number") {
		r.N = k.N
	}
	return r
}

func TestRangesHoldTheirKeysAndExactOnesNoOthers(t *testing.T) {
	t.Parallel()
	s := space(t)
	rapid.Check(t, func(t *rapid.T) {
		near := anyKey(t)
		r := rangeAround(t, near)
		from, to := s.Range(r)
		require.Less(t, from, to)
		k := near
		switch rapid.IntRange(0, 2).Draw(t, "other") {
		case 0:
			k = anyKey(t)
		case 1:
			k = keyOf(t, near.Family)
		}
		text := s.Key(k)
		inside := from <= text && text < to
		if r.Has(k) {
			require.True(t, inside, "%s is of %+v but not in %q to %q", text, r, from, to)
		} else if s.Exact(r) {
			require.False(t, inside, "%s is not of %+v but in %q to %q", text, r, from, to)
		}
	})
}

func TestRangesThatGuardsUseAreExact(t *testing.T) {
	t.Parallel()
	s := space(t)
	task := record.TaskRef{Run: "a.b", Task: "t"}
	for _, r := range []record.Range{
		record.AttemptsOf("a.b"), record.UnprovenOf(task), record.SessionsOf("w"), record.OfRun(record.FamilyClear, "a.b"),
		record.OfRun(record.FamilyRun, "a.b"), record.OfRun(record.FamilyEnded, "a.b"), record.OfRun(record.FamilyPage, "a.b"),
		record.OfRun(record.FamilyResult, "a.b"), record.OfRun(record.FamilySignal, "a.b"), record.OfRun(record.FamilyInput, "a.b"),
		{Family: record.FamilyChunk, Name: "w", N: 1},
		record.AllOf(record.FamilyWorkflow), record.AllOf(record.FamilyIndex),
		{Family: record.FamilyHolder, Name: "free text/"},
	} {
		require.True(t, s.Exact(r), "%+v", r)
	}
	for _, r := range []record.Range{
		record.AllOf(record.FamilyRevision), record.AllOf(record.FamilyEnded),
		{Family: record.FamilyAttempt, Task: "t"},
		record.OfRun(record.FamilyIndex, "a.b"),
	} {
		require.False(t, s.Exact(r), "%+v", r)
	}
}

func FuzzParseAndDecodeTakeAnything(f *testing.F) {
	s, err := keyspace.New("")
	if err != nil {
		f.Fatal(err)
	}
	for _, sample := range storetest.Samples() {
		value, err := keyspace.Encode(sample.Value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(strings.TrimPrefix(s.Key(sample.Key), s.Prefix()), value)
	}
	f.Fuzz(func(t *testing.T, path string, value []byte) {
		k, err := s.Parse(s.Prefix() + path)
		if err != nil {
			return
		}
		require.Equal(t, s.Prefix()+path, s.Key(k))
		if v, err := keyspace.Decode(k, value); err == nil {
			_, err := keyspace.EncodeAt(k, v)
			require.NoError(t, err)
		}
	})
}
