package specfile

import (
	"go.yaml.in/yaml/v4"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// draft is a workflow while its file is read.
type draft struct {
	spec.Workflow
	// defaults is what every task starts as.
	defaults spec.Task
}

// The fields stand in the order in which they are read and documented. The manual
// (docs/manual/workflow-file.md) has a row for each.

func workflowFields() []field[draft] {
	return []field[draft]{
		of("name", "Names the workflow.", name[record.WorkflowName](record.MaxWorkflowName), func(w *draft) *record.WorkflowName { return &w.Name }).must(),
		of("description", "Says what the workflow is for.", text[string](), func(w *draft) *string { return &w.Description }),
		of("timeout", "Bounds a whole run, from its start. Default: no bound.", duration(), func(w *draft) *record.Duration { return &w.Timeout }),
		of("max_active_runs", "Bounds the runs that are active at once. Default: no bound.", whole(0, spec.MaxActive), func(w *draft) *int { return &w.MaxActiveRuns }),
		of("params", "What a run is started with, by name.", params(), func(w *draft) *[]spec.Param { return &w.Params }),
		of("defaults", "What every task starts with; a task's own fields win.", defaults(), func(w *draft) *spec.Task { return &w.defaults }),
		of("tasks", "The tasks, by id.", tasks(), func(w *draft) *draft { return w }).must(),
	}
}

func paramFields() []field[spec.Param] {
	return []field[spec.Param]{
		of("description", "Says what the parameter is for.", text[string](), func(p *spec.Param) *string { return &p.Description }),
		of("default", "Is used where a run gives no value. Exactly one of default and required: true is given.", optional(), func(p *spec.Param) **string { return &p.Default }),
		of("required", "Makes a run without the parameter be refused.", flag(), func(p *spec.Param) *bool { return &p.Required }),
		of("pattern", "A regular expression (RE2) that the whole value must match.", script[string](), func(p *spec.Param) *string { return &p.Pattern }),
		of("enum", "The values that are allowed.", list(text[string](), 1), func(p *spec.Param) *[]string { return &p.Enum }),
	}
}

func taskFields() []field[spec.Task] {
	name63 := name[record.TaskID](record.MaxName)
	losts := []record.OnLost{record.OnLostWait, record.OnLostRetry, record.OnLostFail}
	return []field[spec.Task]{
		of("description", "Says what the task is for.", text[string](), func(t *spec.Task) *string { return &t.Description }),
		of("run", "A shell script, run by sh -euc.", script[string](), func(t *spec.Task) *string { return &t.Run }),
		of("command", "A program and its arguments, started without a shell.", list(text[string](), 1), func(t *spec.Task) *[]string { return &t.Command }),
		of("handler", "A function that a Go worker has registered.", script[string](), func(t *spec.Task) *string { return &t.Handler }),
		of("input", "Any value, handed to the handler as JSON.", anything(), func(t *spec.Task) *string { return &t.Input }),
		of("needs", "The tasks that come before this one.", list(name63, 0), func(t *spec.Task) *[]record.TaskID { return &t.Needs }),
		of("trigger_rule", "Says when the task runs, given how its needs ended. Default: all_success.", choice(spec.TriggerRules(), triggerMeaning), func(t *spec.Task) *spec.TriggerRule { return &t.TriggerRule }),
		of("allow_failure", "Makes a failure of this task count as success for the tasks after it and for the run.", flag(), func(t *spec.Task) *bool { return &t.AllowFailure }),
		of("idempotent", "Says that the task may run twice, and at the same time.", flag(), func(t *spec.Task) *bool { return &t.Idempotent }).share(),
		of("on_lost", "What happens when the worker of a task that is not idempotent is lost. Default: wait.", choice(losts, lostMeaning), func(t *spec.Task) *record.OnLost { return &t.OnLost }).share(),
		of("lost_limit", "How many losses of its worker the task survives. Default: 3.", whole(1, spec.MaxRetries), func(t *spec.Task) *int { return &t.LostLimit }).share(),
		of("retries", "How often and when the task is tried again after a failure.", retries(), func(t *spec.Task) *spec.Retry { return &t.Retries }).share(),
		of("timeout", "Bounds one attempt. Default: no bound.", duration(), func(t *spec.Task) *record.Duration { return &t.Timeout }).share(),
		of("queue_timeout", "Bounds the wait for a start, from the moment the task was ready. Default: no bound.", duration(), func(t *spec.Task) *record.Duration { return &t.QueueTimeout }).share(),
		of("queue", "The queue that the task waits in; workers say which queues they serve. Default: default.", name[record.Queue](record.MaxName), func(t *spec.Task) *record.Queue { return &t.Queue }).share(),
		of("priority", "The highest goes first. Default: 0.", whole(-spec.MaxPriority, spec.MaxPriority), func(t *spec.Task) *int { return &t.Priority }).share(),
		of("env", "Variables for the process.", environment(), func(t *spec.Task) *map[string]string { return &t.Env }).share(),
		of("cwd", "The directory that the process starts in, absolute. Default: the worker's own.", script[string](), func(t *spec.Task) *string { return &t.Cwd }).share(),
		of("skip_exit_code", "The exit code that ends the task as skipped; -1 for none. Default: 99.", settable(-1, 255), func(t *spec.Task) **int { return &t.SkipExitCode }).share(),
		of("no_retry_exit_codes", "Exit codes that end the task as failed whatever retries are left.", list(whole(1, 255), 0), func(t *spec.Task) *[]int { return &t.NoRetryExitCodes }).share(),
	}
}

func retryFields() []field[spec.Retry] {
	return []field[spec.Retry]{
		of("limit", "How many times a failed task is tried again. Default: 0.", whole(0, spec.MaxRetries), func(r *spec.Retry) *int { return &r.Limit }),
		of("delay", "The wait before the first retry, from the failure. Default: none.", duration(), func(r *spec.Retry) *record.Duration { return &r.Delay }),
		of("backoff", "The factor from one wait to the next. Default: 1.", number(1, spec.MaxBackoff), func(r *spec.Retry) *float64 { return &r.Backoff }),
		of("max_delay", "The longest wait. Default: no bound.", duration(), func(r *spec.Retry) *record.Duration { return &r.MaxDelay }),
		of("jitter", "The largest share of a wait that may be added to it by chance. Default: 0.", number(0, 1), func(r *spec.Retry) *float64 { return &r.Jitter }),
	}
}

const (
	triggerMeaning = "all_success: all succeeded; otherwise upstream_failed after a failure, else skipped. " +
		"all_failed: all failed; otherwise skipped. " +
		"all_done: all ended, however they ended, all skipped too. " +
		"one_success: as soon as one succeeded; none did: upstream_failed after a failure, else (all skipped too) skipped. " +
		"one_failed: as soon as one failed; none did (all skipped too): skipped. " +
		"one_done: as soon as one succeeded or failed; all skipped: skipped. " +
		"none_failed: all ended and none failed, all skipped too; otherwise upstream_failed. " +
		"none_failed_min_one_success: all ended, none failed and one succeeded; otherwise upstream_failed after a failure; all skipped: skipped. " +
		"none_skipped: all ended and none was skipped; otherwise (all skipped too) skipped. " +
		"always: at once."
	lostMeaning = "wait: the task stays as it is until the worker is back, or an operator decides. " +
		"retry: it runs again once the old process is proven dead. " +
		"fail: it fails as soon as the worker is gone."
)

func retries() kind[spec.Retry] {
	return kind[spec.Retry]{schema: ref("retries"), read: func(d *decoder, at spec.Path, n *yaml.Node, into *spec.Retry) {
		fill(d, at, n, d.retryFields, into)
	}}
}

func params() kind[[]spec.Param] {
	schema := map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": namePattern(record.MaxName)}, "additionalProperties": ref("param")}
	return kind[[]spec.Param]{schema: schema, read: func(d *decoder, at spec.Path, n *yaml.Node, into *[]spec.Param) {
		d.entries(at, n, func(key string, _, v *yaml.Node) {
			p := spec.Param{Name: key}
			fill(d, at.At(key), v, d.paramFields, &p)
			*into = append(*into, p)
		})
	}}
}

func defaults() kind[spec.Task] {
	return kind[spec.Task]{schema: ref("defaults"), read: func(d *decoder, at spec.Path, n *yaml.Node, into *spec.Task) {
		fill(d, at, n, d.sharedFields, into)
	}}
}

func tasks() kind[draft] {
	schema := map[string]any{
		"type": "object", "minProperties": 1,
		"propertyNames": map[string]any{"pattern": namePattern(record.MaxName)}, "additionalProperties": ref("task"),
	}
	return kind[draft]{schema: schema, read: func(d *decoder, at spec.Path, n *yaml.Node, into *draft) {
		d.entries(at, n, func(key string, _, v *yaml.Node) {
			into.Tasks = append(into.Tasks, d.task(at.At(key), v, key, into.defaults))
		})
	}}
}

func ref(name string) map[string]any { return map[string]any{"$ref": "#/$defs/" + name} }
