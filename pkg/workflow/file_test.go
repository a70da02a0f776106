package workflow_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/specfile"
	"github.com/writ-sched/writ/pkg/workflow"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// whole is a file in which every field stands, and what built says in Go.
const whole = `
name: whole
description: Says everything
timeout: 2h
max_active_runs: 4
params:
  day: {description: The day, required: true, pattern: '\d{4}'}
  region: {default: eu, enum: [eu, us]}
  note: {default: ""}
defaults:
  retries: {limit: 3, delay: 10s, backoff: 2, max_delay: 1m, jitter: 0.1}
  env: {LANG: C, REGION: eu}
  cwd: /srv
  queue: heavy
  on_lost: fail
  lost_limit: 10
  timeout: 5m
  skip_exit_code: 3
  no_retry_exit_codes: [2, 64]
tasks:
  script:
    description: A script
    run: echo "$WRIT_PARAM_DAY"
    env: {REGION: us}
    idempotent: true
  program:
    command: [./convert, --threads, "4"]
    needs: [script]
    priority: -5
    queue: gpu
    queue_timeout: 30m
    timeout: 1500ms
    skip_exit_code: -1
    no_retry_exit_codes: []
    on_lost: retry
    retries: {limit: 0, delay: 0s, backoff: 1, max_delay: 0s, jitter: 0}
  function:
    handler: mail.Send
    input: {to: [ops@example.org], price: 1.10, text: "<a & b>"}
    needs: [script, program]
    trigger_rule: none_failed_min_one_success
    allow_failure: true
`

func built() *workflow.Workflow {
	wf := workflow.New("whole",
		workflow.Description("Says everything"), workflow.Timeout(2*time.Hour), workflow.MaxActiveRuns(4),
		workflow.Defaults(
			workflow.Retries(workflow.Retry{Limit: 3, Delay: 10 * time.Second, Backoff: 2, MaxDelay: time.Minute, Jitter: 0.1}),
			workflow.Env("LANG", "C"), workflow.Env("REGION", "eu"), workflow.Cwd("/srv"), workflow.Queue("heavy"),
			workflow.OnLost(workflow.LostFail), workflow.LostLimit(10), workflow.Timeout(5*time.Minute),
			workflow.SkipExitCode(3), workflow.NoRetryExitCodes(2, 64),
		))
	wf.Param("day", workflow.Description("The day"), workflow.Required(), workflow.Pattern(`\d{4}`))
	wf.Param("region", workflow.Default("eu"), workflow.Enum("eu", "us"))
	wf.Param("note", workflow.Default(""))
	script := wf.Task("script", workflow.Description("A script"), workflow.Run(`echo "$WRIT_PARAM_DAY"`),
		workflow.EnvMap(map[string]string{"REGION": "us"}), workflow.Idempotent())
	program := wf.Task("program", workflow.Command("./convert", "--threads", "4"), workflow.Needs(script),
		workflow.Priority(-5), workflow.Queue("gpu"), workflow.QueueTimeout(30*time.Minute), workflow.Timeout(1500*time.Millisecond),
		workflow.SkipExitCode(-1), workflow.NoRetryExitCodes(), workflow.OnLost(workflow.LostRetry),
		workflow.Retries(workflow.Retry{Backoff: 1}))
	wf.Task("function", workflow.Handler("mail.Send", json.RawMessage(`{"to": ["ops@example.org"], "price": 1.10, "text": "<a & b>"}`)),
		workflow.Needs(script, program), workflow.Trigger(workflow.NoneFailedMinOneSuccess), workflow.AllowFailure())
	return wf
}

// parsed is a workflow file as a message. The stored form has the names of the
// protocol, and its own spelling of durations and words.
func parsed(t *testing.T, file string) *writv1.Workflow {
	t.Helper()
	w, err := specfile.Decode("whole.yaml", []byte(file))
	require.NoError(t, err)
	stored, err := spec.Encode(w)
	require.NoError(t, err)
	var tree map[string]any
	require.NoError(t, json.Unmarshal(stored, &tree))
	respell(t, tree)
	text, err := json.Marshal(tree)
	require.NoError(t, err)
	m := &writv1.Workflow{}
	require.NoError(t, protojson.Unmarshal(text, m), "%s", text)
	return m
}

func respell(t *testing.T, tree map[string]any) {
	t.Helper()
	for key, value := range tree {
		switch v := value.(type) {
		case map[string]any:
			respell(t, v)
		case []any:
			for _, element := range v {
				if sub, is := element.(map[string]any); is {
					respell(t, sub)
				}
			}
		case string:
			switch key {
			case "timeout", "queue_timeout", "delay", "max_delay":
				d, err := time.ParseDuration(v)
				require.NoError(t, err)
				tree[key] = strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
			case "trigger_rule", "on_lost":
				tree[key] = strings.ToUpper(key + "_" + v)
			}
		}
	}
}

func TestAWorkflowBuiltIsTheOneInTheFile(t *testing.T) {
	t.Parallel()
	got, err := built().Build()
	require.NoError(t, err)
	want := parsed(t, whole)
	require.True(t, proto.Equal(want, got), "file:  %s\nbuilt: %s", protojson.Format(want), protojson.Format(got))
}

func TestEveryFieldOfTheProtocolCanBeSaid(t *testing.T) {
	t.Parallel()
	m, err := built().Build()
	require.NoError(t, err)
	said := map[protoreflect.FullName]bool{}
	var walk func(m protoreflect.Message)
	walk = func(m protoreflect.Message) {
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			said[f.FullName()] = true
			switch {
			case f.IsMap() || f.Message() == nil:
			case f.IsList():
				for i := range v.List().Len() {
					walk(v.List().Get(i).Message())
				}
			default:
				walk(v.Message())
			}
			return true
		})
	}
	walk(m.ProtoReflect())
	for _, d := range []protoreflect.ProtoMessage{&writv1.Workflow{}, &writv1.Param{}, &writv1.Task{}, &writv1.Retry{}} {
		fields := d.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			require.True(t, said[fields.Get(i).FullName()], "%s has no option, or stands nowhere in this test", fields.Get(i).FullName())
		}
	}
}

func TestEveryTriggerRuleAndPolicyIsNamed(t *testing.T) {
	t.Parallel()
	rules := []workflow.TriggerRule{
		workflow.AllSuccess, workflow.AllFailed, workflow.AllDone, workflow.OneSuccess, workflow.OneFailed, workflow.OneDone,
		workflow.NoneFailed, workflow.NoneFailedMinOneSuccess, workflow.NoneSkipped, workflow.Always,
	}
	require.Len(t, writv1.TriggerRule_name, len(rules)+1)
	for i, rule := range rules {
		require.EqualValues(t, i+1, rule)
		require.Equal(t, "TRIGGER_RULE_"+strings.ToUpper(string(spec.TriggerRules()[i])), rule.String())
	}
	policies := []workflow.LostPolicy{workflow.LostWait, workflow.LostRetry, workflow.LostFail}
	require.Len(t, writv1.OnLost_name, len(policies)+1)
	for i, policy := range policies {
		require.EqualValues(t, i+1, policy)
	}
}
