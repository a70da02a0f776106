package replica

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
)

// The defaults of DESIGN's table.
const (
	DefaultListen    = "127.0.0.1:7400"
	DefaultCluster   = "default"
	DefaultTTL       = 15 * time.Second
	DefaultLeaderTTL = 10 * time.Second
	DefaultMargin    = 2 * time.Second
	DefaultConfirm   = 5 * time.Second
	DefaultProbe     = 3 * time.Second
	DefaultFullPass  = 10 * time.Second
	DefaultKillGrace = 10 * time.Second
	DefaultRetention = 7 * 24 * time.Hour
	// DefaultRetainRuns is how many ended runs of one workflow are kept.
	DefaultRetainRuns = 1000
	// DefaultKeep is how long a history is kept for audits.
	DefaultKeep = 10 * time.Minute
)

// Config describes one scheduler process. Zero values mean the defaults above.
type Config struct {
	// ID names the replica. Empty means a random one, new with every start.
	ID string
	// Cluster names the prefix of all keys.
	Cluster string
	// Listen is where clients and workers are served; port 0 is a free one.
	Listen string
	// Advertise is where other replicas reach this one. Empty means where it
	// listens.
	Advertise string
	// Insecure permits Listen beyond loopback, though whoever reaches it may
	// run commands on every worker.
	Insecure bool
	// Etcd is the embedded member, used where Endpoints is empty.
	Etcd etcd.Config
	// Endpoints are those of an etcd that runs elsewhere, with its TLS files.
	Endpoints []string
	EtcdTLS   etcd.TLS

	// TTL is that of workers' sessions, in whole seconds, LeaderTTL that of
	// replicas' own.
	TTL, LeaderTTL time.Duration
	// Margin is how much earlier than its lease a worker gives up.
	Margin time.Duration
	// Confirm is how old an intent may be before its worker is probed, and
	// Probe how long the answer may take.
	Confirm, Probe time.Duration
	// FullPass is the pause between passes over everything.
	FullPass time.Duration
	// LossShare is the part of all worker sessions, and LossLeast the number,
	// that must go within one TTL for losses to be held, which LossGrace bounds.
	LossShare float64
	LossLeast int
	LossGrace time.Duration
	// KillGrace is between TERM and KILL.
	KillGrace time.Duration
	// Retention and RetainRuns bound the ended runs that are kept.
	Retention  time.Duration
	RetainRuns int
	// KeepHistory turns compaction off, so that an audit sees everything.
	KeepHistory bool
	// EveryoneLeads is for tests: this replica acts as leader without being
	// elected, and its writes carry no term.
	EveryoneLeads bool
}

// resolve fills in defaults and refuses what cannot work.
func (c Config) resolve() (Config, error) {
	c.Cluster = cmp.Or(c.Cluster, DefaultCluster)
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.TTL = cmp.Or(c.TTL, DefaultTTL)
	c.LeaderTTL = cmp.Or(c.LeaderTTL, DefaultLeaderTTL)
	c.Margin = cmp.Or(c.Margin, min(DefaultMargin, c.TTL/5))
	c.Confirm = cmp.Or(c.Confirm, DefaultConfirm)
	c.Probe = cmp.Or(c.Probe, DefaultProbe)
	c.FullPass = cmp.Or(c.FullPass, DefaultFullPass)
	breaker := reconcile.BreakerDefaults(c.TTL)
	c.LossShare = cmp.Or(c.LossShare, breaker.Share)
	c.LossLeast = cmp.Or(c.LossLeast, breaker.Least)
	c.LossGrace = cmp.Or(c.LossGrace, breaker.Grace)
	c.KillGrace = cmp.Or(c.KillGrace, DefaultKillGrace)
	c.Retention = cmp.Or(c.Retention, DefaultRetention)
	c.RetainRuns = cmp.Or(c.RetainRuns, DefaultRetainRuns)
	if c.ID != "" {
		if err := record.CheckName(c.ID, record.MaxName); err != nil {
			return c, fmt.Errorf("replica id: %w", err)
		}
	}
	if err := record.CheckName(c.Cluster, record.MaxName); err != nil {
		return c, fmt.Errorf("cluster name: %w", err)
	}
	if err := c.checkTimes(); err != nil {
		return c, err
	}
	if len(c.Endpoints) == 0 && c.Etcd.Dir == "" {
		return c, errors.New("neither a data directory nor etcd endpoints are given (hint: --data-dir DIR, or --etcd-endpoints for an etcd of your own)")
	}
	if err := checkListen(c.Listen, c.Insecure); err != nil {
		return c, err
	}
	return c, nil
}

// checkTimes holds the durations against each other.
func (c Config) checkTimes() error {
	for _, d := range []struct {
		name string
		is   time.Duration
	}{
		{"margin", c.Margin},
		{"confirm time", c.Confirm},
		{"probe time", c.Probe},
		{"full pass", c.FullPass},
		{"mass loss grace", c.LossGrace},
		{"kill grace", c.KillGrace},
		{"retention", c.Retention},
	} {
		if d.is <= 0 {
			return fmt.Errorf("%s %s: expected a positive time", d.name, d.is)
		}
	}
	for _, ttl := range []struct {
		name string
		is   time.Duration
	}{{"worker TTL", c.TTL}, {"leader TTL", c.LeaderTTL}} {
		if ttl.is < etcd.MinLeaseTTL || ttl.is%time.Second != 0 {
			return fmt.Errorf("%s %s: expected whole seconds, at least %s, since etcd grants no others", ttl.name, ttl.is, etcd.MinLeaseTTL)
		}
	}
	if c.Margin >= c.TTL/2 {
		return fmt.Errorf("margin %s: expected less than half of the worker TTL %s, or workers give up between two heartbeats", c.Margin, c.TTL)
	}
	if c.LossShare <= 0 || c.LossShare > 1 {
		return fmt.Errorf("mass loss share %g: expected more than 0 and at most 1", c.LossShare)
	}
	if c.LossLeast < 1 {
		return fmt.Errorf("mass loss least %d: expected at least 1", c.LossLeast)
	}
	if c.RetainRuns < 1 {
		return fmt.Errorf("ended runs to keep %d: expected at least 1", c.RetainRuns)
	}
	return nil
}

// breaker says when losses are held.
func (c Config) breaker() reconcile.BreakerPolicy {
	return reconcile.BreakerPolicy{Least: c.LossLeast, Share: c.LossShare, Window: c.TTL, Grace: c.LossGrace}
}

// checkListen refuses an address that others reach, unless told otherwise.
func checkListen(address string, insecure bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen address %q: expected host:port (hint: %s)", address, DefaultListen)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if loopback || insecure {
		return nil
	}
	return fmt.Errorf("listen address %q: others than this machine could reach it and run commands on every worker (hint: 127.0.0.1, or --insecure where the network is safe)", address)
}
