package etcdtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/etcd"
)

const (
	// startLimit bounds the start of a member or a cluster on a loaded machine.
	startLimit = 60 * time.Second
	// clusterTries bounds how often a cluster is started again because another
	// process took one of its ports.
	clusterTries = 5
	// firstPort and lastPort lie below the range from which the kernel takes
	// ports by itself, so only other pickers collide.
	firstPort, lastPort = 12000, 32000
)

// Member is an embedded etcd member under test.
type Member struct {
	config etcd.Config
	live   *running
}

// running is one life of a member.
type running struct {
	member *etcd.Member
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

// StartOwn starts a member for this test alone, stopped at its end. Each edit
// may change the configuration; a directory that is left empty is made.
func StartOwn(t testing.TB, edits ...func(*etcd.Config)) *Member {
	t.Helper()
	config := etcd.Config{Dir: t.TempDir(), UnsafeNoFsync: true}
	for _, edit := range edits {
		edit(&config)
	}
	m := &Member{config: config}
	t.Cleanup(func() { m.Stop(t) })
	m.Restart(t)
	return m
}

// StartCluster starts an embedded cluster of n members, stopped at the end of
// the test. All members listen on fixed ports, so they can be restarted.
func StartCluster(t testing.TB, n int) []*Member {
	t.Helper()
	var err error
	for range clusterTries {
		members := clusterMembers(t, n)
		if err = launchAll(t, members); err == nil {
			t.Cleanup(func() { stopAll(t, members) })
			return members
		}
		stopAll(t, members)
	}
	t.Fatalf("start a cluster of %d: %v", n, err)
	return nil
}

// clusterMembers lays out n members with ports that are free now.
func clusterMembers(t testing.TB, n int) []*Member {
	t.Helper()
	ports := FreePorts(t, 2*n)
	members := make([]*Member, n)
	initial := make([]string, n)
	for i := range n {
		name := "m" + strconv.Itoa(i+1)
		initial[i] = fmt.Sprintf("%s=http://127.0.0.1:%d", name, ports[2*i])
		members[i] = &Member{config: etcd.Config{
			Dir: t.TempDir(), Name: name, UnsafeNoFsync: true,
			ClientURL: fmt.Sprintf("http://127.0.0.1:%d", ports[2*i+1]),
		}}
	}
	for _, m := range members {
		m.config.InitialCluster = strings.Join(initial, ",")
	}
	return members
}

// launchAll starts members together and waits until all serve.
func launchAll(t testing.TB, members []*Member) error {
	t.Helper()
	for _, m := range members {
		live, err := launch(m.config)
		if err != nil {
			t.Fatalf("configure etcd: %v", err)
		}
		m.live = live
	}
	for _, m := range members {
		if err := m.live.await(); err != nil {
			return err
		}
	}
	return nil
}

// stopAll stops members one after another.
func stopAll(t testing.TB, members []*Member) {
	t.Helper()
	for _, m := range members {
		if m.live != nil {
			if err := m.live.stop(); err != nil {
				t.Errorf("stop etcd member: %v", err)
			}
			m.live = nil
		}
	}
}

// launch begins one life of a member.
func launch(config etcd.Config) (*running, error) {
	member, err := etcd.New(config, zap.NewNop())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	live := &running{member: member, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(live.done)
		live.err = member.Run(ctx)
	}()
	return live, nil
}

// await waits until the member serves.
func (r *running) await() error {
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case <-r.member.Ready():
		return nil
	case <-r.done:
		return fmt.Errorf("etcd ended before it served: %w", r.err)
	case <-limit.C:
		return fmt.Errorf("etcd did not serve within %s", startLimit)
	}
}

// stop ends this life and returns how it ended.
func (r *running) stop() error {
	r.cancel()
	<-r.done
	return r.err
}

// Endpoints returns the URLs of the running member. They change at a restart of
// a member without fixed ports.
func (m *Member) Endpoints() []string { return m.live.member.Endpoints() }

// Dir returns the member's data directory.
func (m *Member) Dir() string { return m.config.Dir }

// Stop stops the member if it runs; its data stay.
func (m *Member) Stop(t testing.TB) {
	t.Helper()
	if m.live == nil {
		return
	}
	live := m.live
	m.live = nil
	if err := live.stop(); err != nil {
		t.Errorf("stop etcd: %v", err)
	}
}

// Launch starts a stopped member without waiting until it serves, which a
// member of a cluster without majority never does.
func (m *Member) Launch(t testing.TB) {
	t.Helper()
	live, err := launch(m.config)
	if err != nil {
		t.Fatalf("configure etcd: %v", err)
	}
	m.live = live
}

// Restart stops the member if it runs, starts it on the same data and on the
// same client address, and waits until it serves.
func (m *Member) Restart(t testing.TB) {
	t.Helper()
	m.Stop(t)
	m.Launch(t)
	if err := m.live.await(); err != nil {
		t.Fatalf("start etcd: %v", err)
	}
	m.config.ClientURL = m.Endpoints()[0]
}

// Client returns a client of the member, closed at the end of the test. Where a
// test dials for itself, [etcd.Dial] does as production does.
func (m *Member) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: m.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatalf("make etcd client: %v", err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close etcd client: %v", err)
		}
	})
	return client
}

// FreePorts returns distinct loopback ports that were free a moment ago. The
// caller binds them soon, and copes with losing one to another process.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	var listeners []net.Listener
	for range 100 * n {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		listeners, ports = append(listeners, listener), append(ports, port)
		if len(ports) == n {
			break
		}
	}
	for _, listener := range listeners {
		if err := listener.Close(); err != nil {
			t.Fatalf("close probe of a free port: %v", err)
		}
	}
	if len(ports) < n {
		t.Fatalf("found %d of %d free ports", len(ports), n)
	}
	return ports
}
