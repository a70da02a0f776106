package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-sched/writ/internal/executor"
	"github.com/writ-sched/writ/internal/record"
)

// worker is `writ worker`.
type worker struct {
	logging
	servers  string
	name     string
	slots    int
	queues   []string
	labels   map[string]string
	stateDir string
	outputs  string
	drain    time.Duration
	keepLogs time.Duration
}

func (w *worker) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "worker",
		Short:   "Run a worker: it takes attempts from the server and runs their scripts and commands",
		GroupID: groupProcesses,
		Args:    cobra.NoArgs,
		Long: `Runs a worker until it is told to stop by SIGTERM or SIGINT: it then takes no
more attempts, lets those that run end for --drain, and ends the rest.

The state directory makes the worker itself over restarts: two workers never
share one. Workers that run tasks of one workflow share one --outputs directory.

The commands below it are about workers that run already.`,
		Example: `  writ worker --server 10.0.0.1:7400,10.0.0.2:7400 --name w1 --slots 8 --state-dir /var/lib/writ-worker --outputs /srv/writ`,
		RunE: func(c *cobra.Command, _ []string) error {
			w.servers = a.servers()
			return w.run(c.Context(), a)
		},
	}
	f := c.Flags()
	f.StringVar(&a.server, "server", "", fmt.Sprintf("host:port of any replica, or several with commas (default $%s, or %s)", serverVariable, defaultServer))
	f.StringVar(&w.name, "name", "", "name of the worker, the same over its restarts (default made of the host's name)")
	f.IntVar(&w.slots, "slots", runtime.NumCPU(), "attempts that run at once")
	f.StringSliceVar(&w.queues, "queues", []string{"default"}, "the queues to take attempts from")
	f.StringToStringVar(&w.labels, "labels", nil, "what else to say of the worker, as name=value")
	f.StringVar(&w.stateDir, "state-dir", "writ-worker", "directory of this worker alone: its identity, reports, logs")
	f.StringVar(&w.outputs, "outputs", "", "directory for the outputs of tasks, shared by the workers of a workflow (default one in the state directory)")
	f.DurationVar(&w.drain, "drain", 60*time.Second, "how long to let attempts end when the worker stops")
	f.DurationVar(&w.keepLogs, "keep-logs", 7*24*time.Hour, "how long the logs of a run are kept after its last line")
	w.register(c)
	c.AddCommand((&workers{name: "list"}).command(a), (&workerDrain{}).command(a))
	return c
}

func (w *worker) run(ctx context.Context, a *app) error {
	logger, err := w.logger(a.env.Stderr)
	if err != nil {
		return err
	}
	if err := w.check(); err != nil {
		return err
	}
	return w.work(ctx, a.env, logger)
}

// check refuses what the server would refuse, by the names of the flags.
func (w *worker) check() error {
	if w.name == "" {
		host, err := os.Hostname()
		if err != nil {
			return usage("--name is not given, and the host's name is not to be had: %w", err)
		}
		w.name = nameOf(host)
	}
	if err := record.CheckName(w.name, record.MaxName); err != nil {
		return usage("--name %w", err)
	}
	for _, q := range w.queues {
		if err := record.CheckName(q, record.MaxName); err != nil {
			return usage("--queues: %w", err)
		}
	}
	switch {
	case w.slots < 1:
		return usage("--slots %d: expected at least 1", w.slots)
	case w.drain < 0:
		return usage("--drain %s: expected zero or a positive time", w.drain)
	case w.keepLogs <= 0:
		return usage("--keep-logs %s: expected a positive time", w.keepLogs)
	}
	return nil
}

// nameOf makes a worker's name of a host's.
func nameOf(host string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_':
			return r
		default:
			return '-'
		}
	}, strings.ToLower(host))
	name = strings.TrimLeft(name, "-_")
	return name[:min(len(name), record.MaxName)]
}

// place makes the worker's directories.
func (w *worker) place(env Env) (place, error) {
	state, err := filepath.Abs(w.stateDir)
	if err != nil {
		return place{}, fmt.Errorf("worker: state directory: %w", err)
	}
	if err := os.MkdirAll(state, 0o755); err != nil {
		return place{}, fmt.Errorf("worker: state directory: %w", err)
	}
	outputs := w.outputs
	if outputs == "" {
		outputs = filepath.Join(state, "outputs")
	}
	if outputs, err = filepath.Abs(outputs); err != nil {
		return place{}, fmt.Errorf("worker: outputs: %w", err)
	}
	return place{state: state, outputs: executor.Outputs{Dir: outputs}, environ: env.Environ()}, nil
}
