package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// Apply stores workflow files.
func (c *Cluster) Apply(files ...string) {
	c.t.Helper()
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			c.t.Fatalf("apply: %v", err)
		}
		c.ApplyText(file, body)
	}
}

// ApplyText stores a workflow file that is not on disk.
func (c *Cluster) ApplyText(name string, body []byte) {
	c.t.Helper()
	c.Await("the workflow of "+name, func(ctx context.Context) error {
		_, err := writv1.NewWorkflowServiceClient(c.conn).ApplyWorkflow(ctx, &writv1.ApplyWorkflowRequest{
			Source: &writv1.ApplyWorkflowRequest_File{File: &writv1.File{Name: name, Content: body}},
		})
		return err
	})
}

// Run starts a run under an idempotency key, so that it is started once
// however often that has to be asked for, and returns its id.
func (c *Cluster) Run(workflow, key string, params map[string]string) string {
	c.t.Helper()
	id := ""
	c.Await("run "+workflow+" "+key, func(ctx context.Context) error {
		made, err := writv1.NewRunServiceClient(c.conn).StartRun(ctx, &writv1.StartRunRequest{Workflow: workflow, IdempotencyKey: key, Params: params})
		id = made.GetRun().GetRun()
		return err
	})
	return id
}

// Ended waits for the end of a run and returns it.
func (c *Cluster) Ended(id string) *writv1.GetRunResponse {
	c.t.Helper()
	var run *writv1.GetRunResponse
	c.Await("the end of run "+id, func(ctx context.Context) error {
		got, err := writv1.NewRunServiceClient(c.conn).GetRun(ctx, &writv1.GetRunRequest{Run: id})
		if err != nil {
			return err
		}
		run = got
		switch got.GetRun().GetState() {
		case writv1.RunState_RUN_STATE_SUCCESS, writv1.RunState_RUN_STATE_FAILED, writv1.RunState_RUN_STATE_CANCELLED:
			return nil
		default:
			return fmt.Errorf("it is %s, %v", got.GetRun().GetState(), got.GetRun().GetTasks())
		}
	})
	return run
}

// Audit checks the whole history.
func (c *Cluster) Audit() *writv1.AuditResponse {
	c.t.Helper()
	var verdict *writv1.AuditResponse
	c.Await("an audit", func(ctx context.Context) error {
		got, err := writv1.NewAdminServiceClient(c.conn).Audit(ctx, &writv1.AuditRequest{})
		verdict = got
		return err
	})
	return verdict
}

// Writ runs a command against the replicas, as a person would, and returns
// what it printed.
func (c *Cluster) Writ(args ...string) (string, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleEnv+"="+roleWrit, "WRIT_SERVER="+c.Servers())
	out, err := cmd.CombinedOutput()
	return string(out), err
}
