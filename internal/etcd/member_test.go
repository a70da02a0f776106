package etcd_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/etcd/etcdtest"
)

// run runs a member that is expected to fail by itself.
func run(t *testing.T, config etcd.Config) error {
	t.Helper()
	config.UnsafeNoFsync = true
	member, err := etcd.New(config, nil)
	require.NoError(t, err)
	return member.Run(t.Context())
}

func TestDirectoryIsMadeForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	member := etcdtest.StartOwn(t, func(c *etcd.Config) { c.Dir = dir })
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NotContains(t, member.Endpoints()[0], ":0")
}

func TestSecondServerOnADirectoryIsToldWhoHoldsIt(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t)
	err := run(t, etcd.Config{Dir: member.Dir()})
	require.ErrorIs(t, err, etcd.ErrDirInUse)
	require.ErrorContains(t, err, member.Dir())
	require.ErrorContains(t, err, "process "+strconv.Itoa(os.Getpid()))
	require.ErrorContains(t, err, "hint:")
	member.Restart(t)
}

func TestDirectoryOfAPlainEtcdIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t)
	member.Stop(t)
	db, err := os.Open(filepath.Join(member.Dir(), "member", "snap", "db"))
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(db.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	err = run(t, etcd.Config{Dir: member.Dir()})
	require.ErrorIs(t, err, etcd.ErrDirInUse)
	require.ErrorContains(t, err, "an etcd that writ did not start")
	require.NoError(t, db.Close())
	member.Restart(t)
}

func TestDirectoryThatCannotBeMadeIsNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	err := run(t, etcd.Config{Dir: filepath.Join(file, "data")})
	require.ErrorContains(t, err, "create data directory "+filepath.Join(file, "data"))
	require.ErrorContains(t, err, "hint:")
}

func TestPortInUseIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	for _, config := range []etcd.Config{{ClientURL: "http://" + address}, {PeerURL: "http://" + address}} {
		config.Dir = t.TempDir()
		err := run(t, config)
		require.ErrorIs(t, err, etcd.ErrAddressInUse)
		require.ErrorContains(t, err, address)
		require.ErrorContains(t, err, "hint:")
		entries, err := os.ReadDir(filepath.Join(config.Dir, "member"))
		require.True(t, errors.Is(err, os.ErrNotExist) || len(entries) == 0)
	}
	require.NoError(t, listener.Close())
}

func TestDamagedDataEndTheProcessWithAReasonNotWithACrash(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"member/wal/*.wal", "member/snap/db"} {
		t.Run(filepath.Base(pattern), func(t *testing.T) {
			t.Parallel()
			member := etcdtest.StartOwn(t)
			member.Stop(t)
			files, err := filepath.Glob(filepath.Join(member.Dir(), pattern))
			require.NoError(t, err)
			require.Len(t, files, 1)
			damage(t, files[0])
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), memberDirEnv+"="+member.Dir())
			output, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 3, exit.ExitCode(), "%s", output)
			require.Contains(t, string(output), member.Dir())
			require.Contains(t, string(output), etcd.ErrFatal.Error())
			require.NotContains(t, string(output), "goroutine ")
		})
	}
}

// damage overwrites the first 64 KiB of a file, which keep its size.
func damage(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	noise := make([]byte, 64<<10)
	for i := range noise {
		noise[i] = byte(i*7 + 3)
	}
	_, err = file.WriteAt(noise, 0)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

func TestStopEndsOpenWatchesWhichResumeAfterARestart(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t)
	client := member.Client(t)
	watch := client.Watch(t.Context(), "a", clientv3.WithCreatedNotify())
	require.True(t, (<-watch).Created)
	lease, err := client.Grant(t.Context(), 60)
	require.NoError(t, err)
	renewals, err := client.KeepAlive(t.Context(), lease.ID)
	require.NoError(t, err)
	require.NotNil(t, <-renewals)

	start := time.Now()
	member.Stop(t)
	require.Less(t, time.Since(start), etcd.ServerRequestTimeout, "etcd's own wait for open streams")

	member.Restart(t)
	_, err = client.Put(t.Context(), "a", "1")
	require.NoError(t, err)
	answer := <-watch
	require.NoError(t, answer.Err())
	require.Equal(t, "1", string(answer.Events[0].Kv.Value))
}

func TestQuietMemberStillWarns(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.DebugLevel)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	member, err := etcd.New(etcd.Config{Dir: dir, UnsafeNoFsync: true}, zap.New(core))
	require.NoError(t, err)
	done := make(chan error, 1)
	ctx, cancel := contextFor(t)
	go func() { done <- member.Run(ctx) }()
	<-member.Ready()
	cancel()
	require.NoError(t, <-done)
	var messages []string
	for _, entry := range logs.All() {
		messages = append(messages, entry.Message)
	}
	// The temporary directory of a test is open to others, which etcd dislikes.
	require.Equal(t, []string{"check file permission"}, messages)
}

func TestCancelBeforeTheMemberServesEndsRun(t *testing.T) {
	t.Parallel()
	ports := etcdtest.FreePorts(t, 2)
	member, err := etcd.New(etcd.Config{
		Dir: t.TempDir(), Name: "a", UnsafeNoFsync: true,
		InitialCluster: fmt.Sprintf("a=http://127.0.0.1:%d,b=http://127.0.0.1:%d", ports[0], ports[1]),
	}, nil)
	require.NoError(t, err)
	ctx, cancel := contextFor(t)
	done := make(chan error, 1)
	go func() { done <- member.Run(ctx) }()
	// The member serves its peers, but without a majority it is never ready.
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0]))
		return err == nil && conn.Close() == nil
	}, 30*time.Second, 10*time.Millisecond)
	select {
	case <-member.Ready():
		t.Fatal("ready without a majority")
	default:
	}
	cancel()
	require.NoError(t, <-done)
}

func TestGarbageOnTheClientPortHurtsNobody(t *testing.T) {
	t.Parallel()
	member := etcdtest.Start(t)
	address := member.Endpoints()[0][len("http://"):]
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_, err = conn.Write([]byte("\x00\x01garbage\r\n\r\n\xff\xfe"))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	answer, err := http.Get(member.Endpoints()[0] + "/no-such-page")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
	require.NoError(t, answer.Body.Close())
	http.DefaultClient.CloseIdleConnections()
	_, err = member.Client(t).Put(t.Context(), etcdtest.Prefix(t)+"a", "1")
	require.NoError(t, err)
}
