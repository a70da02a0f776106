package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

func TestWhatATaskLeavesOutHasADefault(t *testing.T) {
	t.Parallel()
	task := &spec.Task{}
	require.Equal(t, spec.AllSuccess, task.Rule())
	require.Equal(t, spec.DefaultQueue, task.QueueName())
	require.Equal(t, record.OnLostWait, task.Lost())
	require.Equal(t, spec.DefaultLostLimit, task.Losses())
	code, ok := task.SkipCode()
	require.True(t, ok)
	require.Equal(t, spec.DefaultSkipExitCode, code)
}

func TestWhatATaskSaysWins(t *testing.T) {
	t.Parallel()
	never := -1
	task := &spec.Task{
		TriggerRule: spec.AllDone, Queue: "big", OnLost: record.OnLostFail, LostLimit: 7, SkipExitCode: &never,
	}
	require.Equal(t, spec.AllDone, task.Rule())
	require.Equal(t, record.Queue("big"), task.QueueName())
	require.Equal(t, record.OnLostFail, task.Lost())
	require.Equal(t, 7, task.Losses())
	_, ok := task.SkipCode()
	require.False(t, ok)
	task.Idempotent = true
	require.Empty(t, task.Lost(), "an idempotent task always runs again")
}

func TestThereAreTenRules(t *testing.T) {
	t.Parallel()
	require.Len(t, spec.TriggerRules(), 10)
}
