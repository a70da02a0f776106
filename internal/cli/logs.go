package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// logs is `writ logs`.
type logs struct {
	attempt int32
	follow  bool
}

func (l *logs) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "logs RUN TASK",
		Short:   "Print what an attempt wrote",
		GroupID: groupRuns,
		Args:    cobra.ExactArgs(2),
		Long: `Prints the standard output and error of a task's latest attempt, as the worker
that runs it has captured them. Any replica hands them on, while that worker
lives. The instance of a fan-out task is named as TASK.00001.`,
		RunE: func(c *cobra.Command, args []string) error { return l.run(c.Context(), a, args[0], args[1]) },
	}
	c.Flags().Int32Var(&l.attempt, "attempt", 0, "which one (default the latest)")
	c.Flags().BoolVarP(&l.follow, "follow", "f", false, "go on until the log is complete")
	a.asks(c)
	a.answers(c)
	return c
}

func (l *logs) run(ctx context.Context, a *app, run, task string) error {
	limit := requestTime
	if l.follow {
		limit = 0
	}
	ctx, cancel := a.bound(ctx, limit)
	defer cancel()
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	task, instance, _ := strings.Cut(task, ".")
	req := &writv1.ReadLogRequest{Run: run, Task: task, Instance: instance, Attempt: l.attempt, Follow: l.follow}
	err = a.readLog(ctx, s, req, func(m *writv1.ReadLogResponse) error {
		if a.json {
			return a.line(m)
		}
		return a.writeLog(m)
	})
	if err != nil {
		return fmt.Errorf("log of %s/%s: %w", run, taskName(task, instance), err)
	}
	return nil
}

// writeLog prints a piece of a log as it was written.
func (a *app) writeLog(m *writv1.ReadLogResponse) error {
	if m.GetLeftOut() > 0 {
		a.printf("\n[writ: %d bytes left out]\n", m.GetLeftOut())
	}
	if _, err := a.env.Stdout.Write(m.GetData()); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	if m.GetNote() != "" {
		a.notef("[writ: %s]\n", oneLine(m.GetNote()))
	}
	return nil
}
