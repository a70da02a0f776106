package workflow

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// TaskOption says something about a task: what it does ([Run], [Command],
// [Handler]), when ([Needs], [NeedsID], [Trigger], [AllowFailure]), how (every
// [DefaultOption]), and what for ([Description]).
type TaskOption interface{ task(d *draft) }

// DefaultOption says how a task runs, and may stand in [Defaults] as well as
// with a task.
type DefaultOption interface {
	TaskOption
	mayBeDefault()
}

// TriggerRule says when a task runs, given how its needs ended.
type TriggerRule = writv1.TriggerRule

// The trigger rules. Bad is failed, upstream_failed or cancelled; a failed task
// with [AllowFailure] counts as success. A task whose rule is not met ends as
// skipped or upstream_failed, see the manual.
const (
	// AllSuccess runs when all succeeded. It is the rule of a task that names
	// none.
	AllSuccess = writv1.TriggerRule_TRIGGER_RULE_ALL_SUCCESS
	// AllFailed runs when all have ended, all bad.
	AllFailed = writv1.TriggerRule_TRIGGER_RULE_ALL_FAILED
	// AllDone runs when all have ended, however they ended.
	AllDone = writv1.TriggerRule_TRIGGER_RULE_ALL_DONE
	// OneSuccess runs as soon as one succeeded.
	OneSuccess = writv1.TriggerRule_TRIGGER_RULE_ONE_SUCCESS
	// OneFailed runs as soon as one is bad.
	OneFailed = writv1.TriggerRule_TRIGGER_RULE_ONE_FAILED
	// OneDone runs as soon as one succeeded or is bad.
	OneDone = writv1.TriggerRule_TRIGGER_RULE_ONE_DONE
	// NoneFailed runs when all have ended, none bad.
	NoneFailed = writv1.TriggerRule_TRIGGER_RULE_NONE_FAILED
	// NoneFailedMinOneSuccess runs when all have ended, none bad and one
	// succeeded: the join of branches of which some are skipped.
	NoneFailedMinOneSuccess = writv1.TriggerRule_TRIGGER_RULE_NONE_FAILED_MIN_ONE_SUCCESS
	// NoneSkipped runs when all have ended, none skipped.
	NoneSkipped = writv1.TriggerRule_TRIGGER_RULE_NONE_SKIPPED
	// Always runs at once.
	Always = writv1.TriggerRule_TRIGGER_RULE_ALWAYS
)

// draft is a task while it is built.
type draft struct {
	*blame
	at      string
	message *writv1.Task
	of      *Workflow
	actions []string
	// onLost says that the task itself has said what happens to a lost one.
	onLost bool
}

func (d *draft) add(field, format string, args ...any) {
	d.blame.add(strings.TrimSuffix(d.at+"."+field, "."), format, args...)
}

func (d *draft) number(field string, n int) int32 { return d.blame.number(d.at+"."+field, n) }

// draft is the task over the defaults. What defaults say about processes is
// nothing to a handler, and what they say about lost workers nothing to an
// idempotent task.
func (t *Task) draft(b *blame, defaults []DefaultOption) *draft {
	m := &writv1.Task{Id: t.id}
	// What is wrong with the defaults is told once, by Defaults.
	base := &draft{blame: &blame{}, message: m}
	each(base.blame, "", defaults, func(o DefaultOption) { o.task(base) })
	if t.handled() {
		m.Env, m.Cwd, m.SkipExitCode, m.NoRetryExitCodes = nil, "", nil, nil
	}
	d := &draft{blame: b, at: "tasks." + t.id, message: m, of: t.of}
	each(b, d.at, t.options, func(o TaskOption) { o.task(d) })
	if m.GetIdempotent() && !d.onLost {
		m.OnLost = writv1.OnLost_ON_LOST_UNSPECIFIED
	}
	switch len(d.actions) {
	case 1:
	case 0:
		d.add("", "does nothing, expected one of run, command and handler")
	default:
		d.add("", "has %s, expected one of run, command and handler", strings.Join(d.actions, " and "))
	}
	return d
}

// handled says that the task is a handler's.
func (t *Task) handled() bool {
	d := &draft{blame: &blame{}, message: &writv1.Task{}, of: t.of}
	each(d.blame, "", t.options, func(o TaskOption) { o.task(d) })
	return d.message.GetHandler() != ""
}

// act notes what a task does; given is false for what would be sent as
// nothing.
func (d *draft) act(action string, given bool) {
	d.actions = append(d.actions, action)
	if !given {
		d.add(action, "is empty")
	}
}

// taskOption is an option of tasks alone.
type taskOption func(d *draft)

func (o taskOption) task(d *draft) { o(d) }

// Run makes the task a script for `sh -euc`: it ends at the first command that
// fails, and at a variable that is not set.
func Run(script string) TaskOption {
	return taskOption(func(d *draft) {
		d.act("run", script != "")
		d.message.Run = script
	})
}

// Command makes the task a program with arguments, started without a shell.
func Command(program string, arguments ...string) TaskOption {
	vector := append([]string{program}, arguments...)
	return taskOption(func(d *draft) {
		d.act("command", program != "")
		d.message.Command = slices.Clone(vector)
	})
}

// Handler makes the task a function that a Go worker has registered under this
// name. Input is handed to it as JSON, as encoding/json has it; nil is no
// input. A json.RawMessage is handed on with its numbers as they are spelled.
func Handler(name string, input any) TaskOption {
	text, err := inputText(input)
	return taskOption(func(d *draft) {
		d.act("handler", name != "")
		if err != nil {
			d.add("input", "is no JSON: %v", err)
		}
		d.message.Handler, d.message.Input = name, text
	})
}

// inputText is a value as JSON, with <, > and & as they are, as the workflow
// file has them.
func inputText(input any) (string, error) {
	if input == nil {
		return "", nil
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(input); err != nil {
		return "", err
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

// Needs names tasks that come before this one, its direct upstreams. Given
// twice, it adds to them.
func Needs(tasks ...*Task) TaskOption {
	tasks = slices.Clone(tasks)
	return taskOption(func(d *draft) {
		for i, t := range tasks {
			switch {
			case t == nil:
				d.add("needs", "number %d is nil", i+1)
			case t.of != d.of:
				d.add("needs", "task %s belongs to another workflow", t.id)
			default:
				d.need(t.id)
			}
		}
	})
}

// NeedsID is [Needs] for tasks that are added later, or elsewhere, by their id.
func NeedsID(ids ...string) TaskOption {
	ids = slices.Clone(ids)
	return taskOption(func(d *draft) {
		for _, id := range ids {
			d.need(id)
		}
	})
}

func (d *draft) need(id string) {
	if slices.Contains(d.message.GetNeeds(), id) {
		d.add("needs", "task %s is named twice", id)
		return
	}
	d.message.Needs = append(d.message.Needs, id)
}

// Trigger sets when the task runs, given how its needs ended.
func Trigger(rule TriggerRule) TaskOption {
	return taskOption(func(d *draft) {
		if _, known := writv1.TriggerRule_name[int32(rule)]; !known {
			d.add("trigger_rule", "%d is not known", int32(rule))
		}
		d.message.TriggerRule = rule
	})
}

// AllowFailure makes a failure of the task count as success for the tasks after
// it and for the run.
func AllowFailure() TaskOption {
	return taskOption(func(d *draft) { d.message.AllowFailure = true })
}

// Env sets one variable of the process. Over the defaults it is merged variable
// by variable. Only for [Run] and [Command], as [Cwd], [SkipExitCode] and
// [NoRetryExitCodes] are.
func Env(name, value string) DefaultOption {
	return defaultOption(func(d *draft) { d.env(map[string]string{name: value}) })
}

// EnvMap is [Env] for several variables.
func EnvMap(variables map[string]string) DefaultOption {
	variables = maps.Clone(variables)
	return defaultOption(func(d *draft) { d.env(variables) })
}

func (d *draft) env(variables map[string]string) {
	if d.message.GetEnv() == nil && len(variables) > 0 {
		d.message.Env = make(map[string]string, len(variables))
	}
	maps.Copy(d.message.GetEnv(), variables)
}

// Cwd sets the directory that the process starts in, an absolute path. Without
// it that is the worker's own.
func Cwd(path string) DefaultOption {
	return defaultOption(func(d *draft) { d.message.Cwd = path })
}

// SkipExitCode sets the exit code that ends the task as skipped, instead of 99;
// -1 means that none does.
func SkipExitCode(code int) DefaultOption {
	return defaultOption(func(d *draft) {
		n := d.number("skip_exit_code", code)
		d.message.SkipExitCode = &n
	})
}

// NoRetryExitCodes sets the exit codes that end the task as failed, whatever
// retries are left. They replace those that were set before.
func NoRetryExitCodes(codes ...int) DefaultOption {
	codes = slices.Clone(codes)
	return defaultOption(func(d *draft) {
		d.message.NoRetryExitCodes = nil
		for _, code := range codes {
			d.message.NoRetryExitCodes = append(d.message.NoRetryExitCodes, d.number("no_retry_exit_codes", code))
		}
	})
}

// Queue sets the queue that the task waits in, instead of "default"; workers
// say which queues they serve.
func Queue(name string) DefaultOption {
	return defaultOption(func(d *draft) { d.message.Queue = name })
}

// Priority sets the task's priority, from -1000 to 1000, instead of 0. The
// highest goes first, over all workflows.
func Priority(n int) DefaultOption {
	return defaultOption(func(d *draft) { d.message.Priority = d.number("priority", n) })
}

// QueueTimeout bounds the wait for a start, from the moment the task was ready:
// the task fails. 0 means no bound.
func QueueTimeout(limit time.Duration) DefaultOption {
	return defaultOption(func(d *draft) { d.message.QueueTimeout = bound(limit) })
}
