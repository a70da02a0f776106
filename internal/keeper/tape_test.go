package keeper_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/keeper"
)

// segments returns what of a log is on disk, by the order of the names.
func segments(t require.TestingT, log string) []string {
	names, err := filepath.Glob(log + "*")
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, ".end") })
	slices.Sort(names)
	parts := make([]string, len(names))
	for i, n := range names {
		b, err := os.ReadFile(n)
		require.NoError(t, err)
		parts[i] = string(b)
	}
	return parts
}

func TestTapeKeepsTheBeginningAndTheEnd(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "") //nolint:usetesting // one for each round
		require.NoError(t, err)
		log := filepath.Join(dir, "deep", "log")
		head, tail := rapid.Int64Range(1, 40).Draw(t, "head"), rapid.Int64Range(1, 40).Draw(t, "tail")
		tape, err := keeper.NewTape(log, head, tail)
		require.NoError(t, err)
		var all []byte
		for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.ByteRange('a', 'z'), 0, 100)).Draw(t, "writes") {
			_, err := tape.Write(p)
			require.NoError(t, err)
			all = append(all, p...)
		}
		require.NoError(t, tape.Close("done"))
		parts := segments(t, log)
		require.Equal(t, string(all[:min(len(all), int(head))]), parts[0])
		rest := strings.Join(parts[1:], "")
		require.True(t, strings.HasSuffix(string(all), rest))
		require.GreaterOrEqual(t, len(rest), min(len(all)-len(parts[0]), int(tail)))
		require.LessOrEqual(t, len(rest), 2*int(tail))
		var end keeper.LogEnd
		found, err := keeper.ReadJSON(keeper.EndName(log), &end)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, keeper.LogEnd{Bytes: int64(len(all)), Note: "done"}, end)
	})
}

func TestTapeThatCannotGoOnCountsAndSaysSo(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	tape, err := keeper.NewTape(log, 3, 3)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(keeper.SegmentName(log, 3), 0o755)) // where the next segment belongs
	_, err = tape.Write([]byte("abcdefghij"))
	require.NoError(t, err)
	require.ErrorContains(t, tape.Close("ended"), "is a directory")
	var end keeper.LogEnd
	_, err = keeper.ReadJSON(keeper.EndName(log), &end)
	require.NoError(t, err)
	require.EqualValues(t, 10, end.Bytes)
	require.Contains(t, end.Note, "output was lost")
}

func TestTapeWithoutAPathOnlyCounts(t *testing.T) {
	t.Parallel()
	tape, err := keeper.NewTape("", 1, 1)
	require.NoError(t, err)
	_, err = tape.Write([]byte("abc"))
	require.NoError(t, err)
	require.NoError(t, tape.Close(""))
}

func TestReadingWhatIsNoJSONNamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "end.json")
	var end keeper.Ended
	found, err := keeper.ReadJSON(path, &end)
	require.NoError(t, err)
	require.False(t, found)
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o644))
	_, err = keeper.ReadJSON(path, &end)
	require.ErrorContains(t, err, "read end.json")
}
