package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/replica"
)

// dev is `writ dev`.
type dev struct {
	logging
	listen  string
	dataDir string
	outputs string
	slots   int
}

func (d *dev) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "dev FILE…",
		Short:   "Run everything in one process, apply the files, and again whenever they change",
		GroupID: groupProcesses,
		Args:    cobra.MinimumNArgs(1),
		Long: `Runs an embedded etcd, a replica and a worker in this process, applies the
workflow files, and applies them again whenever they change. Problems are
printed and change nothing. Ctrl-C ends it all, running tasks too.

Without --data-dir everything is kept in a temporary directory and removed at
the end; with it, runs survive and go on the next time.`,
		RunE: func(c *cobra.Command, args []string) error { return d.run(c.Context(), a, args) },
	}
	f := c.Flags()
	f.StringVar(&d.listen, "listen", defaultServer, "host:port to serve at; port 0 is a free one")
	f.StringVar(&d.dataDir, "data-dir", "", "where to keep everything (default a temporary directory)")
	f.StringVar(&d.outputs, "outputs", "", "directory for the outputs of tasks (default one in the data directory)")
	f.IntVar(&d.slots, "slots", 8, "attempts that run at once")
	d.register(c)
	c.Flags().Lookup("log-level").DefValue = "warn"
	d.level = "warn"
	return c
}

func (d *dev) run(ctx context.Context, a *app, files []string) (err error) {
	logger, err := d.logger(a.env.Stderr)
	if err != nil {
		return err
	}
	dir, remove, err := d.directory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r, err := replica.New(replica.Config{Listen: d.listen, Etcd: etcd.Config{Dir: filepath.Join(dir, "etcd")}}, logger)
	if err != nil {
		return usage("dev: %w", err)
	}
	// The replica outlives the worker, which reports what it ended.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- r.Run(serving) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	select {
	case <-r.Ready():
	case <-ctx.Done():
		return nil
	case err := <-served:
		served <- nil
		return fmt.Errorf("dev: %w", err)
	}
	return d.work(ctx, a, r.Address(), dir, files, logger)
}

// directory is where everything lies, and what to do with it at the end.
func (d *dev) directory() (dir string, remove func() error, err error) {
	if d.dataDir == "" {
		dir, err = os.MkdirTemp("", "writ-dev-")
		remove = func() error { return os.RemoveAll(dir) }
	} else {
		dir, err = filepath.Abs(d.dataDir)
		remove = func() error { return nil }
	}
	if err != nil {
		return "", nil, fmt.Errorf("dev: data directory: %w", err)
	}
	return dir, remove, nil
}

// work runs the worker and keeps the files applied until ctx ends.
func (d *dev) work(ctx context.Context, a *app, address, dir string, files []string, logger *zap.Logger) error {
	w := &worker{
		servers: address, name: "dev", slots: d.slots, queues: []string{"default"}, keepLogs: 7 * 24 * time.Hour,
		stateDir: filepath.Join(dir, "worker"), outputs: d.outputs,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	worked := make(chan error, 1)
	go func() {
		defer cancel()
		worked <- w.work(ctx, a.env, logger)
	}()
	a.server = address
	a.printf("writ dev serves at %s; everything lies in %s\n", address, dir)
	err := d.applying(ctx, a, files)
	cancel()
	return errors.Join(err, <-worked)
}

// applyEvery is how often the files are looked at.
const applyEvery = 500 * time.Millisecond

// seen is what a change of a file shows in.
type seen struct {
	at   time.Time
	size int64
}

// applying applies the files that have changed, until ctx ends.
func (d *dev) applying(ctx context.Context, a *app, files []string) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	tick := time.NewTicker(applyEvery)
	defer tick.Stop()
	known := make(map[string]seen, len(files))
	for {
		for _, name := range files {
			now := seen{}
			if st, err := os.Stat(name); err == nil {
				now = seen{st.ModTime(), st.Size()}
			}
			if before, looked := known[name]; looked && before == now {
				continue
			}
			if a.applyOne(ctx, s, name) {
				known[name] = now
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// applyOne applies a file of dev, and prints what is wrong. It is false where
// the same is worth trying again.
func (a *app) applyOne(ctx context.Context, s *servers, name string) bool {
	asking, cancel := a.bound(ctx, requestTime)
	defer cancel()
	answer, err := a.send(asking, s, name, a.person(""))
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		a.complain(err)
		return exitCode(err) != ExitUnreachable
	}
	a.printf("%s: %s revision %d\n", name, answer.GetName(), answer.GetRevision())
	where := ""
	if a.server != defaultServer {
		where = " --server " + a.server
	}
	a.printf("  writ run start %s --follow%s\n", answer.GetName(), where)
	return true
}
