package spec

import "github.com/writ-sched/writ/internal/record"

// Workflow is a workflow as its author meant it. The JSON form is what a
// revision stores; the YAML form has the same names (see package specfile).
type Workflow struct {
	Name        record.WorkflowName `json:"name"`
	Description string              `json:"description,omitempty"`
	// Timeout bounds a whole run, from its start; 0 means no bound.
	Timeout record.Duration `json:"timeout,omitzero"`
	// MaxActiveRuns bounds the runs that are active at once; 0 means no bound.
	MaxActiveRuns int     `json:"max_active_runs,omitempty"`
	Params        []Param `json:"params,omitempty"`
	// Tasks stand in the order of the file. Defaults of the file have already
	// been merged into them.
	Tasks []Task `json:"tasks"`
}

// Param is a value that a run is started with. It reaches every process as
// WRIT_PARAM_<NAME>, upper-case, dashes as underscores.
type Param struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Default is used where the run gives none; nil means that there is none.
	Default  *string  `json:"default,omitempty"`
	Required bool     `json:"required,omitempty"`
	Pattern  string   `json:"pattern,omitempty"` // RE2, must match the whole value
	Enum     []string `json:"enum,omitempty"`
}

// Task is one node of the graph. Exactly one of Run, Command and Handler is
// set.
type Task struct {
	ID          record.TaskID `json:"id"`
	Description string        `json:"description,omitempty"`

	// Run is a script for `sh -euc`.
	Run string `json:"run,omitempty"`
	// Command is an argument vector, started without a shell.
	Command []string `json:"command,omitempty"`
	// Handler names a function registered in a Go worker.
	Handler string `json:"handler,omitempty"`
	// Input is the JSON text handed to the handler; empty means null.
	Input string `json:"input,omitempty"`

	Needs       []record.TaskID `json:"needs,omitempty"`
	TriggerRule TriggerRule     `json:"trigger_rule,omitempty"` // "" means AllSuccess

	Idempotent bool          `json:"idempotent,omitempty"`
	OnLost     record.OnLost `json:"on_lost,omitempty"` // "" means wait; only where not idempotent
	// LostLimit is how many losses of a worker the task survives; 0 means
	// DefaultLostLimit.
	LostLimit int   `json:"lost_limit,omitempty"`
	Retries   Retry `json:"retries,omitzero"`

	// Timeout bounds one attempt on the worker; 0 means no bound.
	Timeout record.Duration `json:"timeout,omitzero"`
	// QueueTimeout bounds the wait for a start, from the moment the task was
	// ready; 0 means no bound.
	QueueTimeout record.Duration `json:"queue_timeout,omitzero"`
	// AllowFailure makes a failure of this task count as success for its
	// downstream and for the run.
	AllowFailure bool `json:"allow_failure,omitempty"`

	Queue    record.Queue `json:"queue,omitempty"` // "" means DefaultQueue
	Priority int          `json:"priority,omitempty"`

	Env map[string]string `json:"env,omitempty"`
	Cwd string            `json:"cwd,omitempty"`
	// SkipExitCode makes a process end as skipped; nil means
	// DefaultSkipExitCode, a negative number means never.
	SkipExitCode *int `json:"skip_exit_code,omitempty"`
	// NoRetryExitCodes end the task as failed without spending retries.
	NoRetryExitCodes []int `json:"no_retry_exit_codes,omitempty"`
}

// Retry says how often and when a failed task is tried again. Losses of a
// worker are counted apart (see Task.LostLimit).
type Retry struct {
	Limit int `json:"limit,omitempty"`
	// Delay is the wait before the first retry, measured from the failure.
	Delay record.Duration `json:"delay,omitzero"`
	// Backoff is the factor from one wait to the next; 0 means 1.
	Backoff float64 `json:"backoff,omitempty"`
	// MaxDelay caps one wait; 0 means no cap.
	MaxDelay record.Duration `json:"max_delay,omitzero"`
	// Jitter is the largest share of a wait that may be added to it, 0 to 1.
	Jitter float64 `json:"jitter,omitempty"`
}

// TriggerRule says when a task runs, given the states of its direct needs.
type TriggerRule string

// The trigger rules; what each means stands in docs/manual/states.md.
const (
	AllSuccess              TriggerRule = "all_success"
	AllFailed               TriggerRule = "all_failed"
	AllDone                 TriggerRule = "all_done"
	OneSuccess              TriggerRule = "one_success"
	OneFailed               TriggerRule = "one_failed"
	OneDone                 TriggerRule = "one_done"
	NoneFailed              TriggerRule = "none_failed"
	NoneFailedMinOneSuccess TriggerRule = "none_failed_min_one_success"
	NoneSkipped             TriggerRule = "none_skipped"
	Always                  TriggerRule = "always"
)

// TriggerRules lists the ten rules in the order of the manual.
func TriggerRules() []TriggerRule {
	return []TriggerRule{
		AllSuccess, AllFailed, AllDone, OneSuccess, OneFailed, OneDone,
		NoneFailed, NoneFailedMinOneSuccess, NoneSkipped, Always,
	}
}

const (
	// DefaultQueue is the queue of a task that names none.
	DefaultQueue record.Queue = "default"
	// DefaultLostLimit is DESIGN's default for lost_limit.
	DefaultLostLimit = 3
	// DefaultSkipExitCode ends a process as skipped.
	DefaultSkipExitCode = 99
	// MaxBytes is the largest encoded workflow that writ stores.
	MaxBytes = 8 << 20
	// MaxTaskBytes is the largest encoded task: one assignment carries one
	// task, and must stay well below the message limits of etcd (1.5 MiB) and
	// of gRPC (4 MiB).
	MaxTaskBytes = 1 << 20
	// MaxParamsBytes is the most that the parameters of one run may take.
	MaxParamsBytes = 64 << 10
	// MaxTasks bounds the tasks of one workflow.
	MaxTasks = 100_000
)

// Rule returns the task's trigger rule, the default filled in.
func (t *Task) Rule() TriggerRule {
	if t.TriggerRule == "" {
		return AllSuccess
	}
	return t.TriggerRule
}

// QueueName returns the task's queue, the default filled in.
func (t *Task) QueueName() record.Queue {
	if t.Queue == "" {
		return DefaultQueue
	}
	return t.Queue
}

// Lost returns what happens when the worker of a non-idempotent attempt is
// lost; it is empty for an idempotent task.
func (t *Task) Lost() record.OnLost {
	switch {
	case t.Idempotent:
		return ""
	case t.OnLost == "":
		return record.OnLostWait
	default:
		return t.OnLost
	}
}

// Losses returns the task's loss limit, the default filled in.
func (t *Task) Losses() int {
	if t.LostLimit == 0 {
		return DefaultLostLimit
	}
	return t.LostLimit
}

// SkipCode returns the exit code that ends the task as skipped; ok is false
// where no code does.
func (t *Task) SkipCode() (code int, ok bool) {
	if t.SkipExitCode == nil {
		return DefaultSkipExitCode, true
	}
	return *t.SkipExitCode, *t.SkipExitCode >= 0
}
