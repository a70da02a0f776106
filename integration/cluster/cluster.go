package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/etcd/etcdtest"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// Patience bounds what a test waits for something that must come.
const Patience = 60 * time.Second

// Config says what a cluster is made of.
type Config struct {
	Replicas, Workers int
	// Members is the number of etcd processes; at zero every replica embeds one.
	Members int
	// Slots of each worker; zero means 4.
	Slots int
	// ServerArgs and WorkerArgs are further flags of writ server and writ worker.
	ServerArgs, WorkerArgs []string
}

// Cluster is a cluster under test.
type Cluster struct {
	t         testing.TB
	config    Config
	dir       string
	addresses map[string]string // of replicas, by name
	endpoints []string          // of members, where they are processes
	processes map[string]*process
	conn      *grpc.ClientConn
}

// Start starts a cluster and waits until it leads and its workers attend. It
// ends with the test.
func Start(t testing.TB, config Config) *Cluster {
	t.Helper()
	if config.Slots == 0 {
		config.Slots = 4
	}
	c := &Cluster{t: t, config: config, dir: t.TempDir(), addresses: map[string]string{}, processes: map[string]*process{}}
	t.Cleanup(c.close)
	c.layMembers()
	c.layReplicas()
	c.dial()
	c.layWorkers()
	for _, name := range c.names() {
		c.processes[name].launch(t)
	}
	c.Leader()
	c.AwaitWorkers(config.Workers)
	return c
}

func names(letter string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = letter + strconv.Itoa(i+1)
	}
	return list
}

// names are those of all processes in the order in which they start.
func (c *Cluster) names() []string {
	return slices.Concat(names("e", c.config.Members), names("r", c.config.Replicas), names("w", c.config.Workers))
}

func (c *Cluster) lay(name, role string, env []string, args ...string) {
	c.processes[name] = &process{
		name: name, args: args, env: append([]string{roleEnv + "=" + role}, env...), log: filepath.Join(c.dir, name+".log"),
	}
}

func (c *Cluster) layMembers() {
	members := names("e", c.config.Members)
	ports := etcdtest.FreePorts(c.t, 2*len(members))
	initial := make([]string, len(members))
	for i, name := range members {
		initial[i] = fmt.Sprintf("%s=http://127.0.0.1:%d", name, ports[2*i])
		c.endpoints = append(c.endpoints, fmt.Sprintf("http://127.0.0.1:%d", ports[2*i+1]))
	}
	for i, name := range members {
		body, err := json.Marshal(etcd.Config{
			Dir: filepath.Join(c.dir, name), Name: name, UnsafeNoFsync: true, ClientURL: c.endpoints[i],
			InitialCluster: strings.Join(initial, ","),
		})
		if err != nil {
			c.t.Fatalf("configure %s: %v", name, err)
		}
		c.lay(name, roleMember, []string{memberEnv + "=" + string(body)})
	}
}

func (c *Cluster) layReplicas() {
	replicas := names("r", c.config.Replicas)
	ports := etcdtest.FreePorts(c.t, 2*len(replicas))
	initial := make([]string, len(replicas))
	for i, name := range replicas {
		c.addresses[name] = fmt.Sprintf("127.0.0.1:%d", ports[2*i])
		initial[i] = fmt.Sprintf("%s=http://127.0.0.1:%d", name, ports[2*i+1])
	}
	for _, name := range replicas {
		args := []string{"server", "--id", name, "--listen", c.addresses[name], "--keep-history"}
		if c.config.Members > 0 {
			args = append(args, "--etcd-endpoints", strings.Join(c.endpoints, ","))
		} else {
			args = append(args, "--data-dir", filepath.Join(c.dir, name), "--etcd-name", name, "--etcd-initial-cluster", strings.Join(initial, ","))
		}
		c.lay(name, roleWrit, nil, append(args, c.config.ServerArgs...)...)
	}
}

func (c *Cluster) layWorkers() {
	for _, name := range names("w", c.config.Workers) {
		args := []string{
			"worker", "--server", c.Servers(), "--name", name, "--slots", strconv.Itoa(c.config.Slots),
			"--state-dir", filepath.Join(c.dir, name), "--outputs", c.Outputs(),
		}
		c.lay(name, roleWrit, nil, append(args, c.config.WorkerArgs...)...)
	}
}

// dial makes the connection over which the test asks any replica that serves.
func (c *Cluster) dial() {
	state := resolver.State{}
	for _, name := range names("r", c.config.Replicas) {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: c.addresses[name]})
	}
	r := manual.NewBuilderWithScheme("cluster")
	r.InitialState(state)
	conn, err := grpc.NewClient("cluster:///replicas", grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		c.t.Fatalf("connect: %v", err)
	}
	c.conn = conn
}

// close ends what still lives, workers first, and shows the logs of a test
// that failed.
func (c *Cluster) close() {
	all := c.names()
	slices.Reverse(all)
	for _, name := range all {
		p, ok := c.processes[name]
		switch {
		case !ok || p.cmd == nil:
		case p.lives():
			_ = p.cmd.Process.Signal(syscall.SIGCONT) // it may be paused
			_ = p.end(c.t, syscall.SIGKILL)
		case !p.ordered:
			c.t.Errorf("%s ended by itself: %v", name, p.err)
		}
		if ok && c.t.Failed() {
			c.t.Log(p.tail())
		}
	}
	if c.conn != nil {
		if err := c.conn.Close(); err != nil {
			c.t.Errorf("close the connection: %v", err)
		}
	}
}

// Servers are the addresses of all replicas, as --server takes them.
func (c *Cluster) Servers() string {
	return strings.Join(slices.Sorted(maps.Values(c.addresses)), ",")
}

// Address is that of one replica.
func (c *Cluster) Address(replica string) string { return c.addresses[replica] }

// Outputs is the directory that the workers share.
func (c *Cluster) Outputs() string { return filepath.Join(c.dir, "outputs") }

// Conn asks any replica that serves.
func (c *Cluster) Conn() *grpc.ClientConn { return c.conn }

func (c *Cluster) process(name string) *process {
	c.t.Helper()
	p, ok := c.processes[name]
	if !ok {
		c.t.Fatalf("the cluster has no process %s, only %s", name, strings.Join(c.names(), ", "))
	}
	return p
}

// Kill ends a process by SIGKILL.
func (c *Cluster) Kill(name string) {
	c.t.Helper()
	_ = c.process(name).end(c.t, syscall.SIGKILL) // it says "killed"
}

// Stop ends a process by SIGTERM and returns how it ended.
func (c *Cluster) Stop(name string) error {
	c.t.Helper()
	return c.process(name).end(c.t, syscall.SIGTERM)
}

// Pause stops a process by SIGSTOP; its children run on.
func (c *Cluster) Pause(name string) { c.t.Helper(); c.process(name).signal(c.t, syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (c *Cluster) Resume(name string) { c.t.Helper(); c.process(name).signal(c.t, syscall.SIGCONT) }

// Launch starts a process that has ended, on its old data.
func (c *Cluster) Launch(name string) {
	c.t.Helper()
	p := c.process(name)
	if p.lives() {
		c.t.Fatalf("%s lives already", name)
	}
	p.launch(c.t)
}

// Await waits until the condition holds, or fails with the last error.
func (c *Cluster) Await(what string, holds func(ctx context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), Patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := once(ctx, holds)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.t.Fatalf("%s did not come within %s: %v", what, Patience, err)
		}
	}
}

// once bounds one try, so that a replica that hangs does not use up the wait.
func once(ctx context.Context, holds func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return holds(ctx)
}

// Leader waits for a leader and returns its name. Those named in but do not
// count: they are dead, and not yet known to be.
func (c *Cluster) Leader(but ...string) string {
	c.t.Helper()
	leader := ""
	c.Await("a leader", func(ctx context.Context) error {
		status, err := writv1.NewAdminServiceClient(c.conn).GetStatus(ctx, &writv1.GetStatusRequest{})
		if err != nil {
			return err
		}
		for _, r := range status.GetReplicas() {
			if r.GetLeader() && !slices.Contains(but, r.GetReplica()) {
				leader = r.GetReplica()
				return nil
			}
		}
		return errors.New("nobody leads")
	})
	return leader
}

// AwaitWorkers waits until so many workers attend.
func (c *Cluster) AwaitWorkers(n int) {
	c.t.Helper()
	c.Await(fmt.Sprintf("%d workers", n), func(ctx context.Context) error {
		list, err := writv1.NewAdminServiceClient(c.conn).ListWorkers(ctx, &writv1.ListWorkersRequest{})
		if err == nil && len(list.GetWorkers()) != n {
			err = fmt.Errorf("%d attend", len(list.GetWorkers()))
		}
		return err
	})
}

// AwaitServing waits until a replica serves.
func (c *Cluster) AwaitServing(replica string) {
	c.t.Helper()
	conn, err := grpc.NewClient(c.Address(replica), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		c.t.Fatalf("connect to %s: %v", replica, err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be lost by it
	c.Await("replica "+replica, func(ctx context.Context) error {
		_, err := writv1.NewAdminServiceClient(conn).GetStatus(ctx, &writv1.GetStatusRequest{})
		return err
	})
}

// AwaitMembers waits until every etcd member answers.
func (c *Cluster) AwaitMembers() {
	c.t.Helper()
	c.Await("all members", func(ctx context.Context) error {
		status, err := writv1.NewAdminServiceClient(c.conn).GetStatus(ctx, &writv1.GetStatusRequest{})
		if err != nil {
			return err
		}
		for _, m := range status.GetMembers() {
			if m.GetError() != "" {
				return errors.New(m.GetError())
			}
		}
		return nil
	})
}
