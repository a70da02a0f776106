package workflow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/writ-sched/writ/pkg/workflow"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// wrong is a workflow that cannot be built, and the problems that are told.
type wrong struct {
	options []workflow.Option
	add     func(wf *workflow.Workflow)
	says    []string
}

func refuse(t *testing.T, cases map[string]wrong) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wf := workflow.New("w", c.options...)
			c.add(wf)
			m, err := wf.Build()
			require.Nil(t, m)
			var invalid *workflow.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Len(t, invalid.Problems, len(c.says), "%v", err)
			for i, says := range c.says {
				require.Contains(t, invalid.Problems[i].GetField()+": "+invalid.Problems[i].GetText(), says)
				require.Contains(t, err.Error(), says)
				_, marshalErr := proto.Marshal(invalid.Problems[i])
				require.NoError(t, marshalErr)
			}
		})
	}
}

func TestBuildTellsEverythingItKnowsToBeWrong(t *testing.T) {
	t.Parallel()
	stranger := workflow.New("other").Task("elsewhere", workflow.Run("true"))
	var none *workflow.Task
	refuse(t, map[string]wrong{
		"nothing to do": {
			add:  func(wf *workflow.Workflow) { wf.Task("idle", workflow.Idempotent()) },
			says: []string{"tasks.idle: does nothing, expected one of run, command and handler"},
		},
		"two actions": {
			add: func(wf *workflow.Workflow) {
				wf.Task("both", workflow.Run("true"), workflow.Handler("f", nil))
				wf.Task("twice", workflow.Command("a"), workflow.Command("b"))
			},
			says: []string{
				"tasks.both: has run and handler, expected one of run, command and handler",
				"tasks.twice: has command and command, expected one of run, command and handler",
			},
		},
		"empty actions": {
			add: func(wf *workflow.Workflow) {
				wf.Task("r", workflow.Run(""))
				wf.Task("c", workflow.Command(""))
				wf.Task("h", workflow.Handler("", nil))
			},
			says: []string{"tasks.r.run: is empty", "tasks.c.command: is empty", "tasks.h.handler: is empty"},
		},
		"names that stand twice": {
			add: func(wf *workflow.Workflow) {
				wf.Param("p", workflow.Required())
				wf.Param("p", workflow.Required())
				wf.Task("t", workflow.Run("true"))
				wf.Task("t", workflow.Run("true"))
			},
			says: []string{"params.p: there are two parameters of this name", "tasks.t: there are two tasks of this id"},
		},
		"input": {
			add:  func(wf *workflow.Workflow) { wf.Task("merge", workflow.Handler("f", math.NaN())) },
			says: []string{"tasks.merge.input: is no JSON: json: unsupported value: NaN"},
		},
		"needs": {
			add: func(wf *workflow.Workflow) {
				a := wf.Task("a", workflow.Run("true"))
				wf.Task("b", workflow.Run("true"), workflow.Needs(a, a), workflow.NeedsID("gone"))
				wf.Task("c", workflow.Run("true"), workflow.Needs(stranger, none))
			},
			says: []string{
				"tasks.b.needs: task a is named twice", "tasks.b.needs: there is no task gone",
				"tasks.c.needs: task elsewhere belongs to another workflow", "tasks.c.needs: number 2 is nil",
			},
		},
	})
}

func TestBuildTellsWhatNoMessageCanSay(t *testing.T) {
	t.Parallel()
	refuse(t, map[string]wrong{
		"numbers": {
			options: []workflow.Option{workflow.MaxActiveRuns(1 << 40), workflow.Defaults(workflow.Priority(1 << 40))},
			add: func(wf *workflow.Workflow) {
				wf.Task("a", workflow.Run("true"), workflow.NoRetryExitCodes(1, -1<<40), workflow.Retries(workflow.Retry{Limit: 1 << 40}),
					workflow.Trigger(11), workflow.OnLost(-1))
			},
			says: []string{
				"max_active_runs: 1099511627776 is out of bounds", "defaults.priority: 1099511627776 is out of bounds",
				"tasks.a.no_retry_exit_codes: -1099511627776 is out of bounds", "tasks.a.retries.limit: 1099511627776 is out of bounds",
				"tasks.a.trigger_rule: 11 is not known", "tasks.a.on_lost: -1 is not known",
			},
		},
		"nil options": {
			options: []workflow.Option{nil, workflow.Defaults(nil)},
			add: func(wf *workflow.Workflow) {
				wf.Param("p", nil)
				wf.Task("a", workflow.Run("true"), nil)
			},
			says: []string{
				"options: number 1 is nil", "defaults.options: number 1 is nil", "params.p.options: number 1 is nil", "tasks.a.options: number 2 is nil",
			},
		},
		"no UTF-8": {
			options: []workflow.Option{workflow.Description("\xff")},
			add: func(wf *workflow.Workflow) {
				wf.Param("p", workflow.Default("\xff"))
				wf.Task("a", workflow.Run("\xff"))
			},
			says: []string{"params.p: cannot be sent", "tasks.a: cannot be sent", "workflow: cannot be sent"},
		},
	})
}

func TestOnlyTasksThatCanTakeADefaultTakeIt(t *testing.T) {
	t.Parallel()
	wf := workflow.New("fits", workflow.Defaults(workflow.OnLost(workflow.LostFail), workflow.Env("A", "b"), workflow.Cwd("/srv")),
		workflow.Defaults(workflow.SkipExitCode(3), workflow.NoRetryExitCodes(4)))
	wf.Task("again", workflow.Run("true"), workflow.Idempotent())
	wf.Task("go", workflow.Handler("h", nil))
	wf.Task("own", workflow.Handler("h", nil), workflow.Cwd("/tmp"), workflow.Idempotent(), workflow.OnLost(workflow.LostWait))
	m, err := wf.Build()
	require.NoError(t, err)
	again, function, own := m.GetTasks()[0], m.GetTasks()[1], m.GetTasks()[2]
	require.Equal(t, writv1.OnLost_ON_LOST_UNSPECIFIED, again.GetOnLost())
	require.Equal(t, "/srv", again.GetCwd())
	require.True(t, proto.Equal(&writv1.Task{Id: "go", Handler: "h", OnLost: workflow.LostFail}, function))
	// What a task says itself is the server's to refuse.
	require.Equal(t, "/tmp", own.GetCwd())
	require.Equal(t, workflow.LostWait, own.GetOnLost())
}

func TestATaskTakesBackADefault(t *testing.T) {
	t.Parallel()
	wf := workflow.New("back", workflow.Defaults(workflow.Idempotent(), workflow.Timeout(time.Minute), workflow.Retries(workflow.Retry{Limit: 3})))
	wf.Task("a", workflow.Run("true"), workflow.NotIdempotent(), workflow.Timeout(0), workflow.Retries(workflow.Retry{}))
	m, err := wf.Build()
	require.NoError(t, err)
	require.True(t, proto.Equal(&writv1.Task{Id: "a", Run: "true"}, m.GetTasks()[0]), "%v", m)
}

func TestMessagesShareNothing(t *testing.T) {
	t.Parallel()
	codes, variables, arguments := []int{1}, map[string]string{"A": "b"}, []string{"x"}
	run := workflow.Command("p", arguments...)
	shared := []workflow.DefaultOption{workflow.NoRetryExitCodes(codes...), workflow.EnvMap(variables)}
	wf := workflow.New("w", workflow.Defaults(shared...))
	wf.Param("p", workflow.Default("d"), workflow.Enum("d"))
	a := wf.Task("a", run)
	wf.Task("b", run, workflow.Needs(a))
	codes[0], variables["A"], arguments[0] = 2, "changed", "changed"
	shared[0] = nil
	first, err := wf.Build()
	require.NoError(t, err)
	want := proto.CloneOf(first)
	first.Tasks[0].NoRetryExitCodes[0], first.Tasks[0].Env["A"], first.Tasks[0].Command[0] = 3, "mine", "mine"
	*first.Params[0].Default, first.Params[0].Enum[0] = "mine", "mine"
	require.Equal(t, "b", first.GetTasks()[1].GetEnv()["A"])
	require.Equal(t, []string{"p", "x"}, first.GetTasks()[1].GetCommand())
	second, err := wf.Build()
	require.NoError(t, err)
	require.True(t, proto.Equal(want, second))
	require.Equal(t, []int32{1}, second.GetTasks()[0].GetNoRetryExitCodes())

	wf.Task("c", workflow.Run("true"))
	third, err := wf.Build()
	require.NoError(t, err)
	require.Len(t, third.GetTasks(), 3)
}
