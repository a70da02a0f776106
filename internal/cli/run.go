package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func runCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "run",
		Short:   "Start runs and see how they go",
		GroupID: groupRuns,
		Args:    cobra.ArbitraryArgs,
		RunE:    only,
	}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand((&runStart{}).command(a), (&runList{}).command(a), (&runShow{}).command(a), (&runWait{}).command(a),
		(&runCancel{}).command(a), (&runPause{}).command(a), (&runResume{}).command(a))
	return c
}

// runStart is `writ run start`.
type runStart struct {
	params []string
	id     string
	key    string
	by     string
	follow bool
}

func (r *runStart) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "start WORKFLOW",
		Short: "Start a run of a workflow and print its id",
		Args:  cobra.ExactArgs(1),
		Long: `Starts a run of the workflow's current revision and prints its id. With
--follow it then shows the run until it has ended: a live table on a terminal,
a line for each change elsewhere; the exit code tells how it ended.`,
		Example: `  writ run start census --param root=/usr/share --follow
  run=$(writ run start census --key "$CI_BUILD_ID") && writ run wait "$run"`,
		RunE: func(c *cobra.Command, args []string) error { return r.run(c.Context(), a, args[0]) },
	}
	f := c.Flags()
	f.StringArrayVarP(&r.params, "param", "p", nil, "a parameter, as name=value; once for each")
	f.StringVar(&r.id, "id", "", "the part of the run's id after the dot (default one that sorts by time)")
	f.StringVar(&r.key, "key", "", "idempotency key: starting again with the same key finds the same run")
	f.StringVar(&r.by, "by", "", "who starts it, recorded with the run (default $USER)")
	f.BoolVarP(&r.follow, "follow", "f", false, "show the run until it has ended")
	a.asks(c)
	a.answers(c)
	return c
}

func (r *runStart) run(ctx context.Context, a *app, workflow string) error {
	values, err := params(r.params)
	if err != nil {
		return err
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ask, cancel := a.bound(ctx, requestTime)
	defer cancel()
	answer, err := s.runs.StartRun(ask, &writv1.StartRunRequest{
		Workflow: workflow, Params: values, Id: r.id, IdempotencyKey: r.key, By: a.person(r.by),
	})
	if err != nil {
		return fmt.Errorf("start a run of %s: %w", workflow, err)
	}
	run := answer.GetRun().GetRun()
	if !answer.GetCreated() {
		a.notef("run %s was started before with the same key or id\n", run)
	}
	if !r.follow {
		if a.json {
			return a.document(answer)
		}
		a.printf("%s\n", run)
		return nil
	}
	return a.follow(ctx, s, run, a.teller())
}

// runList is `writ run list`.
type runList struct {
	states []string
	limit  int
}

func (r *runList) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "list [WORKFLOW]",
		Short: "List active runs, then ended ones, newest first",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return r.run(c.Context(), a, strings.Join(args, ""))
		},
	}
	c.Flags().StringSliceVar(&r.states, "state", nil, "only runs in these states: queued, running, cancelling, success, failed, cancelled")
	c.Flags().IntVar(&r.limit, "limit", 50, "at most so many")
	a.asks(c)
	a.answers(c)
	return c
}

func (r *runList) run(ctx context.Context, a *app, workflow string) error {
	states, err := runStates(r.states)
	if err != nil {
		return err
	}
	if r.limit < 1 {
		return usage("--limit %d: expected at least 1", r.limit)
	}
	ctx, cancel := a.bound(ctx, requestTime)
	defer cancel()
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	all := &writv1.ListRunsResponse{}
	for {
		want := int32(min(1000, r.limit-len(all.GetRuns())))
		page, err := s.runs.ListRuns(ctx, &writv1.ListRunsRequest{Workflow: workflow, States: states, PageSize: want, PageToken: all.GetNextPageToken()})
		if err != nil {
			return fmt.Errorf("list runs: %w", err)
		}
		all.Runs = append(all.Runs, page.GetRuns()...)
		all.NextPageToken = page.GetNextPageToken()
		if all.GetNextPageToken() == "" || len(all.GetRuns()) >= r.limit {
			break
		}
	}
	if a.json {
		return a.document(all)
	}
	a.showRuns(all)
	return nil
}

func (a *app) showRuns(all *writv1.ListRunsResponse) {
	if len(all.GetRuns()) == 0 {
		a.notef("no runs\n")
		return
	}
	now := a.env.Now()
	t := &table{head: []string{"RUN", "STATE", "REVISION", "CREATED", "TOOK", "BY", "TASKS"}, right: []int{2, 4}}
	for _, r := range all.GetRuns() {
		state := runState(r.GetState())
		t.rows = append(t.rows, []cell{
			{text: r.GetRun()},
			{text: state, colour: stateColour(state)},
			{text: strconv.Itoa(int(r.GetRevision()))},
			{text: instant(r.GetCreatedAt())},
			{text: span(r.GetStartedAt(), r.GetEndedAt(), now)},
			{text: or(r.GetBy())},
			{text: or(tallies(r.GetTasks()))},
		})
	}
	a.show(t)
	if all.GetNextPageToken() != "" {
		a.notef("there are more; --limit shows them\n")
	}
}

// runStates reads states by their words.
func runStates(words []string) ([]writv1.RunState, error) {
	var states []writv1.RunState
	for _, w := range words {
		s, known := writv1.RunState_value["RUN_STATE_"+strings.ToUpper(w)]
		if !known || s == 0 {
			return nil, usage("--state %q: expected queued, running, cancelling, success, failed or cancelled", w)
		}
		states = append(states, writv1.RunState(s))
	}
	return states, nil
}

// runShow is `writ run show`.
type runShow struct {
	attempts bool
}

func (r *runShow) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show RUN",
		Short: "Show a run with its tasks",
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return r.run(c.Context(), a, args[0]) },
	}
	c.Flags().BoolVar(&r.attempts, "attempts", false, "show every attempt with its steps, not only the latest of each task")
	a.asks(c)
	a.answers(c)
	return c
}

func (r *runShow) run(ctx context.Context, a *app, run string) error {
	ctx, cancel := a.bound(ctx, requestTime)
	defer cancel()
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := s.runs.GetRun(ctx, &writv1.GetRunRequest{Run: run})
	if err != nil {
		return fmt.Errorf("show run %s: %w", run, err)
	}
	if a.json {
		return a.document(answer)
	}
	a.showRun(answer)
	a.printf("\n")
	if r.attempts {
		a.showAttempts(answer)
		return nil
	}
	b := newBoard()
	b.merge(&writv1.WatchRunResponse{Run: answer.GetRun(), Tasks: answer.GetTasks()})
	t := taskTable()
	for _, name := range b.order {
		addTask(t, b.tasks[name], b.states, a.env.Now())
	}
	a.show(t)
	return nil
}

func (a *app) showRun(answer *writv1.GetRunResponse) {
	r := answer.GetRun()
	state := runState(r.GetState())
	t := &table{head: []string{r.GetRun(), ""}}
	add := func(name, text string) {
		if text != "" {
			t.row(name, text)
		}
	}
	t.rows = append(t.rows, []cell{{text: "state"}, {text: strings.TrimSpace(state + " " + r.GetPhase()), colour: stateColour(state)}})
	add("because", oneLine(r.GetCause().GetText()))
	add("revision", strconv.Itoa(int(r.GetRevision())))
	add("created", strings.TrimSpace(fmt.Sprintf("%s by %s (%s)", instant(r.GetCreatedAt()), or(r.GetBy()), or(r.GetTrigger()))))
	if r.GetLogicalDate() != nil {
		add("logical date", instant(r.GetLogicalDate()))
	}
	add("took", span(r.GetStartedAt(), r.GetEndedAt(), a.env.Now()))
	for _, h := range []struct {
		name string
		hold *writv1.Hold
	}{{"paused", r.GetPaused()}, {"cancelled", r.GetCancelling()}} {
		if h.hold != nil {
			add(h.name, strings.TrimSpace(fmt.Sprintf("%s by %s %s", instant(h.hold.GetAt()), h.hold.GetBy(), oneLine(h.hold.GetWhy()))))
		}
	}
	add("tasks", tallies(r.GetTasks()))
	for _, name := range slices.Sorted(maps.Keys(answer.GetParams())) {
		add("param "+name, clip(oneLine(answer.GetParams()[name]), 100))
	}
	a.show(t)
}

// showAttempts lists every attempt with its steps.
func (a *app) showAttempts(answer *writv1.GetRunResponse) {
	now := a.env.Now()
	t := &table{head: []string{"TASK", "TRY", "STATE", "WORKER", "TOOK", "STEPS", "NOTE"}, right: []int{1, 4}}
	for _, task := range answer.GetTasks() {
		for _, at := range task.GetAttempts() {
			state := taskState(at.GetState())
			note := because(at)
			if at.GetUnproven() {
				note = "its death is not proven; " + note
			}
			t.rows = append(t.rows, []cell{
				{text: taskName(task.GetTask(), task.GetInstance())},
				{text: strconv.Itoa(int(at.GetAttempt()))},
				{text: state, colour: stateColour(state)},
				{text: or(at.GetWorker())},
				{text: attemptSpan(at, now)},
				{text: steps(at)},
				{text: note, colour: dim},
			})
		}
	}
	a.show(t)
}

// steps are an attempt's transitions, each with its time and rule.
func steps(at *writv1.Attempt) string {
	var parts []string
	for _, t := range at.GetTransitions() {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", clock(t.GetAt().AsTime()), t.GetState(), t.GetRule()))
	}
	return strings.Join(parts, ", ")
}

// runWait is `writ run wait`.
type runWait struct {
	follow bool
}

func (r *runWait) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "wait RUN",
		Short: "Wait for the end of a run; the exit code tells how it ended",
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return r.run(c.Context(), a, args[0]) },
	}
	c.Flags().BoolVarP(&r.follow, "follow", "f", false, "show the run meanwhile")
	a.asks(c)
	a.answers(c)
	return c
}

func (r *runWait) run(ctx context.Context, a *app, run string) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	if r.follow {
		return a.follow(ctx, s, run, a.teller())
	}
	return a.follow(ctx, s, run, a.lastWord())
}
