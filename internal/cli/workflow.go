package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// apply is `writ apply`.
type apply struct {
	by string
}

func (p *apply) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "apply FILE…",
		Short:   "Store workflow files; each that changes its workflow makes a new revision",
		GroupID: groupWorkflows,
		Args:    cobra.MinimumNArgs(1),
		Long: `Sends each file to the server, which stores a new revision of its workflow
where it differs from the current one. A file with problems is refused as a
whole, and the others are applied. - is standard input.`,
		RunE: func(c *cobra.Command, args []string) error { return p.run(c.Context(), a, args) },
	}
	c.Flags().StringVar(&p.by, "by", "", "who applies, recorded with the revision (default $USER)")
	a.asks(c)
	a.answers(c)
	return c
}

func (p *apply) run(ctx context.Context, a *app, names []string) error {
	ctx, cancel := a.bound(ctx, requestTime)
	defer cancel()
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	refused := 0
	for _, name := range names {
		answer, err := a.send(ctx, s, name, a.person(p.by))
		if problems := problemsOf(err); len(problems) > 0 {
			writeProblems(a.env.Stderr, problems)
			refused++
			continue
		}
		if err != nil {
			return err
		}
		if err := a.applied(answer); err != nil {
			return err
		}
	}
	if refused > 0 {
		return usage("%s refused, nothing of them is stored", count(refused, "file was", "files were"))
	}
	return nil
}

// send applies one file.
func (a *app) send(ctx context.Context, s *servers, name, by string) (*writv1.ApplyWorkflowResponse, error) {
	file, err := a.read(name)
	if err != nil {
		return nil, err
	}
	req := &writv1.ApplyWorkflowRequest{Source: &writv1.ApplyWorkflowRequest_File{File: file}, By: by}
	answer, err := s.workflows.ApplyWorkflow(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", name, err)
	}
	return answer, nil
}

// applied tells what became of one file.
func (a *app) applied(answer *writv1.ApplyWorkflowResponse) error {
	if a.json {
		return a.line(answer)
	}
	how := "unchanged"
	if answer.GetChanged() {
		how = "applied"
	}
	a.printf("%s revision %d %s\n", answer.GetName(), answer.GetRevision(), how)
	return nil
}

// read reads a workflow file; - is standard input.
func (a *app) read(name string) (*writv1.File, error) {
	var content []byte
	var err error
	if name == "-" {
		name = "stdin"
		content, err = io.ReadAll(a.env.Stdin)
	} else {
		content, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, usage("read workflow file: %w", err)
	}
	return &writv1.File{Name: name, Content: content}, nil
}

// person is who asks: the flag, or the user's name, or the program's.
func (a *app) person(flag string) string {
	for _, s := range []string{flag, a.env.Getenv("USER"), a.env.Getenv("LOGNAME")} {
		if s != "" {
			return s
		}
	}
	return "writ"
}

// list is `writ list`.
type list struct{}

func (l *list) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List workflows with their current revisions",
		GroupID: groupWorkflows,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return l.run(c.Context(), a) },
	}
	a.asks(c)
	a.answers(c)
	return c
}

func (l *list) run(ctx context.Context, a *app) error {
	ctx, cancel := a.bound(ctx, requestTime)
	defer cancel()
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	all := &writv1.ListWorkflowsResponse{}
	for token := ""; ; {
		page, err := s.workflows.ListWorkflows(ctx, &writv1.ListWorkflowsRequest{PageSize: 1000, PageToken: token})
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		all.Workflows = append(all.Workflows, page.GetWorkflows()...)
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if a.json {
		return a.document(all)
	}
	if len(all.GetWorkflows()) == 0 {
		a.notef("no workflows yet; writ apply FILE stores one\n")
		return nil
	}
	t := &table{head: []string{"WORKFLOW", "REVISION", "TASKS", "ACTIVE", "UPDATED", "BY", "DESCRIPTION"}, right: []int{1, 2, 3}}
	for _, w := range all.GetWorkflows() {
		text := oneLine(w.GetDescription())
		if w.GetPaused() != nil {
			text = strings.TrimSpace("[paused] " + text)
		}
		t.row(w.GetName(), strconv.Itoa(int(w.GetRevision())), strconv.Itoa(int(w.GetTasks())), strconv.Itoa(int(w.GetActiveRuns())),
			instant(w.GetUpdatedAt()), or(w.GetBy()), text)
	}
	a.show(t)
	return nil
}

// get is `writ get`.
type get struct {
	revision int32
}

func (g *get) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "get WORKFLOW",
		Short:   "Show a workflow",
		GroupID: groupWorkflows,
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return g.run(c.Context(), a, args[0]) },
	}
	c.Flags().Int32Var(&g.revision, "revision", 0, "which one (default the current one)")
	a.asks(c)
	a.answers(c)
	return c
}

func (g *get) run(ctx context.Context, a *app, name string) error {
	ctx, cancel := a.bound(ctx, requestTime)
	defer cancel()
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := s.workflows.GetWorkflow(ctx, &writv1.GetWorkflowRequest{Name: name, Revision: g.revision})
	if err != nil {
		return fmt.Errorf("get workflow %s: %w", name, err)
	}
	if a.json {
		return a.document(answer)
	}
	a.showWorkflow(answer)
	return nil
}

func (a *app) showWorkflow(r *writv1.GetWorkflowResponse) {
	w, current := r.GetWorkflow(), r.GetCurrent()
	head := &table{head: []string{w.GetName(), fmt.Sprintf("revision %d", r.GetRevision())}}
	if r.GetRevision() != current.GetRevision() {
		head.row("current", fmt.Sprintf("revision %d", current.GetRevision()))
	}
	if w.GetDescription() != "" {
		head.row("description", oneLine(w.GetDescription()))
	}
	head.row("updated", instant(current.GetUpdatedAt())+" by "+or(current.GetBy()))
	if p := current.GetPaused(); p != nil {
		head.row("paused", strings.TrimSpace(fmt.Sprintf("by %s %s", p.GetBy(), oneLine(p.GetWhy()))))
	}
	if w.GetTimeout() != nil {
		head.row("timeout", seconds(w.GetTimeout()))
	}
	if w.GetMaxActiveRuns() > 0 {
		head.row("max active runs", strconv.Itoa(int(w.GetMaxActiveRuns())))
	}
	for _, p := range w.GetParams() {
		head.row("param "+p.GetName(), paramText(p))
	}
	a.show(head)
	a.printf("\n")
	t := &table{head: []string{"TASK", "RUNS", "NEEDS", "RULE", "IDEMPOTENT", "RETRIES", "QUEUE"}, right: []int{5}}
	for _, task := range w.GetTasks() {
		t.row(task.GetId(), runsWhat(task), or(some(task.GetNeeds(), 3)), triggerRule(task.GetTriggerRule()),
			lossPolicy(task), strconv.Itoa(int(task.GetRetries().GetLimit())), or(task.GetQueue()))
	}
	a.show(t)
}

func paramText(p *writv1.Param) string {
	parts := []string{}
	if p.Default != nil {
		parts = append(parts, "default "+strconv.Quote(p.GetDefault()))
	}
	if p.GetRequired() {
		parts = append(parts, "required")
	}
	if p.GetPattern() != "" {
		parts = append(parts, "pattern "+p.GetPattern())
	}
	if len(p.GetEnum()) > 0 {
		parts = append(parts, "one of "+strings.Join(p.GetEnum(), ", "))
	}
	if p.GetDescription() != "" {
		parts = append(parts, oneLine(p.GetDescription()))
	}
	return strings.Join(parts, "; ")
}

// runsWhat says in a few words what a task runs.
func runsWhat(t *writv1.Task) string {
	const room = 40
	switch {
	case t.GetHandler() != "":
		return "handler " + t.GetHandler()
	case len(t.GetCommand()) > 0:
		return clip(oneLine(strings.Join(t.GetCommand(), " ")), room)
	default:
		return clip(oneLine(t.GetRun()), room)
	}
}

func triggerRule(r writv1.TriggerRule) string {
	if r == writv1.TriggerRule_TRIGGER_RULE_UNSPECIFIED {
		r = writv1.TriggerRule_TRIGGER_RULE_ALL_SUCCESS
	}
	return word(r.String(), "TRIGGER_RULE_")
}

// lossPolicy says whether a task may run again when its worker is lost.
func lossPolicy(t *writv1.Task) string {
	if t.GetIdempotent() {
		return "yes"
	}
	r := t.GetOnLost()
	if r == writv1.OnLost_ON_LOST_UNSPECIFIED {
		r = writv1.OnLost_ON_LOST_WAIT
	}
	return "no, on_lost: " + word(r.String(), "ON_LOST_")
}

// params reads name=value texts.
func params(list []string) (map[string]string, error) {
	all := make(map[string]string, len(list))
	var bad []error
	for _, p := range list {
		name, value, ok := strings.Cut(p, "=")
		if _, twice := all[name]; !ok || name == "" || twice {
			bad = append(bad, fmt.Errorf("--param %q: expected name=value, each name once", p))
			continue
		}
		all[name] = value
	}
	if len(bad) > 0 {
		return nil, usage("%w", errors.Join(bad...))
	}
	return all, nil
}
