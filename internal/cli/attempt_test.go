package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/writ-sched/writ/internal/cli"
	"github.com/writ-sched/writ/internal/executor"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func assign() *writv1.Assign {
	return &writv1.Assign{
		Token: "tok", Attempt: &writv1.AttemptRef{Run: "census.k-1", Task: "merge", Attempt: 2}, Fence: 4711,
		Task:        &writv1.Task{Run: "echo hello", Env: map[string]string{"COLOUR": "red", "WRIT_FENCE": "0"}, Cwd: "/tmp", Timeout: durationpb.New(time.Minute)},
		LogicalDate: timestamppb.New(noon()), Params: map[string]string{"dry-run": "yes", "root": "/usr"},
		Inputs: []*writv1.AttemptRef{
			{Run: "census.k-1", Task: "count-0", Attempt: 3},
			{Run: "census.k-1", Task: "fan", Instance: "00001", Attempt: 1},
		},
	}
}

func TestAnAttemptIsToldWhatItIs(t *testing.T) {
	t.Parallel()
	s, err := cli.Asked("/state", "/outputs", []string{"PATH=/bin", "SECRET=x", "LANG=C"}, assign())
	require.NoError(t, err)
	require.Equal(t, []string{
		"COLOUR=red", "LANG=C", "PATH=/bin", "WRIT_ATTEMPT=2", "WRIT_FENCE=4711", "WRIT_INPUT_COUNT_0=/outputs/census.k-1/count-0/3",
		"WRIT_LOGICAL_DATE=2026-12-01T12:00:00Z", "WRIT_OUTPUT_DIR=/out/here", "WRIT_PARAM_DRY_RUN=yes", "WRIT_PARAM_ROOT=/usr",
		"WRIT_RUN_ID=census.k-1", "WRIT_TASK_ID=merge", "WRIT_TOKEN=tok",
	}, s.Env)
	require.JSONEq(t, `{"count-0": "/outputs/census.k-1/count-0/3", "fan.00001": "/outputs/census.k-1/fan.00001/1"}`, string(s.Inputs))
	require.Equal(t, "/state/logs/census.k-1/merge/2.log", s.Log)
	require.Equal(t, "census.k-1/merge/2", s.Ref)
	require.Equal(t, "echo hello", s.Script)
	require.Equal(t, "/tmp", s.Cwd)
	require.Equal(t, time.Minute, s.Timeout)
	require.Equal(t, time.Second, s.Grace)
	require.Zero(t, s.Fence)
}

func TestTheEndOfAProcessHasACauseAndAState(t *testing.T) {
	t.Parallel()
	const (
		success, failed    = writv1.TaskState_TASK_STATE_SUCCESS, writv1.TaskState_TASK_STATE_FAILED
		skipped, cancelled = writv1.TaskState_TASK_STATE_SKIPPED, writv1.TaskState_TASK_STATE_CANCELLED
	)
	for name, c := range map[string]struct {
		result executor.Result
		skip   *int32
		why    string
		state  writv1.TaskState
		cause  string
		text   string
		exit   *writv1.Exit
	}{
		"success":        {state: success, exit: &writv1.Exit{}},
		"exit code":      {result: executor.Result{ExitCode: 7}, state: failed, cause: "exit_code", text: "exit code 7", exit: &writv1.Exit{Code: 7}},
		"skip":           {result: executor.Result{ExitCode: 99}, state: skipped, cause: "skipped_by_task", text: "exit code 99", exit: &writv1.Exit{Code: 99}},
		"own skip":       {result: executor.Result{ExitCode: 3}, skip: proto.Int32(3), state: skipped, cause: "skipped_by_task", text: "exit code 3", exit: &writv1.Exit{Code: 3}},
		"another skip":   {result: executor.Result{ExitCode: 99}, skip: proto.Int32(3), state: failed, cause: "exit_code", text: "exit code 99", exit: &writv1.Exit{Code: 99}},
		"never skip":     {result: executor.Result{ExitCode: 99}, skip: proto.Int32(-1), state: failed, cause: "exit_code", text: "exit code 99", exit: &writv1.Exit{Code: 99}},
		"signal":         {result: executor.Result{ExitCode: -1, Signal: 11}, state: failed, cause: "signal", text: "ended by SIGSEGV", exit: &writv1.Exit{Code: -1, Signal: "SIGSEGV"}},
		"odd signal":     {result: executor.Result{ExitCode: -1, Signal: 63}, state: failed, cause: "signal", text: "ended by signal 63", exit: &writv1.Exit{Code: -1, Signal: "signal 63"}},
		"start error":    {result: executor.Result{StartError: "no such file"}, state: failed, cause: "start_error", text: "not started: no such file"},
		"lost":           {result: executor.Result{Lost: true}, state: failed, cause: "worker_lost", text: "its keeper died and its processes were ended; nobody saw how it ended"},
		"timeout":        {result: executor.Result{Signal: 15, Cause: executor.CauseTimeout, StartedAt: noon(), EndedAt: noon().Add(1500 * time.Millisecond)}, state: failed, cause: "timeout", text: "ended after 1.5s, the timeout of the task", exit: &writv1.Exit{Code: -1, Signal: "SIGTERM"}},
		"polite timeout": {result: executor.Result{Cause: executor.CauseTimeout}, state: failed, cause: "timeout", text: "ended after 0s, the timeout of the task", exit: &writv1.Exit{}},
		"fenced":         {result: executor.Result{Signal: 9, Cause: executor.CauseFenced}, state: failed, cause: "fenced", text: "ended at the worker's own deadline: no heartbeat was acknowledged in time", exit: &writv1.Exit{Code: -1, Signal: "SIGKILL"}},
		"cancelled":      {result: executor.Result{Signal: 15, Cause: executor.CauseKilled}, why: "cancel", state: cancelled, cause: "cancelled", text: "ended because the run was cancelled", exit: &writv1.Exit{Code: -1, Signal: "SIGTERM"}},
		"stopped":        {result: executor.Result{Signal: 15, Cause: executor.CauseKilled}, why: "stopped", state: failed, cause: "worker_stopped", text: "ended because its worker stopped", exit: &writv1.Exit{Code: -1, Signal: "SIGTERM"}},
		"agent gone":     {result: executor.Result{Signal: 9, Cause: executor.CauseAgentGone}, state: failed, cause: "worker_lost", text: "ended because its worker was gone", exit: &writv1.Exit{Code: -1, Signal: "SIGKILL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, cause, text, exit := cli.Ended(c.result, &writv1.Task{SkipExitCode: c.skip}, c.why)
			require.Equal(t, c.state, state)
			require.Equal(t, c.cause, cause)
			require.Equal(t, c.text, text)
			require.True(t, proto.Equal(c.exit, exit), "%v", exit)
		})
	}
}
