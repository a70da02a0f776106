package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/api"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func anyDuration(t *rapid.T, label string) record.Duration {
	return record.Duration(rapid.Int64Range(0, int64(spec.MaxDuration)).Draw(t, label))
}

func anyText(t *rapid.T, label string) string { return rapid.StringN(0, 20, 60).Draw(t, label) }

// some draws a list, nil where it is empty.
func some[T any](t *rapid.T, label string, g *rapid.Generator[T]) []T {
	list := rapid.SliceOfN(g, 0, 3).Draw(t, label)
	if len(list) == 0 {
		return nil
	}
	return list
}

func anyTask(t *rapid.T) spec.Task {
	task := spec.Task{
		ID: record.TaskID(anyText(t, "id")), Description: anyText(t, "description"), Run: anyText(t, "run"),
		Command: some(t, "command", rapid.String()), Handler: anyText(t, "handler"), Input: anyText(t, "input"),
		TriggerRule: rapid.SampledFrom(api.TriggerRules()).Draw(t, "rule"), Idempotent: rapid.Bool().Draw(t, "idempotent"),
		OnLost: rapid.SampledFrom(api.LostPolicies()).Draw(t, "on lost"), LostLimit: rapid.IntRange(0, spec.MaxRetries).Draw(t, "lost limit"),
		Retries: spec.Retry{
			Limit: rapid.IntRange(0, spec.MaxRetries).Draw(t, "retries"), Delay: anyDuration(t, "delay"),
			Backoff: rapid.Float64Range(0, spec.MaxBackoff).Draw(t, "backoff"), MaxDelay: anyDuration(t, "max delay"), Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter"),
		},
		Timeout: anyDuration(t, "timeout"), QueueTimeout: anyDuration(t, "queue timeout"), AllowFailure: rapid.Bool().Draw(t, "allow failure"),
		Queue: record.Queue(anyText(t, "queue")), Priority: rapid.IntRange(-spec.MaxPriority, spec.MaxPriority).Draw(t, "priority"), Cwd: anyText(t, "cwd"),
		NoRetryExitCodes: some(t, "no retry", rapid.IntRange(0, 255)),
	}
	for _, need := range some(t, "needs", rapid.String()) {
		task.Needs = append(task.Needs, record.TaskID(need))
	}
	if env := rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "env"); len(env) > 0 {
		task.Env = env
	}
	if rapid.Bool().Draw(t, "has skip code") {
		code := rapid.IntRange(-1, 255).Draw(t, "skip code")
		task.SkipExitCode = &code
	}
	return task
}

func anyWorkflow(t *rapid.T) *spec.Workflow {
	w := &spec.Workflow{
		Name: record.WorkflowName(anyText(t, "name")), Description: anyText(t, "description"), Timeout: anyDuration(t, "timeout"),
		MaxActiveRuns: rapid.IntRange(0, spec.MaxActive).Draw(t, "max active runs"),
		Tasks:         some(t, "tasks", rapid.Custom(anyTask)),
	}
	for range rapid.IntRange(0, 3).Draw(t, "params") {
		p := spec.Param{
			Name: anyText(t, "param"), Description: anyText(t, "description"), Required: rapid.Bool().Draw(t, "required"),
			Pattern: anyText(t, "pattern"), Enum: some(t, "enum", rapid.String()),
		}
		if rapid.Bool().Draw(t, "has default") {
			value := anyText(t, "default")
			p.Default = &value
		}
		w.Params = append(w.Params, p)
	}
	return w
}

func TestWorkflowsComeBackFromTheProtocolAsTheyWere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorkflow(t)
		wire, err := proto.Marshal(api.ToWorkflow(w))
		require.NoError(t, err)
		var m writv1.Workflow
		require.NoError(t, proto.Unmarshal(wire, &m))
		back, problems := api.ReadWorkflow(&m)
		require.Empty(t, problems)
		require.Equal(t, w, back)
		require.True(t, proto.Equal(&m, api.ToWorkflow(back)))
	})
}

func TestEveryFieldOfAWorkflowIsConverted(t *testing.T) {
	t.Parallel()
	code, text := 3, "x"
	task := spec.Task{
		ID: "a", Description: "d", Run: "r", Command: []string{"c"}, Handler: "h", Input: "i", Needs: []record.TaskID{"n"},
		TriggerRule: spec.Always, Idempotent: true, OnLost: record.OnLostFail, LostLimit: 1,
		Retries: spec.Retry{Limit: 1, Delay: 1, Backoff: 1, MaxDelay: 1, Jitter: 1},
		Timeout: 1, QueueTimeout: 1, AllowFailure: true, Queue: "q", Priority: 1, Env: map[string]string{"e": "v"}, Cwd: "/",
		SkipExitCode: &code, NoRetryExitCodes: []int{1},
	}
	w := &spec.Workflow{
		Name: "w", Description: "d", Timeout: 1, MaxActiveRuns: 1, Tasks: []spec.Task{task},
		Params: []spec.Param{{Name: "p", Description: "d", Default: &text, Required: true, Pattern: "p", Enum: []string{"e"}}},
	}
	m := api.ToWorkflow(w)
	for _, part := range []proto.Message{m, m.GetTasks()[0], m.GetTasks()[0].GetRetries(), m.GetParams()[0]} {
		fields := part.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			require.True(t, part.ProtoReflect().Has(fields.Get(i)), "%s is not converted", fields.Get(i).FullName())
		}
	}
	back, problems := api.ReadWorkflow(m)
	require.Empty(t, problems)
	require.Equal(t, w, back)
}

func TestMessagesThatNoSpecCanSayAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	_, problems := api.ReadWorkflow(&writv1.Workflow{
		Timeout: &durationpb.Duration{Seconds: 1, Nanos: -1},
		Params:  []*writv1.Param{nil},
		Tasks:   []*writv1.Task{nil, {Id: "a", TriggerRule: 99, OnLost: -1, Retries: &writv1.Retry{Delay: &durationpb.Duration{Seconds: 1 << 60}}}},
	})
	var places []string
	for _, p := range problems {
		places = append(places, p.Path.String())
	}
	require.ElementsMatch(t, []string{"timeout", "params[0]", "tasks[0]", "tasks.a.trigger_rule", "tasks.a.on_lost", "tasks.a.retries.delay"}, places)
}

func TestWordsOfRecordsAreThoseOfTheProtocol(t *testing.T) {
	t.Parallel()
	same := func(enum, prefix, word string) {
		require.Equal(t, strings.ToUpper(word), strings.TrimPrefix(enum, prefix))
	}
	for _, s := range record.RunStates() {
		same(api.ToRunState(s).String(), "RUN_STATE_", string(s))
	}
	for _, s := range record.AttemptStates() {
		same(api.ToTaskState(s).String(), "TASK_STATE_", string(s))
	}
	require.Equal(t, writv1.TaskState_TASK_STATE_UNSPECIFIED, api.ToTaskState(record.None))
	for _, k := range []record.Kind{record.KindExec, record.KindWait, record.KindChild} {
		same(api.ToKind(k).String(), "ATTEMPT_KIND_", string(k))
	}
	require.Len(t, api.TriggerRules(), len(writv1.TriggerRule_name))
	for i, rule := range api.TriggerRules()[1:] {
		same(writv1.TriggerRule(i+1).String(), "TRIGGER_RULE_", string(rule))
	}
	require.Len(t, api.LostPolicies(), len(writv1.OnLost_name))
	for i, policy := range api.LostPolicies()[1:] {
		same(writv1.OnLost(i+1).String(), "ON_LOST_", string(policy))
	}
}

func TestMadeSuffixesSortByTimeAndAreNobodyElses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMilli(rapid.Int64Range(0, 1<<44).Draw(t, "now"))
		early, late := api.MakeSuffix(now), api.MakeSuffix(now.Add(time.Millisecond))
		require.NoError(t, record.CheckSuffix(early))
		require.Less(t, early, late)
		require.NotEqual(t, early, api.MakeSuffix(now))
	})
}
