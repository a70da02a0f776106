package store_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/etcd/etcdtest"
	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store/storetest"
)

const root = "../.."

// block is one fenced block of the manual, with the one behind it where nothing
// stands between them.
type block struct {
	lang, text string
	next       *block
}

// blocks reads the fenced blocks of docs/manual/records.md.
func blocks(t *testing.T) []*block {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/manual/records.md"))
	require.NoError(t, err)
	var all []*block
	var open *block
	adjacent := false
	for line := range strings.Lines(string(page)) {
		switch {
		case open == nil && strings.HasPrefix(line, "```"):
			open = &block{lang: strings.TrimSpace(line[3:])}
			if adjacent {
				all[len(all)-1].next = open
			}
		case open != nil && strings.HasPrefix(line, "```"):
			all = append(all, open)
			open, adjacent = nil, true
		case open != nil:
			open.text += line
		default:
			adjacent = adjacent && strings.TrimSpace(line) == ""
		}
	}
	require.Nil(t, open, "a block is not closed")
	return all
}

func TestManualShowsEveryRecordAsItIsStored(t *testing.T) {
	t.Parallel()
	space, err := keyspace.New("")
	require.NoError(t, err)
	shown := map[string]string{}
	for _, b := range blocks(t) {
		if b.lang == "text" && b.next != nil {
			shown[strings.TrimSpace(b.text)] = strings.TrimSpace(b.next.text)
		}
	}
	for _, sample := range storetest.Samples() {
		key := space.Key(sample.Key)
		stored, err := keyspace.Encode(sample.Value)
		require.NoError(t, err)
		require.Contains(t, shown, key, "docs/manual/records.md")
		require.Equal(t, string(stored), compact(shown[key]), key)
	}
}

// compact takes the indentation out of JSON; other text stays.
func compact(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}

// etcdctl builds the real etcdctl and returns the directory it lies in.
func etcdctl(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/tools/build"), "etcdctl").CombinedOutput()
	if err != nil {
		for _, offline := range []string{"dial tcp", "no such host", "i/o timeout", "connection refused", "module lookup disabled"} {
			if strings.Contains(string(out), offline) {
				t.Skipf("etcdctl cannot be built here, its modules are out of reach: %s", out)
			}
		}
		require.NoError(t, err, "%s", out)
	}
	dir, err := filepath.Abs(filepath.Join(root, "bin/tools"))
	require.NoError(t, err)
	return dir
}

// night writes the samples, the attempt row in the three steps of its life.
func night(t *testing.T, member *etcdtest.Member) {
	t.Helper()
	client := member.Client(t)
	space, err := keyspace.New("")
	require.NoError(t, err)
	put := func(k record.Key, v record.Value) {
		text, err := keyspace.EncodeAt(k, v)
		require.NoError(t, err)
		_, err = client.Put(t.Context(), space.Key(k), string(text))
		require.NoError(t, err)
	}
	for _, sample := range storetest.Samples() {
		if row, ok := sample.Value.(record.Attempt); ok {
			for n := range row.Transitions {
				step := row
				step.Transitions = row.Transitions[:n+1]
				step.State = record.AttemptState(row.Transitions[n].State)
				if n < len(row.Transitions)-1 {
					put(sample.Key, step)
				}
			}
		}
		put(sample.Key, sample.Value)
	}
}

func TestRecipesOfTheManualWork(t *testing.T) {
	t.Parallel()
	dir := etcdctl(t)
	member := etcdtest.StartOwn(t)
	night(t, member)
	environ := append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "ETCDCTL_ENDPOINTS="+member.Endpoints()[0])
	row := storetest.SampleAttempt()
	document, err := keyspace.Encode(row)
	require.NoError(t, err)

	recipes, watches := 0, 0
	for _, b := range blocks(t) {
		switch {
		case b.lang != "sh":
		case strings.HasPrefix(b.text, "etcdctl watch"):
			watches++
			follow(t, environ, b.text, string(document))
		default:
			recipes++
			cmd := exec.CommandContext(t.Context(), "sh", "-euc", b.text)
			cmd.Env = environ
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s%s", b.text, out)
			want := string(document) + "\n" // where nothing else is shown
			if b.next != nil {
				want = b.next.text
			}
			require.Equal(t, want, string(out), b.text)
		}
	}
	require.GreaterOrEqual(t, recipes, 12)
	require.Equal(t, 1, watches)
}

// follow runs a recipe that never ends until it has shown a line.
func follow(t *testing.T, environ []string, recipe, line string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-euc", "exec "+recipe)
	cmd.Env = environ
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	found := false
	for !found && lines.Scan() {
		found = lines.Text() == line
	}
	cancel()
	require.Error(t, cmd.Wait(), "it was ended")
	require.True(t, found, "%s did not show %s", recipe, line)
}
