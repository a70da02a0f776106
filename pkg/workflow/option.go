package workflow

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// option is an option of a workflow alone.
type option func(b *building)

func (o option) workflow(b *building) { o(b) }

// MaxActiveRuns bounds the runs of the workflow that are active at once; others
// wait in state queued. 0 means no bound.
func MaxActiveRuns(n int) Option {
	return option(func(b *building) { b.message.MaxActiveRuns = b.number("max_active_runs", n) })
}

// Defaults sets what every task starts with; a task's own options win. A
// handler takes none of [Env], [Cwd], [SkipExitCode] and [NoRetryExitCodes], and
// an idempotent task no [OnLost]. Given twice, it adds to them.
func Defaults(options ...DefaultOption) Option {
	options = slices.Clone(options)
	return option(func(b *building) {
		d := &draft{blame: &b.blame, at: "defaults", message: &writv1.Task{}}
		each(d.blame, d.at, options, func(o DefaultOption) { o.task(d) })
		b.defaults = append(b.defaults, options...)
	})
}

// TimeoutOption is what [Timeout] returns.
type TimeoutOption struct{ limit time.Duration }

// Timeout bounds a whole run, from its start, where it is said of a workflow,
// and one attempt, from its start, where it is said of a task or of defaults. 0
// means no bound.
func Timeout(limit time.Duration) TimeoutOption { return TimeoutOption{limit: limit} }

func (o TimeoutOption) workflow(b *building) { b.message.Timeout = bound(o.limit) }
func (o TimeoutOption) task(d *draft)        { d.message.Timeout = bound(o.limit) }
func (o TimeoutOption) mayBeDefault()        {}

// DescriptionOption is what [Description] returns.
type DescriptionOption struct{ text string }

// Description says what a workflow, a task or a parameter is for.
func Description(text string) DescriptionOption { return DescriptionOption{text: text} }

func (o DescriptionOption) workflow(b *building)  { b.message.Description = o.text }
func (o DescriptionOption) task(d *draft)         { d.message.Description = o.text }
func (o DescriptionOption) param(m *writv1.Param) { m.Description = o.text }

// bound leaves out a bound that is not there.
func bound(limit time.Duration) *durationpb.Duration {
	if limit == 0 {
		return nil
	}
	return durationpb.New(limit)
}

// param is a parameter that was added.
type param struct {
	name    string
	options []ParamOption
}

// ParamOption says something about a parameter. The options are [Default],
// [Required], [Pattern], [Enum] and [Description].
type ParamOption interface{ param(m *writv1.Param) }

// paramOption is an option of parameters alone.
type paramOption func(m *writv1.Param)

func (o paramOption) param(m *writv1.Param) { o(m) }

// Default is used where a run gives no value; "" is a default like any other.
func Default(value string) ParamOption {
	return paramOption(func(m *writv1.Param) { m.Default = new(value) })
}

// Required makes a run that gives no value be refused.
func Required() ParamOption { return paramOption(func(m *writv1.Param) { m.Required = true }) }

// Pattern is a regular expression (RE2) that the whole value must match.
func Pattern(expression string) ParamOption {
	return paramOption(func(m *writv1.Param) { m.Pattern = expression })
}

// Enum lists the values that are allowed.
func Enum(values ...string) ParamOption {
	values = slices.Clone(values)
	return paramOption(func(m *writv1.Param) { m.Enum = slices.Clone(values) })
}
