package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// action is what a person does to a run or a worker, recorded with who and why.
type action struct {
	by  string
	why string
}

func (o *action) flags(a *app, c *cobra.Command) {
	c.Flags().StringVar(&o.by, "by", "", "who asks, recorded (default $USER)")
	c.Flags().StringVar(&o.why, "why", "", "why, recorded")
	a.asks(c)
	a.answers(c)
}

// act makes one request; what names it in an error, and say tells a person of
// the answer.
func act[A proto.Message](ctx context.Context, a *app, what string, do func(context.Context, *servers) (A, error), say func(A)) error {
	ctx, cancel := a.bound(ctx, requestTime)
	defer cancel()
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := do(ctx, s)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if a.json {
		return a.document(answer)
	}
	say(answer)
	return nil
}

// standing tells where a run stands after an action.
func (a *app) standing(r *writv1.Run) {
	note := ""
	if h := r.GetPaused(); h != nil {
		note = ", paused by " + h.GetBy()
	}
	a.printf("%s %s%s\n", r.GetRun(), strings.TrimSpace(runState(r.GetState())+" "+r.GetPhase()), note)
}

// runCancel is `writ run cancel`.
type runCancel struct{ action }

func (r *runCancel) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Ask for the end of a run: nothing of it starts any more, and what runs is ended",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return act(c.Context(), a, "cancel run "+args[0], func(ctx context.Context, s *servers) (*writv1.CancelRunResponse, error) {
				return s.runs.CancelRun(ctx, &writv1.CancelRunRequest{Run: args[0], By: a.person(r.by), Why: r.why})
			}, func(m *writv1.CancelRunResponse) { a.standing(m.GetRun()) })
		},
	}
	r.flags(a, c)
	return c
}

// runPause is `writ run pause`.
type runPause struct{ action }

func (r *runPause) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "pause RUN",
		Short: "Hold a run: nothing of it is started until it is resumed; what runs goes on",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return act(c.Context(), a, "pause run "+args[0], func(ctx context.Context, s *servers) (*writv1.PauseRunResponse, error) {
				return s.runs.PauseRun(ctx, &writv1.PauseRunRequest{Run: args[0], By: a.person(r.by), Why: r.why})
			}, func(m *writv1.PauseRunResponse) { a.standing(m.GetRun()) })
		},
	}
	r.flags(a, c)
	return c
}

// runResume is `writ run resume`.
type runResume struct{ by string }

func (r *runResume) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "Lift the hold of a run",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return act(c.Context(), a, "resume run "+args[0], func(ctx context.Context, s *servers) (*writv1.ResumeRunResponse, error) {
				return s.runs.ResumeRun(ctx, &writv1.ResumeRunRequest{Run: args[0], By: a.person(r.by)})
			}, func(m *writv1.ResumeRunResponse) { a.standing(m.GetRun()) })
		},
	}
	c.Flags().StringVar(&r.by, "by", "", "who asks, recorded (default $USER)")
	a.asks(c)
	a.answers(c)
	return c
}

func taskCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "task",
		Short:   "Have tasks of a run run again",
		GroupID: groupRuns,
		Args:    cobra.ArbitraryArgs,
		RunE:    only,
	}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand((&taskRetry{}).command(a), (&taskClear{}).command(a))
	return c
}

// taskRetry is `writ task retry`.
type taskRetry struct{ action }

func (r *taskRetry) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "retry RUN [TASK…]",
		Short: "Run failed and cancelled tasks again, and what was not run because of them",
		Args:  cobra.MinimumNArgs(1),
		Long: `Runs the named tasks again or, where none is named, every task that failed or was
cancelled; with them the tasks below that were closed without a run because of
it. The attempts so far stay in the record. A run that has ended lives again.`,
		Example: `  writ task retry nightly.20261201t020000z
  writ task retry nightly.20261201t020000z load --why "the disk was full"`,
		RunE: func(c *cobra.Command, args []string) error {
			return act(c.Context(), a, "retry tasks of run "+args[0], func(ctx context.Context, s *servers) (*writv1.RetryTasksResponse, error) {
				return s.runs.RetryTasks(ctx, &writv1.RetryTasksRequest{Run: args[0], Tasks: args[1:], By: a.person(r.by), Why: r.why})
			}, func(m *writv1.RetryTasksResponse) { a.runAgain(m.GetRun(), m.GetTasks()) })
		},
	}
	r.flags(a, c)
	return c
}

// runAgain tells which tasks run again.
func (a *app) runAgain(r *writv1.Run, tasks []string) {
	a.standing(r)
	a.printf("%s to run again: %s\n", count(len(tasks), "task is", "tasks are"), some(tasks, 10))
}

// taskClear is `writ task clear`.
type taskClear struct {
	action
	downstream bool
}

func (r *taskClear) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "clear RUN TASK…",
		Short: "Run tasks again, whatever they came to",
		Args:  cobra.MinimumNArgs(2),
		Long: `Has the named tasks run again, whether they succeeded or failed. Their attempts so
far stay in the record, and one that runs is ended first. The tasks below them
keep what they came to, unless --downstream clears them, too. A run that has
ended lives again.`,
		Example: `  writ task clear nightly.20261201t020000z extract --downstream --why "late data"`,
		RunE: func(c *cobra.Command, args []string) error {
			return act(c.Context(), a, "clear tasks of run "+args[0], func(ctx context.Context, s *servers) (*writv1.ClearTasksResponse, error) {
				return s.runs.ClearTasks(ctx, &writv1.ClearTasksRequest{
					Run: args[0], Tasks: args[1:], Downstream: r.downstream, By: a.person(r.by), Why: r.why,
				})
			}, func(m *writv1.ClearTasksResponse) { a.runAgain(m.GetRun(), m.GetTasks()) })
		},
	}
	c.Flags().BoolVar(&r.downstream, "downstream", false, "clear everything below the tasks, too")
	r.flags(a, c)
	return c
}

// resolve is `writ resolve`.
type resolve struct {
	action
	as   string
	dead bool
}

func (r *resolve) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "resolve RUN TASK --as success|failed|retry",
		Short:   "Decide about an attempt whose worker is gone",
		GroupID: groupRuns,
		Args:    cobra.ExactArgs(2),
		Long: `Decides about a task that is running by its record though its worker is silent,
and that is not idempotent: whether it did what it was to do (success), failed, or
is to run again (retry). A new attempt starts only once the process of the old one
is proven dead. Who knows that it is dead says so with --dead; that is recorded,
and may be said later, too, without --as.`,
		Example: `  writ resolve nightly.20261201t020000z load --as retry --dead --why "the host was scrapped"`,
		RunE:    func(c *cobra.Command, args []string) error { return r.run(c.Context(), a, args[0], args[1]) },
	}
	c.Flags().StringVar(&r.as, "as", "", "what it came to: success, failed or retry")
	c.Flags().BoolVar(&r.dead, "dead", false, "vouch that the processes of its earlier attempts are dead")
	r.flags(a, c)
	return c
}

func (r *resolve) run(ctx context.Context, a *app, run, name string) error {
	m := &writv1.ResolveTaskRequest{Run: run, Dead: r.dead, By: a.person(r.by), Why: r.why}
	m.Task, m.Instance, _ = strings.Cut(name, ".")
	switch r.as {
	case "success":
		m.As = writv1.Resolution_RESOLUTION_SUCCESS
	case "failed":
		m.As = writv1.Resolution_RESOLUTION_FAILED
	case "retry":
		m.As = writv1.Resolution_RESOLUTION_RETRY
	case "":
		if !r.dead {
			return usage("--as is not given: expected success, failed or retry (hint: --dead alone is for an attempt that has ended already)")
		}
	default:
		return usage("--as %q: expected success, failed or retry", r.as)
	}
	return act(ctx, a, "resolve task "+name+" of run "+run, func(ctx context.Context, s *servers) (*writv1.ResolveTaskResponse, error) {
		return s.runs.ResolveTask(ctx, m)
	}, func(m *writv1.ResolveTaskResponse) {
		a.standing(m.GetRun())
		note := ""
		if at := latest(m.GetTask()); at.GetUnproven() {
			note = "; its death is not proven"
		}
		a.printf("%s %s%s\n", name, taskState(m.GetTask().GetState()), note)
	})
}

// workerDrain is `writ worker drain`.
type workerDrain struct {
	action
	undo bool
}

func (w *workerDrain) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "drain WORKER",
		Short: "Have a worker take no new attempts; what runs on it goes on",
		Args:  cobra.ExactArgs(1),
		Long: `Has a living worker take no new attempts until --undo, or until it is started
again. What runs on it goes on.`,
		RunE: func(c *cobra.Command, args []string) error {
			return act(c.Context(), a, "drain worker "+args[0], func(ctx context.Context, s *servers) (*writv1.DrainWorkerResponse, error) {
				return s.admin.DrainWorker(ctx, &writv1.DrainWorkerRequest{Worker: args[0], Undo: w.undo, By: a.person(w.by), Why: w.why})
			}, func(m *writv1.DrainWorkerResponse) { a.showWorkers([]*writv1.WorkerStatus{m.GetWorker()}) })
		},
	}
	c.Flags().BoolVar(&w.undo, "undo", false, "let it take attempts again")
	w.flags(a, c)
	return c
}
