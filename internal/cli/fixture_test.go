package cli_test

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// step is a transition so many seconds before noon.
func step(before float64, state, rule string) *writv1.Transition {
	return &writv1.Transition{State: state, At: at(before), Rule: rule, By: "session/w-1", Term: 17}
}

// tasks are those of a run that is under way: a success, a retry that runs, one
// that waits for its time, one that failed, one that has not begun.
func tasks() []*writv1.TaskStatus {
	return []*writv1.TaskStatus{
		{Task: "list", State: writv1.TaskState_TASK_STATE_SUCCESS, Attempts: []*writv1.Attempt{{
			Task: "list", Attempt: 1, State: writv1.TaskState_TASK_STATE_SUCCESS, EnteredAt: at(58.6), Worker: "w1", Idempotent: true,
			Transitions: []*writv1.Transition{step(60, "queued", "start"), step(59.9, "running", "started"), step(58.6, "success", "finish")},
		}}},
		{Task: "count-0", State: writv1.TaskState_TASK_STATE_RUNNING, Needs: []string{"list"}, Attempts: []*writv1.Attempt{
			{
				Task: "count-0", Attempt: 1, State: writv1.TaskState_TASK_STATE_FAILED, EnteredAt: at(50), Worker: "w2",
				Cause:       &writv1.Cause{Code: "exit_code", Text: "exit code 17"},
				Transitions: []*writv1.Transition{step(58.5, "queued", "start"), step(58.4, "running", "claim"), step(50, "failed", "finish")},
			},
			{
				Task: "count-0", Attempt: 2, State: writv1.TaskState_TASK_STATE_RUNNING, EnteredAt: at(42), Worker: "w1",
				Transitions: []*writv1.Transition{step(50, "queued", "retry"), step(42.1, "queued", "dispatch"), step(42, "running", "claim")},
			},
		}},
		{Task: "count-1", State: writv1.TaskState_TASK_STATE_QUEUED, Needs: []string{"list"}, Attempts: []*writv1.Attempt{
			{
				Task: "count-1", Attempt: 1, State: writv1.TaskState_TASK_STATE_FAILED, EnteredAt: at(1), Worker: "w2",
				Cause:       &writv1.Cause{Code: "signal", Text: "ended by SIGSEGV,\x1b[31m core\ndumped"},
				Transitions: []*writv1.Transition{step(58.5, "queued", "start"), step(58.4, "running", "claim"), step(1, "failed", "finish")},
			},
			{
				Task: "count-1", Attempt: 2, State: writv1.TaskState_TASK_STATE_QUEUED, EnteredAt: at(1), NotBefore: at(-2.5),
				Transitions: []*writv1.Transition{step(1, "queued", "retry")},
			},
		}},
		{Task: "ledger", State: writv1.TaskState_TASK_STATE_QUEUED, Needs: []string{"list"}, Attempts: []*writv1.Attempt{{
			Task: "ledger", Attempt: 1, State: writv1.TaskState_TASK_STATE_QUEUED, EnteredAt: at(0.2), Worker: "w2", Intent: true,
			Transitions: []*writv1.Transition{step(0.2, "queued", "start")},
		}}},
		{Task: "merge", Needs: []string{"list", "count-0", "count-1"}},
		{Task: "report", Needs: []string{"merge", "ledger"}},
	}
}

// running is a run with those tasks.
func running() *writv1.Run {
	return &writv1.Run{
		Run: "census.k-1", Workflow: "census", Revision: 3, State: writv1.RunState_RUN_STATE_RUNNING, CreatedAt: at(61), StartedAt: at(60),
		EnteredAt: at(60), Trigger: "manual", By: "ada", ModRevision: 99,
		Tasks:       map[string]int32{"success": 1, "running": 1, "queued": 2, "none": 2},
		Transitions: []*writv1.Transition{step(60, "running", "create")},
	}
}

// ended is the same run when all is over; its last task has two attempts.
func ended(state writv1.RunState, text string) []*writv1.WatchRunResponse {
	first := &writv1.WatchRunResponse{Run: running(), Tasks: tasks(), Revision: 100}
	run := proto.CloneOf(running())
	run.State, run.EndedAt, run.EnteredAt = state, at(-3), at(-3)
	run.Cause = &writv1.Cause{Code: "tasks", Text: text}
	run.Tasks = map[string]int32{"success": 6}
	word := map[writv1.RunState]string{
		writv1.RunState_RUN_STATE_SUCCESS: "success", writv1.RunState_RUN_STATE_FAILED: "failed", writv1.RunState_RUN_STATE_CANCELLED: "cancelled",
	}[state]
	run.Transitions = append(run.Transitions, step(-3, word, "finish_run"))
	last := &writv1.WatchRunResponse{Run: run, Revision: 120, Ended: true}
	for _, t := range tasks() {
		if t.GetState() == writv1.TaskState_TASK_STATE_SUCCESS {
			continue
		}
		if len(t.GetAttempts()) == 0 {
			t.Attempts = []*writv1.Attempt{{Task: t.GetTask(), Attempt: 1, Transitions: []*writv1.Transition{step(-1, "queued", "start")}}}
		}
		a := t.GetAttempts()[len(t.GetAttempts())-1]
		t.State, a.State, a.EnteredAt, a.Worker, a.Intent = writv1.TaskState_TASK_STATE_SUCCESS, writv1.TaskState_TASK_STATE_SUCCESS, at(-2), "w1", false
		a.Transitions = append(a.GetTransitions(), step(-2, "success", "finish"))
		last.Tasks = append(last.Tasks, t)
	}
	return []*writv1.WatchRunResponse{first, last}
}

func workflow() *writv1.GetWorkflowResponse {
	return &writv1.GetWorkflowResponse{
		Current:  &writv1.WorkflowInfo{Name: "census", Revision: 4, UpdatedAt: at(3600), By: "ada"},
		Revision: 3,
		Workflow: &writv1.Workflow{
			Name: "census", Description: "Counts\nfiles", Timeout: durationpb.New(noonSpan), MaxActiveRuns: 2,
			Params: []*writv1.Param{
				{Name: "root", Default: proto.String("")},
				{Name: "pace", Required: true, Pattern: "[0-9]+", Enum: []string{"1", "2"}, Description: "how slow"},
			},
			Tasks: []*writv1.Task{
				{Id: "list", Run: "find . -type f |\n  sort > files; echo a long script that does not fit", Idempotent: true},
				{Id: "count", Command: []string{"wc", "-l"}, Needs: []string{"list"}, Retries: &writv1.Retry{Limit: 2}, Queue: "big"},
				{Id: "tell", Handler: "mail", Needs: []string{"list", "count"}, TriggerRule: writv1.TriggerRule_TRIGGER_RULE_ALL_DONE, OnLost: writv1.OnLost_ON_LOST_RETRY},
			},
		},
	}
}

const noonSpan = 90 * 60 * 1e9

func clusterStatus() *writv1.GetStatusResponse {
	return &writv1.GetStatusResponse{
		Cluster: "default", Replica: "r2", Revision: 4711, MirrorAge: durationpb.New(2e8), ActiveRuns: 1, LiveAttempts: 2, ReadyTasks: 3,
		ReadyByQueue: map[string]int32{"default": 2, "big": 1}, OldestReady: durationpb.New(4e9), Holds: []string{"losses"},
		Replicas: []*writv1.ReplicaStatus{
			{Replica: "r1", Address: "127.0.0.1:7401", Version: "v1", Leader: true, Term: 17, Since: at(3600)},
			{Replica: "r2", Address: "127.0.0.1:7402", Version: "v1"},
		},
		Members: []*writv1.MemberStatus{
			{Name: "e1", Endpoints: []string{"http://127.0.0.1:2379"}, Version: "3.7.3", Leader: true, SizeBytes: 5 << 20, InUseBytes: 1500},
			{Name: "e2", Endpoints: []string{"http://127.0.0.1:2479"}, Error: "connection refused"},
		},
		Workers: []*writv1.WorkerStatus{
			{Worker: "w1", Session: "s-1", Host: "ada", Slots: 4, Used: 2, Queues: []string{"default"}, Processes: true, RegisteredAt: at(600), Replica: "r1"},
			{
				Worker: "w2", Session: "s-2", Host: "bob", Slots: 8, Queues: []string{"default", "big"}, Handlers: []string{"a", "b", "c", "d"},
				RegisteredAt: at(60), Replica: "r2", Draining: &writv1.Hold{By: "ada", Why: "stops"},
			},
		},
		Prevented: map[string]int64{"start": 3, "claim": 1},
	}
}

func audit() *writv1.AuditResponse {
	return &writv1.AuditResponse{
		FromRevision: 2, ToRevision: 900, Events: 1200, Runs: 1, Attempts: 15,
		Leaders: []*writv1.ReplicaStatus{
			{Replica: "r1", Term: 17, Since: at(600)},
			{Replica: "r3", Term: 480, Since: at(30)},
		},
	}
}
