package api

import (
	"context"

	"google.golang.org/grpc"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// unary answers one request within its deadline.
func unary[Req, Resp any](ctx context.Context, s *Service, req Req, do func(context.Context, Req) (Resp, error)) (Resp, error) {
	ctx, cancel := bound(ctx)
	defer cancel()
	answer, err := do(ctx, req)
	if err != nil {
		var nothing Resp
		return nothing, s.refuse(err)
	}
	return answer, nil
}

// streamed answers by a stream, which lasts until it is complete, its caller
// goes, or this replica drains.
func streamed[Req, Msg any](s *Service, req Req, stream grpc.ServerStreamingServer[Msg], do func(context.Context, Req, func(*Msg) error) error) error {
	if err := do(stream.Context(), req, stream.Send); err != nil {
		return s.refuse(err)
	}
	return nil
}

// ApplyWorkflow stores a new revision where the workflow differs from the
// current one.
func (s *Service) ApplyWorkflow(ctx context.Context, r *writv1.ApplyWorkflowRequest) (*writv1.ApplyWorkflowResponse, error) {
	return unary(ctx, s, r, s.apply)
}

// ValidateWorkflow says what ApplyWorkflow would refuse, and stores nothing.
func (s *Service) ValidateWorkflow(ctx context.Context, r *writv1.ValidateWorkflowRequest) (*writv1.ValidateWorkflowResponse, error) {
	return unary(ctx, s, r, s.validate)
}

// GetWorkflow returns a workflow at its current or at a given revision.
func (s *Service) GetWorkflow(ctx context.Context, r *writv1.GetWorkflowRequest) (*writv1.GetWorkflowResponse, error) {
	return unary(ctx, s, r, s.getWorkflow)
}

// ListWorkflows lists all workflows by name.
func (s *Service) ListWorkflows(ctx context.Context, r *writv1.ListWorkflowsRequest) (*writv1.ListWorkflowsResponse, error) {
	return unary(ctx, s, r, s.listWorkflows)
}

// StartRun makes a run of a workflow's current revision.
func (s *Service) StartRun(ctx context.Context, r *writv1.StartRunRequest) (*writv1.StartRunResponse, error) {
	return unary(ctx, s, r, s.start)
}

// GetRun returns an active or ended run with its tasks and attempts.
func (s *Service) GetRun(ctx context.Context, r *writv1.GetRunRequest) (*writv1.GetRunResponse, error) {
	return unary(ctx, s, r, s.getRun)
}

// ListRuns lists active runs, then ended ones, newest first.
func (s *Service) ListRuns(ctx context.Context, r *writv1.ListRunsRequest) (*writv1.ListRunsResponse, error) {
	return unary(ctx, s, r, s.listRuns)
}

// WatchRun sends the run as it is, and then what changes, until it has ended.
func (s *Service) WatchRun(r *writv1.WatchRunRequest, stream grpc.ServerStreamingServer[writv1.WatchRunResponse]) error {
	return streamed(s, r, stream, s.watch)
}

// CancelRun asks for the end of a run.
func (s *Service) CancelRun(ctx context.Context, r *writv1.CancelRunRequest) (*writv1.CancelRunResponse, error) {
	return unary(ctx, s, r, s.cancel)
}

// PauseRun holds a run.
func (s *Service) PauseRun(ctx context.Context, r *writv1.PauseRunRequest) (*writv1.PauseRunResponse, error) {
	return unary(ctx, s, r, s.pause)
}

// ResumeRun lifts the hold of a run.
func (s *Service) ResumeRun(ctx context.Context, r *writv1.ResumeRunRequest) (*writv1.ResumeRunResponse, error) {
	return unary(ctx, s, r, s.resume)
}

// ClearTasks has tasks run again, whatever they came to.
func (s *Service) ClearTasks(ctx context.Context, r *writv1.ClearTasksRequest) (*writv1.ClearTasksResponse, error) {
	return unary(ctx, s, r, s.clear)
}

// RetryTasks has tasks run again that failed or were cancelled.
func (s *Service) RetryTasks(ctx context.Context, r *writv1.RetryTasksRequest) (*writv1.RetryTasksResponse, error) {
	return unary(ctx, s, r, s.retry)
}

// ResolveTask decides about an attempt whose worker is gone.
func (s *Service) ResolveTask(ctx context.Context, r *writv1.ResolveTaskRequest) (*writv1.ResolveTaskResponse, error) {
	return unary(ctx, s, r, s.resolve)
}

// ReadLog sends what an attempt wrote.
func (s *Service) ReadLog(r *writv1.ReadLogRequest, stream grpc.ServerStreamingServer[writv1.ReadLogResponse]) error {
	return streamed(s, r, stream, s.readLog)
}

// ExplainRun says what every task that is not terminal waits for.
func (s *Service) ExplainRun(ctx context.Context, r *writv1.ExplainRunRequest) (*writv1.ExplainRunResponse, error) {
	return unary(ctx, s, r, s.explain)
}

// GetStatus tells how the cluster is.
func (s *Service) GetStatus(ctx context.Context, r *writv1.GetStatusRequest) (*writv1.GetStatusResponse, error) {
	return unary(ctx, s, r, s.status)
}

// ListWorkers lists the sessions that live.
func (s *Service) ListWorkers(ctx context.Context, r *writv1.ListWorkersRequest) (*writv1.ListWorkersResponse, error) {
	return unary(ctx, s, r, s.listWorkers)
}

// DrainWorker has a worker take no new attempts, or take them again.
func (s *Service) DrainWorker(ctx context.Context, r *writv1.DrainWorkerRequest) (*writv1.DrainWorkerResponse, error) {
	return unary(ctx, s, r, s.drainWorker)
}

// Audit checks the invariants.
func (s *Service) Audit(ctx context.Context, r *writv1.AuditRequest) (*writv1.AuditResponse, error) {
	return unary(ctx, s, r, s.audit)
}
