package spec_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// valid is a workflow that uses every field, and is changed by each case.
func valid() *spec.Workflow {
	none, code := "", 42
	return &spec.Workflow{
		Name: "nightly", Description: "All of it.", Timeout: record.Duration(time.Hour), MaxActiveRuns: 2,
		Params: []spec.Param{
			{Name: "region", Default: &none, Enum: []string{"", "eu", "us"}},
			{Name: "day", Required: true, Pattern: `\d{4}-\d\d-\d\d`, Description: "ISO"},
		},
		Tasks: []spec.Task{
			{
				ID: "get", Run: "curl -f $URL", Env: map[string]string{"URL": "https://example.org"}, Cwd: "/tmp",
				Retries: spec.Retry{Limit: 3, Delay: record.Duration(time.Second), Backoff: 2, MaxDelay: record.Duration(time.Minute), Jitter: 0.5},
				Timeout: record.Duration(time.Minute), QueueTimeout: record.Duration(time.Hour), SkipExitCode: &code, NoRetryExitCodes: []int{2, 3},
				OnLost: record.OnLostRetry, LostLimit: 5, Queue: "net", Priority: -5,
			},
			{ID: "load", Command: []string{"load", "--all"}, Needs: []record.TaskID{"get"}, Idempotent: true, AllowFailure: true},
			{ID: "tell", Handler: "mail.Send", Input: `{"to":["a"]}`, Needs: []record.TaskID{"get", "load"}, TriggerRule: spec.AllDone},
		},
	}
}

func texts(ps []spec.Problem) []string {
	var all []string
	for _, p := range ps {
		all = append(all, p.String())
	}
	return all
}

type change func(w *spec.Workflow)

// refused checks that each change of a valid workflow gives exactly the one
// problem, found by its beginning.
func refused(t *testing.T, cases map[string]change) {
	t.Helper()
	for says, change := range cases {
		w := valid()
		change(w)
		found := texts(spec.Validate(w))
		require.Len(t, found, 1, "%s: %q", says, found)
		require.True(t, strings.HasPrefix(found[0], says), "expected %q, got %q", says, found[0])
	}
}

func TestAWorkflowThatUsesEveryFieldIsTaken(t *testing.T) {
	t.Parallel()
	require.Empty(t, texts(spec.Validate(valid())))
}

func TestWorkflowAndParamsAreChecked(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	refused(t, map[string]change{
		"name: is empty": func(w *spec.Workflow) { w.Name = "" },
		`name: "Ni ght" does not match [a-z0-9][a-z0-9_-]{0,62} (hint: for example ni-ght)`: func(w *spec.Workflow) { w.Name = "Ni ght" },
		`name: "报表" does not match`:                                      func(w *spec.Workflow) { w.Name = "报表" },
		"name: \"nnnn":                                                   func(w *spec.Workflow) { w.Name = record.WorkflowName(strings.Repeat("n", 41)) },
		"description: is not valid UTF-8":                                func(w *spec.Workflow) { w.Description = "\xff" },
		"description: is 4097 bytes long, at most 4096":                  func(w *spec.Workflow) { w.Description = strings.Repeat("d", 4097) },
		"timeout: is -1s, expected no negative":                          func(w *spec.Workflow) { w.Timeout = -record.Duration(time.Second) },
		"timeout: is 9000h0m0s, expected at most 8784h0m0s":              func(w *spec.Workflow) { w.Timeout = record.Duration(9000 * time.Hour) },
		"max_active_runs: is -1, expected 0 to 100000":                   func(w *spec.Workflow) { w.MaxActiveRuns = -1 },
		"params: are 1001":                                               func(w *spec.Workflow) { w.Params = make([]spec.Param, 1001) },
		"params.Day: name \"Day\" does not match":                        func(w *spec.Workflow) { w.Params[1].Name = "Day" },
		"params.day: reaches the tasks as WRIT_PARAM_DAY, and so does":   func(w *spec.Workflow) { w.Params[0].Name = "day" },
		"params.a-b: reaches the tasks as WRIT_PARAM_A_B, and so does":   func(w *spec.Workflow) { w.Params[0].Name, w.Params[1].Name = "a_b", "a-b" },
		"params.region.required: is true although there is a default":    func(w *spec.Workflow) { w.Params[0].Required = true },
		"params.day: has neither a default nor required":                 func(w *spec.Workflow) { w.Params[1].Required = false },
		"params.day.pattern: error parsing regexp: missing":              func(w *spec.Workflow) { w.Params[1].Pattern = "(" },
		"params.day.pattern: error parsing regexp: unexpected":           func(w *spec.Workflow) { w.Params[1].Pattern = "a)|(b" },
		"params.day.pattern: is 1025 bytes":                              func(w *spec.Workflow) { w.Params[1].Pattern = strings.Repeat("a", 1025) },
		`params.region.default: "eu" does not match the pattern "|us"`:   func(w *spec.Workflow) { w.Params[0] = spec.Param{Name: "region", Default: text("eu"), Pattern: "|us"} },
		`params.region.default: "de" is none of "", "eu", "us"`:          func(w *spec.Workflow) { w.Params[0].Default = text("de") },
		`params.region.default: holds a NUL`:                             func(w *spec.Workflow) { w.Params[0] = spec.Param{Name: "region", Default: text("\x00")} },
		`params.region.enum[3]: "eu" stands here twice`:                  func(w *spec.Workflow) { w.Params[0].Enum = append(w.Params[0].Enum, "eu") },
		`params.region.enum[2]: "us" does not match the pattern "|e[u]"`: func(w *spec.Workflow) { w.Params[0].Pattern = "|e[u]" },
		"params.region.enum: has 1001 values":                            func(w *spec.Workflow) { w.Params[0].Enum = make([]string, 1001) },
	})
}

func TestWhatATaskDoesIsChecked(t *testing.T) {
	t.Parallel()
	refused(t, map[string]change{
		"tasks.load: does nothing, expected one of":                  func(w *spec.Workflow) { w.Tasks[1].Command = nil },
		"tasks.load: has run and command, expected exactly":          func(w *spec.Workflow) { w.Tasks[1].Run = "true" },
		"tasks.tell: has command and handler, expected":              func(w *spec.Workflow) { w.Tasks[2].Command, w.Tasks[2].Input = []string{"x"}, "" },
		"tasks.load.command[0]: is empty":                            func(w *spec.Workflow) { w.Tasks[1].Command[0] = "" },
		"tasks.load.command[1]: holds a NUL":                         func(w *spec.Workflow) { w.Tasks[1].Command[1] = "a\x00" },
		"tasks.load.command[1]: is 131072 bytes long, at most":       func(w *spec.Workflow) { w.Tasks[1].Command[1] = strings.Repeat("x", 131_072) },
		"tasks.get.run: is 1200000 bytes long, at most 131071":       func(w *spec.Workflow) { w.Tasks[0].Run = strings.Repeat("x", 1_200_000) },
		"tasks.load: command and env are 1048608 bytes":              func(w *spec.Workflow) { w.Tasks[1].Command = make1MiB() },
		`tasks.tell.handler: "a b" is not the name`:                  func(w *spec.Workflow) { w.Tasks[2].Handler = "a b" },
		"tasks.tell.handler: is 129 bytes":                           func(w *spec.Workflow) { w.Tasks[2].Handler = strings.Repeat("h", 129) },
		"tasks.tell.input: is not JSON":                              func(w *spec.Workflow) { w.Tasks[2].Input = "{" },
		"tasks.load.input: is only for a handler":                    func(w *spec.Workflow) { w.Tasks[1].Input = "1" },
		"tasks.tell.env: is only for a process":                      func(w *spec.Workflow) { w.Tasks[2].Env = map[string]string{"A": "b"} },
		"tasks.tell.cwd: is only for a process":                      func(w *spec.Workflow) { w.Tasks[2].Cwd = "/" },
		"tasks.tell.skip_exit_code: is only for a process":           func(w *spec.Workflow) { w.Tasks[2].SkipExitCode = new(int) },
		"tasks.tell.no_retry_exit_codes: is only for a process":      func(w *spec.Workflow) { w.Tasks[2].NoRetryExitCodes = []int{1} },
		"tasks.get.cwd: \"tmp\" is relative":                         func(w *spec.Workflow) { w.Tasks[0].Cwd = "tmp" },
		"tasks.get.skip_exit_code: is 0, expected 1 to 255, or -1":   func(w *spec.Workflow) { *w.Tasks[0].SkipExitCode = 0 },
		"tasks.get.skip_exit_code: is 256":                           func(w *spec.Workflow) { *w.Tasks[0].SkipExitCode = 256 },
		"tasks.get.no_retry_exit_codes[1]: is 0, expected 1 to 255":  func(w *spec.Workflow) { w.Tasks[0].NoRetryExitCodes[1] = 0 },
		"tasks.get.no_retry_exit_codes[1]: 2 stands here twice":      func(w *spec.Workflow) { w.Tasks[0].NoRetryExitCodes[1] = 2 },
		"tasks.get.no_retry_exit_codes: are 256":                     func(w *spec.Workflow) { w.Tasks[0].NoRetryExitCodes = make([]int, 256) },
		`tasks.get.env.1A: "1A" is not the name of a variable`:       func(w *spec.Workflow) { w.Tasks[0].Env["1A"] = "" },
		`tasks.get.env."A=B": "A=B" is not the name`:                 func(w *spec.Workflow) { w.Tasks[0].Env["A=B"] = "" },
		`tasks.get.env."": "" is not the name`:                       func(w *spec.Workflow) { w.Tasks[0].Env[""] = "" },
		"tasks.get.env.WRIT_TOKEN: names that begin with WRIT_":      func(w *spec.Workflow) { w.Tasks[0].Env["WRIT_TOKEN"] = "" },
		"tasks.get.env.A: holds a NUL byte":                          func(w *spec.Workflow) { w.Tasks[0].Env["A"] = "\x00" },
		"tasks.get.env.A: is not valid UTF-8":                        func(w *spec.Workflow) { w.Tasks[0].Env["A"] = "\xc3" },
		"tasks.get.env.A: is 131070 bytes long, at most 131069":      func(w *spec.Workflow) { w.Tasks[0].Env["A"] = strings.Repeat("x", 131_070) },
		"tasks.tell.description: is not valid UTF-8":                 func(w *spec.Workflow) { w.Tasks[2].Description = "\xff" },
		"tasks.tell: is 1048665 bytes encoded, at most 1048576 are":  func(w *spec.Workflow) { w.Tasks[2].Input = "1" + strings.Repeat("0", 1_048_569) },
		"the workflow is 8500613 bytes encoded, at most 8388608 are": func(w *spec.Workflow) { w.Tasks = append(w.Tasks, large(17)...) },
	})
}

// make1MiB is a command of many words, none too long.
func make1MiB() []string {
	words := make([]string, 0, 8)
	for range 8 {
		words = append(words, strings.Repeat("x", 131_057))
	}
	return append(words, strings.Repeat("y", 62))
}

func large(n int) []spec.Task {
	tasks := make([]spec.Task, n)
	for i := range tasks {
		tasks[i] = spec.Task{ID: number(i), Handler: "h", Input: "1" + strings.Repeat("0", 499_949)}
	}
	return tasks
}

func TestWhenATaskRunsIsChecked(t *testing.T) {
	t.Parallel()
	refused(t, map[string]change{
		"tasks: is empty": func(w *spec.Workflow) { w.Tasks = nil },
		`tasks."Get it": task "Get it" does not match`:                                                   func(w *spec.Workflow) { w.Tasks = []spec.Task{{ID: "Get it", Run: "true"}} },
		"tasks.get: stands here twice":                                                                   func(w *spec.Workflow) { w.Tasks = append(w.Tasks, spec.Task{ID: "get", Run: "true"}) },
		"tasks.a-b: hands its outputs on as WRIT_INPUT_A_B, and so does \"a_b\"":                         func(w *spec.Workflow) { w.Tasks = []spec.Task{{ID: "a_b", Run: "true"}, {ID: "a-b", Run: "true"}} },
		`tasks.tell.trigger_rule: "all_dun" is no trigger rule, expected one of "all_success"`:           func(w *spec.Workflow) { w.Tasks[2].TriggerRule = "all_dun" },
		"tasks.get.trigger_rule: all_done asks about upstream tasks":                                     func(w *spec.Workflow) { w.Tasks[0].TriggerRule = spec.AllDone },
		"tasks.get.on_lost: \"run\" is unknown, expected one of \"wait\", \"retry\", \"fail\"":           func(w *spec.Workflow) { w.Tasks[0].OnLost = "run" },
		"tasks.load.on_lost: is only for a task that is not idempotent":                                  func(w *spec.Workflow) { w.Tasks[1].OnLost = record.OnLostWait },
		"tasks.tell.on_lost: retry is refused for a handler":                                             func(w *spec.Workflow) { w.Tasks[2].OnLost = record.OnLostRetry },
		"tasks.get.lost_limit: is -1, expected 0 to 1000 (hint: leave it out for the default of 3)":      func(w *spec.Workflow) { w.Tasks[0].LostLimit = -1 },
		"tasks.get.timeout: is -1ns":                                                                     func(w *spec.Workflow) { w.Tasks[0].Timeout = -1 },
		"tasks.get.queue_timeout: is -1ns":                                                               func(w *spec.Workflow) { w.Tasks[0].QueueTimeout = -1 },
		"tasks.get.priority: is 1001, expected -1000 to 1000":                                            func(w *spec.Workflow) { w.Tasks[0].Priority = 1001 },
		"tasks.get.queue: \"a/b\" does not match [a-z0-9][a-z0-9_-]{0,62} (hint: for example a-b)":       func(w *spec.Workflow) { w.Tasks[0].Queue = "a/b" },
		"tasks.get.retries.limit: is -1, expected 0 to 1000":                                             func(w *spec.Workflow) { w.Tasks[0].Retries.Limit = -1 },
		"tasks.get.retries.delay: is -1ns":                                                               func(w *spec.Workflow) { w.Tasks[0].Retries.Delay = -1 },
		"tasks.get.retries.max_delay: is 1ms, expected at least the delay of 1s":                         func(w *spec.Workflow) { w.Tasks[0].Retries.MaxDelay = record.Duration(time.Millisecond) },
		"tasks.get.retries.backoff: is 0.5, expected 1 to 100":                                           func(w *spec.Workflow) { w.Tasks[0].Retries.Backoff = 0.5 },
		"tasks.get.retries.backoff: is NaN":                                                              func(w *spec.Workflow) { w.Tasks[0].Retries.Backoff = math.NaN() },
		"tasks.get.retries.jitter: is 1.5, expected 0 to 1":                                              func(w *spec.Workflow) { w.Tasks[0].Retries.Jitter = 1.5 },
		"tasks.get.retries.jitter: is +Inf":                                                              func(w *spec.Workflow) { w.Tasks[0].Retries.Jitter = math.Inf(1) },
		"tasks.load.needs[0]: there is no task \"gte\" (hint: did you mean get?)":                        func(w *spec.Workflow) { w.Tasks[1].Needs[0] = "gte" },
		"tasks.tell.needs[1]: \"get\" stands here twice":                                                 func(w *spec.Workflow) { w.Tasks[2].Needs[1] = "get" },
		"tasks.get.needs[0]: the task needs itself: get → get":                                           func(w *spec.Workflow) { w.Tasks[0].Needs = []record.TaskID{"get"} },
		"tasks.tell.needs[0]: closes a cycle of 2 tasks: get → tell → get (hint: read → as needs, and t": func(w *spec.Workflow) { w.Tasks[0].Needs = []record.TaskID{"tell"} },
	})
}

func TestO28ACycleIsNamedInFull(t *testing.T) {
	t.Parallel()
	ring := chain(5000)
	ring.Tasks[0].Needs = []record.TaskID{number(4999)}
	found := spec.Validate(ring)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Text, "closes a cycle of 5000 tasks: t00000 → t04999 → t04998 → ")
	require.Equal(t, 5000, strings.Count(found[0].Text, " → "))

	back := chain(5000)
	back.Tasks[100].Needs = append(back.Tasks[100].Needs, number(102))
	require.Equal(t, []string{"tasks.t00101.needs[0]: closes a cycle of 3 tasks: t00100 → t00102 → t00101 → t00100 (hint: read → as needs, and take one of these needs out)"},
		texts(spec.Validate(back)))

	// Two cycles apart are named both; two that share a task one by one.
	apart := chain(10)
	apart.Tasks[0].Needs = []record.TaskID{number(1)}
	apart.Tasks[5].Needs = append(apart.Tasks[5].Needs, number(6), number(7))
	require.Equal(t, []string{
		"tasks.t00001.needs[0]: closes a cycle of 2 tasks: t00000 → t00001 → t00000 (hint: read → as needs, and take one of these needs out)",
		"tasks.t00006.needs[0]: closes a cycle of 2 tasks: t00005 → t00006 → t00005 (hint: read → as needs, and take one of these needs out)",
	}, texts(spec.Validate(apart)))
}

func TestProblemsAreCappedAndAlwaysInOneOrder(t *testing.T) {
	t.Parallel()
	w := chain(1000)
	for i := range w.Tasks {
		w.Tasks[i].Env = map[string]string{"1": "", "2": "", "3": ""}
	}
	found := texts(spec.Validate(w))
	require.Len(t, found, spec.MaxProblems+1)
	require.Equal(t, "has more problems than the 100 that are shown", found[spec.MaxProblems])
	require.Contains(t, found[1], "tasks.t00000.env.2")
	require.Equal(t, found, texts(spec.Validate(w)))
}

func TestO21LimitsAreKnownBeforeTheRun(t *testing.T) {
	t.Parallel()
	w := fan(10_000)
	for i := range w.Tasks {
		w.Tasks[i].Env = map[string]string{"A": strings.Repeat("x", 200)}
	}
	require.Empty(t, texts(spec.Validate(w)))

	many := &spec.Workflow{Name: "many", Tasks: make([]spec.Task, spec.MaxTasks+1)}
	require.Contains(t, spec.Validate(many)[0].String(), "tasks: are 100001, at most 100000 are allowed")

	script := fmt.Sprintf("echo %s", strings.Repeat("x", spec.MaxArgBytes-5))
	w = &spec.Workflow{Name: "long", Tasks: []spec.Task{{ID: "a", Run: script}}}
	require.Empty(t, texts(spec.Validate(w)))
}
