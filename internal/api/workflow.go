package api

import (
	"context"
	"fmt"
	"sync"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// summary is what lists tell of a revision's spec.
type summary struct {
	revision    int
	description string
	tasks       int
}

// summaries keeps the summary of the revision of each workflow that was asked
// for last, so that a list need not read every spec again.
type summaries struct {
	mu   sync.Mutex // guards kept
	kept map[record.WorkflowName]summary
}

func (c *summaries) find(name record.WorkflowName, revision int) (summary, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.kept[name]
	return found, ok && found.revision == revision
}

func (c *summaries) keep(name record.WorkflowName, s summary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[name] = s
}

// revision returns the spec of a revision: from the mirror where an active run
// uses it, else from the store.
func (s *Service) revision(ctx context.Context, name record.WorkflowName, n int) (*spec.Workflow, error) {
	var graph *spec.Graph
	s.mirror.Read(func(v *view.Active) { graph, _ = v.Graph(view.Revision{Workflow: name, Number: n}) })
	if graph != nil {
		return graph.Workflow(), nil
	}
	w, err := s.store.Spec(ctx, name, n)
	if err != nil {
		return nil, unread(ctx, err)
	}
	return w, nil
}

// tell is a workflow's pointer with the summary of its current revision.
func (s *Service) tell(ctx context.Context, w record.Workflow, active int) (*writv1.WorkflowInfo, error) {
	sum, ok := s.specs.find(w.Workflow, w.Revision)
	if !ok {
		current, err := s.revision(ctx, w.Workflow, w.Revision)
		if err != nil {
			return nil, err
		}
		sum = summary{revision: w.Revision, description: current.Description, tasks: len(current.Tasks)}
		s.specs.keep(w.Workflow, sum)
	}
	return &writv1.WorkflowInfo{
		Name: string(w.Workflow), Revision: int32(w.Revision), Description: sum.description, Digest: w.Digest,
		UpdatedAt: toTime(w.UpdatedAt), By: w.By, Tasks: int32(sum.tasks), Paused: toHold(w.Paused), ActiveRuns: int32(active),
	}, nil
}

// activeRuns counts the active runs of a workflow.
func activeRuns(v *view.Active, name record.WorkflowName) int { return len(v.RunsOf(name)) }

func (s *Service) getWorkflow(ctx context.Context, r *writv1.GetWorkflowRequest) (*writv1.GetWorkflowResponse, error) {
	name, err := workflowName("name", r.GetName())
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*writv1.GetWorkflowResponse, error) {
		return nil, fmt.Errorf("get workflow %s: %w", name, err)
	}
	if r.GetRevision() < 0 {
		return nil, invalid("revision", "0 means the current one", "is %d, expected a revision from 1", r.GetRevision())
	}
	stored, err := s.get(ctx, record.WorkflowKey(name))
	if err != nil {
		return fail(err)
	}
	current, ok := stored.Value.(record.Workflow)
	if !ok {
		return nil, missing("workflow %s", name)
	}
	n := current.Revision
	if r.GetRevision() > 0 {
		n = int(r.GetRevision())
	}
	head, err := s.get(ctx, record.RevisionKey(name, n))
	if err != nil {
		return fail(err)
	}
	if head.ModRev == 0 {
		return nil, missing("revision %d of workflow %s (the current one is %d)", n, name, current.Revision)
	}
	w, err := s.revision(ctx, name, n)
	if err != nil {
		return fail(err)
	}
	active := 0
	s.mirror.Read(func(v *view.Active) { active = activeRuns(v, name) })
	told, err := s.tell(ctx, current, active)
	if err != nil {
		return fail(err)
	}
	return &writv1.GetWorkflowResponse{Current: told, Revision: int32(n), Workflow: toWorkflow(w)}, nil
}

const (
	defaultWorkflows = 100
	defaultRuns      = 50
	maxPage          = 1000
)

// pageSize is how many are asked for.
func pageSize(n int32, usual int) (int, error) {
	switch {
	case n < 0:
		return 0, invalid("page_size", fmt.Sprintf("0 means %d", usual), "is %d, expected 0 to %d", n, maxPage)
	case n == 0:
		return usual, nil
	default:
		return min(int(n), maxPage), nil
	}
}

func (s *Service) listWorkflows(ctx context.Context, r *writv1.ListWorkflowsRequest) (*writv1.ListWorkflowsResponse, error) {
	size, err := pageSize(r.GetPageSize(), defaultWorkflows)
	if err != nil {
		return nil, err
	}
	var after workflowPlace
	if err := readToken(r.GetPageToken(), &after); err != nil {
		return nil, err
	}
	var page []record.Workflow
	var active []int
	more := false
	s.mirror.Read(func(v *view.Active) {
		for _, kept := range v.Workflows() {
			name := kept.Record.Workflow
			if string(name) <= after.Name {
				continue
			}
			if more = len(page) == size; more {
				return
			}
			page, active = append(page, kept.Record), append(active, activeRuns(v, name))
		}
	})
	answer := &writv1.ListWorkflowsResponse{}
	for i, w := range page {
		told, err := s.tell(ctx, w, active[i])
		if err != nil {
			return nil, fmt.Errorf("list workflows: %w", err)
		}
		answer.Workflows = append(answer.Workflows, told)
	}
	if more {
		answer.NextPageToken = writeToken(workflowPlace{Name: string(page[len(page)-1].Workflow)})
	}
	return answer, nil
}
