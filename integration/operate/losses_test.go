package operate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/integration/cluster"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func TestManyWorkersThatFallSilentAtOnceAreNotTakenForDead(t *testing.T) {
	t.Parallel()
	b := start(t, cluster.Config{
		Replicas: 1, Workers: 4, Slots: 1, ServerArgs: []string{"--ttl", "2s", "--mass-loss-grace", "1m"},
	})
	tasks := ""
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		tasks += fmt.Sprintf("  %s:\n    idempotent: true\n    run: %s\n", name,
			`echo begin $WRIT_TASK_ID >>"$WRIT_PARAM_DIR/book"; until [ -e "$WRIT_PARAM_DIR/gate" ]; do sleep 0.05; done`)
	}
	run := b.begin("silent", tasks)
	for _, name := range names {
		b.awaitBooked("begin "+name, 1)
	}
	workers := []string{"w1", "w2", "w3", "w4"}
	for _, w := range workers {
		b.Pause(w)
	}
	held := func(ctx context.Context) (bool, error) {
		got, err := b.admin.GetStatus(ctx, &writv1.GetStatusRequest{})
		return slices.Contains(got.GetHolds(), "losses"), err
	}
	b.Await("losses to be held", func(ctx context.Context) error {
		is, err := held(ctx)
		if err == nil && !is {
			err = errors.New("they are not")
		}
		return err
	})
	found := false
	for _, name := range names {
		got, err := b.runs.ExplainRun(t.Context(), &writv1.ExplainRunRequest{Run: run, Task: name})
		require.NoError(t, err)
		for _, r := range got.GetReasons() {
			found = found || r.GetCode() == "held"
		}
	}
	require.True(t, found, "a task says that it is held")
	out, err := b.Writ("status")
	require.NoError(t, err)
	require.Contains(t, out, "held back: losses")

	for _, w := range workers {
		b.Resume(w)
	}
	b.AwaitWorkers(4)
	b.Await("the hold to end", func(ctx context.Context) error {
		is, err := held(ctx)
		if err == nil && is {
			err = errors.New("it stands")
		}
		return err
	})
	b.open("gate")
	end := b.Ended(run)
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, end.GetRun().GetState())
	again := 0
	for _, task := range end.GetTasks() {
		again += len(task.GetAttempts()) - 1
	}
	// The first two went before it could be known that more would.
	require.LessOrEqual(t, again, 2)
	b.clean()
}
