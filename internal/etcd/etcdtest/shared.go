package etcdtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/writ-sched/writ/internal/etcd"
)

// shared is the member of this test binary. It is state of the package because
// the testing package has no other place that outlives a test.
var shared struct {
	once   sync.Once
	member *Member
	reaper io.Closer
	err    error
}

// leakLimit bounds the wait for goroutines that are about to end.
const leakLimit = 20 * time.Second

// prefixes numbers the prefixes of this binary, so that -count repeats apart.
var prefixes atomic.Int64

// Start returns the member that all tests of this binary share.
func Start(t testing.TB) *Member {
	t.Helper()
	shared.once.Do(func() { shared.member, shared.reaper, shared.err = startShared() })
	if shared.err != nil {
		t.Fatalf("start the shared etcd: %v", shared.err)
	}
	return shared.member
}

// Prefix returns a key prefix of this test alone, ending in a slash.
func Prefix(t testing.TB) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r == '/' || r <= ' ' {
			return '_'
		}
		return r
	}, t.Name())
	return "/test/" + strconv.FormatInt(prefixes.Add(1), 10) + "-" + name + "/"
}

// Main runs the tests of a binary, stops the shared member, fails where a
// goroutine is left, and exits. Without it the shared member ends with the
// process.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the shared etcd:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := findLeaks(options); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// findLeaks looks again until leakLimit has passed: members of a cluster keep
// idle connections to each other, which end by their read timeout of 5 s.
func findLeaks(options []goleak.Option) error {
	limit := time.Now().Add(leakLimit)
	for {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(limit) {
			return err
		}
	}
}

// startShared starts the member and the process that tidies up after a killed
// binary.
func startShared() (*Member, io.Closer, error) {
	dir, err := os.MkdirTemp("", "writ-etcdtest-")
	if err != nil {
		return nil, nil, err
	}
	reaper, err := reapWithUs(dir)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	m := &Member{config: etcd.Config{Dir: dir, UnsafeNoFsync: true}}
	if m.live, err = launch(m.config); err != nil {
		return nil, reaper, err
	}
	return m, reaper, m.live.await()
}

// stopShared stops the shared member if any test started it.
func stopShared() error {
	shared.once.Do(func() { shared.err = errors.New("the tests of this binary are over") })
	if shared.member == nil {
		return nil
	}
	return errors.Join(shared.member.live.stop(), shared.reaper.Close())
}

// reapWithUs starts a shell that removes the directory when this process ends
// or closes the returned pipe. The kernel closes the pipe of a killed process.
func reapWithUs(dir string) (io.Closer, error) {
	cmd := exec.Command("/bin/sh", "-c", `cat >/dev/null; rm -rf -- "$1"`, "reaper", dir)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return reaper{pipe: pipe, cmd: cmd}, nil
}

// reaper is the shell and the pipe that it waits on.
type reaper struct {
	pipe io.Closer
	cmd  *exec.Cmd
}

// Close lets the shell remove the directory and waits for it.
func (r reaper) Close() error {
	return errors.Join(r.pipe.Close(), r.cmd.Wait())
}
