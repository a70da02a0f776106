package executor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/writ-sched/writ/internal/executor"
)

func TestEnvironInheritsLittleAndReservedNamesWin(t *testing.T) {
	t.Parallel()
	agent := []string{"PATH=/bin", "HOME=/h", "LD_PRELOAD=x", "AWS_SECRET_ACCESS_KEY=x", "LC_ALL=C", "WRIT_TOKEN=outer", "=odd", "odd"}
	got := executor.Environ(agent, map[string]string{"HOME": "/task", "A": "1", "WRIT_RUN_ID": "forged", "WRIT_X": "1"}, map[string]string{"WRIT_RUN_ID": "r.1"})
	require.Equal(t, []string{"A=1", "HOME=/task", "LC_ALL=C", "PATH=/bin", "WRIT_RUN_ID=r.1"}, got)
	require.Equal(t, []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, executor.Environ(nil, nil, nil))
}

func TestOutputDirectoryIsNewAndStaysInside(t *testing.T) {
	t.Parallel()
	o := executor.Outputs{Dir: filepath.Join(t.TempDir(), "outputs")}
	dir, err := o.Make("wf.k-1", "count.00003", 2)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(o.Dir, "wf.k-1", "count.00003", "2"), dir)
	require.Equal(t, dir, o.Path("wf.k-1", "count.00003", 2))
	fi, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), fi.Mode().Perm())
	_, err = o.Make("wf.k-1", "count.00003", 2)
	require.NoError(t, err, "empty, so nothing of somebody else's is in it")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o644))
	_, err = o.Make("wf.k-1", "count.00003", 2)
	require.ErrorContains(t, err, "holds files already")
	for _, bad := range []string{"", "..", ".", "a/b", "a\x00"} {
		_, err = o.Make(bad, "t", 1)
		require.Error(t, err)
		_, err = o.Make("r.1", bad, 1)
		require.Error(t, err)
	}
	outside := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(o.Dir, "evil")))
	_, err = o.Make("evil", "t", 1)
	require.Error(t, err)
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// O26 c, and the 2 MB result.
func TestResultIsTakenOrRefusedButNeverWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		return path
	}
	for _, path := range []string{filepath.Join(dir, "missing"), file("empty", ""), file("blank", " \n")} {
		got, err := executor.ReadResult(path)
		require.NoError(t, err)
		require.Nil(t, got)
	}
	limit := `"` + strings.Repeat("x", executor.MaxResult-2) + `"`
	got, err := executor.ReadResult(file("limit", limit))
	require.NoError(t, err)
	require.Equal(t, limit, string(got))

	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("/etc/passwd", link))
	socket := filepath.Join(dir, "socket")
	require.NoError(t, unix.Mknod(socket, unix.S_IFSOCK|0o600, 0))
	for path, want := range map[string]string{
		file("big", strings.Repeat("1", 2<<20)): "has 2097152 bytes, at most 65536 are allowed",
		file("plain", "hello"):                  "is not JSON",
		file("two", "1 2"):                      "is not JSON",
		fifo:                                    "not a regular file",
		link:                                    "symbolic link",
		dir:                                     "not a regular file",
		socket:                                  "socket",
	} {
		_, err := executor.ReadResult(path)
		var bad *executor.ResultError
		require.ErrorAs(t, err, &bad, path)
		require.Contains(t, bad.Reason, want)
	}
}
