package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/replica"
)

// server is `writ server`.
type server struct {
	logging
	replica.Config
	dataDir   string
	state     string
	endpoints []string
}

func (s *server) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "server",
		Short:   "Run a replica, with an embedded etcd member or on an etcd that is there",
		GroupID: groupProcesses,
		Args:    cobra.NoArgs,
		Long: `Runs one replica until it is told to stop by SIGTERM or SIGINT: it then hands
leadership over and lets requests end. Any replica serves clients and workers,
and one leads.

Without --etcd-endpoints the replica runs its own etcd member in --data-dir;
several replicas make one cluster by --etcd-initial-cluster. With
--etcd-endpoints it uses the etcd that is there.`,
		Example: `  writ server --data-dir /var/lib/writ
  writ server --etcd-endpoints http://10.0.0.1:2379,http://10.0.0.2:2379
  writ server --data-dir d1 --etcd-name e1 --etcd-peer-url http://127.0.0.1:2381 \
    --etcd-initial-cluster e1=http://127.0.0.1:2381,e2=http://127.0.0.1:2382,e3=http://127.0.0.1:2383`,
		RunE: func(c *cobra.Command, _ []string) error { return s.run(c.Context(), a) },
	}
	s.register(c)
	s.registerReplica(c)
	s.registerEtcd(c)
	return c
}

func (s *server) registerReplica(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.ID, "id", "", "name of this replica (default a random one)")
	f.StringVar(&s.Cluster, "cluster", replica.DefaultCluster, "name of the cluster: the prefix of all keys in etcd")
	f.StringVar(&s.Listen, "listen", defaultServer, "host:port for clients and workers; port 0 is a free one")
	f.StringVar(&s.Advertise, "advertise", "", "host:port at which other replicas reach this one (default where it listens)")
	f.BoolVar(&s.Insecure, "insecure", false, "allow --listen and etcd addresses beyond loopback without TLS: whoever reaches them may run commands on every worker")
	f.StringVar(&s.dataDir, "data-dir", "writ-data", "directory of the embedded etcd member; not used with --etcd-endpoints")
	f.DurationVar(&s.TTL, "ttl", replica.DefaultTTL, "how long a silent worker's session lives, in whole seconds")
	f.DurationVar(&s.LeaderTTL, "leader-ttl", replica.DefaultLeaderTTL, "how long a silent leader leads on, in whole seconds")
	f.DurationVar(&s.Margin, "margin", 0, "how much earlier than its session a cut-off worker gives up (default 2s, at most a fifth of --ttl)")
	f.Float64Var(&s.LossShare, "mass-loss-share", 0, "the part of all workers that must fall silent at once for none of them to be declared lost yet (default 0.5)")
	f.IntVar(&s.LossLeast, "mass-loss-least", 0, "and how many of them at least (default 3)")
	f.DurationVar(&s.LossGrace, "mass-loss-grace", 0, "for how long none is then declared lost (default --ttl)")
	f.DurationVar(&s.KillGrace, "kill-grace", replica.DefaultKillGrace, "time between TERM and KILL when an attempt is ended")
	f.DurationVar(&s.Retention, "retention", replica.DefaultRetention, "how long ended runs are kept")
	f.IntVar(&s.RetainRuns, "retain-runs", replica.DefaultRetainRuns, "how many ended runs of a workflow are kept")
	f.BoolVar(&s.KeepHistory, "keep-history", false, "never compact etcd, so that `writ audit` sees every event since the beginning; it fills the disk")
}

func (s *server) registerEtcd(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&s.endpoints, "etcd-endpoints", nil, "URLs of an etcd to use instead of an embedded member")
	f.StringVar(&s.EtcdTLS.CAFile, "etcd-cacert", "", "PEM file with the authorities that the etcd's certificates come from")
	f.StringVar(&s.EtcdTLS.CertFile, "etcd-cert", "", "PEM file with the client certificate for the etcd")
	f.StringVar(&s.EtcdTLS.KeyFile, "etcd-key", "", "PEM file with the key of that certificate")
	f.StringVar(&s.Etcd.Name, "etcd-name", "", `name of the embedded member (default "writ")`)
	f.StringVar(&s.Etcd.ClientURL, "etcd-client-url", "", "URL at which the embedded member serves etcd clients (default a free loopback port)")
	f.StringVar(&s.Etcd.PeerURL, "etcd-peer-url", "", "URL at which it serves the other members (default its own in --etcd-initial-cluster)")
	f.StringVar(&s.Etcd.InitialCluster, "etcd-initial-cluster", "", "all founding members, as name=url,name=url")
	f.StringVar(&s.Etcd.Token, "etcd-token", "", `keeps clusters apart that share addresses (default "writ")`)
	f.StringVar(&s.state, "etcd-initial-state", string(etcd.StateNew), "new, or existing for a member that was added to a running cluster")
	f.Int64Var(&s.Etcd.QuotaBytes, "etcd-quota-bytes", 0, "limit of the database (default 8 GiB)")
	f.DurationVar(&s.Etcd.ElectionTimeout, "etcd-election-timeout", 0, "of the members among themselves; raise it on slow disks (default 1s)")
}

func (s *server) run(ctx context.Context, a *app) error {
	logger, err := s.logger(a.env.Stderr)
	if err != nil {
		return err
	}
	if err := s.settle(); err != nil {
		return err
	}
	r, err := replica.New(s.Config, logger)
	if err != nil {
		return usage("server: %w", err)
	}
	return serve(ctx, r, logger)
}

// settle makes a Config of the flags that are not one by themselves.
func (s *server) settle() error {
	if len(s.endpoints) > 0 {
		s.Endpoints = trimAll(s.endpoints)
		if s.Etcd != (etcd.Config{}) {
			return usage("--etcd-endpoints uses an etcd that is there; the flags of an embedded member (--etcd-name, --etcd-initial-cluster, …) do not go with it")
		}
		return nil
	}
	if s.EtcdTLS != (etcd.TLS{}) {
		return usage("--etcd-cacert, --etcd-cert and --etcd-key are for --etcd-endpoints, which is not given")
	}
	s.Etcd.Dir, s.Etcd.State, s.Etcd.Insecure = s.dataDir, etcd.State(s.state), s.Insecure
	return nil
}

// serve runs a replica and says when it serves.
func serve(ctx context.Context, r *replica.Replica, logger *zap.Logger) error {
	begun := time.Now()
	ended := make(chan struct{})
	said := make(chan struct{})
	go func() {
		defer close(said)
		select {
		case <-r.Ready():
			logger.Info("serving", zap.String("address", r.Address()), zap.Duration("after", time.Since(begun)))
		case <-ended:
		}
	}()
	err := r.Run(ctx)
	close(ended)
	<-said
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	logger.Info("stopped")
	return nil
}
