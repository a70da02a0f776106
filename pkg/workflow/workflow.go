package workflow

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// Workflow is a workflow that is being built. Its tasks are shown in the order
// in which they were added.
type Workflow struct {
	name    string
	options []Option
	params  []*param
	tasks   []*Task
}

// Option says something about a workflow. The options are [Description],
// [Timeout], [MaxActiveRuns] and [Defaults].
type Option interface{ workflow(b *building) }

// New begins a workflow. A name has letters a to z, digits, - and _, at most 40
// of them, and begins with a letter or digit; runs are called <name>.<suffix>.
func New(name string, options ...Option) *Workflow {
	return &Workflow{name: name, options: slices.Clone(options)}
}

// Param adds a value that a run is started with. A process sees it as
// WRIT_PARAM_<NAME>, upper-case, dashes as underscores. Exactly one of
// [Default] and [Required] is given.
func (w *Workflow) Param(name string, options ...ParamOption) {
	w.params = append(w.params, &param{name: name, options: slices.Clone(options)})
}

// Task adds a task, and returns its handle for the tasks that need it. Exactly
// one of [Run], [Command] and [Handler] says what it does.
func (w *Workflow) Task(id string, options ...TaskOption) *Task {
	t := &Task{id: id, of: w, options: slices.Clone(options)}
	w.tasks = append(w.tasks, t)
	return t
}

// Task is the handle of a task.
type Task struct {
	id      string
	of      *Workflow
	options []TaskOption
}

// ID is what the task was added as.
func (t *Task) ID() string { return t.id }

// InvalidError is a workflow that cannot be built, with every problem found.
type InvalidError struct {
	// Problems have their place in Field, such as tasks.merge.input.
	Problems []*writv1.Problem
}

// Error has one line for each problem.
func (e *InvalidError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.GetField()+": "+p.GetText())
	}
	return strings.Join(lines, "\n")
}

// Build returns the workflow as a message of the protocol, with the defaults
// merged into its tasks. The error is an [InvalidError]. Build may be called
// again, also after more was added; each message is the caller's own.
func (w *Workflow) Build() (*writv1.Workflow, error) {
	b := &building{message: &writv1.Workflow{Name: w.name}}
	each(&b.blame, "", w.options, func(o Option) { o.workflow(b) })
	w.buildParams(b)
	w.buildTasks(b)
	// What stands in a message is text in UTF-8, or it cannot be sent.
	head := &writv1.Workflow{Name: b.message.GetName(), Description: b.message.GetDescription()}
	b.sendable("workflow", head)
	if len(b.problems) > 0 {
		return nil, &InvalidError{Problems: b.problems}
	}
	return b.message, nil
}

// building is one call of Build.
type building struct {
	blame
	message  *writv1.Workflow
	defaults []DefaultOption
}

func (w *Workflow) buildParams(b *building) {
	seen := map[string]bool{}
	for _, p := range w.params {
		at := "params." + p.name
		if seen[p.name] {
			b.add(at, "there are two parameters of this name")
			continue
		}
		seen[p.name] = true
		m := &writv1.Param{Name: p.name}
		each(&b.blame, at, p.options, func(o ParamOption) { o.param(m) })
		b.sendable(at, m)
		b.message.Params = append(b.message.Params, m)
	}
}

func (w *Workflow) buildTasks(b *building) {
	known := make(map[string]bool, len(w.tasks))
	for _, t := range w.tasks {
		if known[t.id] {
			b.add("tasks."+t.id, "there are two tasks of this id")
		}
		known[t.id] = true
	}
	for _, t := range w.tasks {
		d := t.draft(&b.blame, b.defaults)
		for _, need := range d.message.GetNeeds() {
			if !known[need] {
				d.add("needs", "there is no task %s", need)
			}
		}
		b.sendable("tasks."+t.id, d.message)
		b.message.Tasks = append(b.message.Tasks, d.message)
	}
}

// blame gathers problems.
type blame struct{ problems []*writv1.Problem }

func (b *blame) add(at, format string, args ...any) {
	b.problems = append(b.problems, &writv1.Problem{
		// A problem is a message too: what is no UTF-8 is quoted in it.
		Field: strings.ToValidUTF8(at, "�"), Text: strings.ToValidUTF8(fmt.Sprintf(format, args...), "�"),
	})
}

// sendable blames a place whose message cannot be put on the wire.
func (b *blame) sendable(at string, m proto.Message) {
	if _, err := proto.Marshal(m); err != nil {
		b.add(at, "cannot be sent: %v", err)
	}
}

// each hands over options, and blames those that are nil.
func each[O comparable](b *blame, at string, options []O, use func(o O)) {
	var none O
	for i, o := range options {
		if o == none {
			b.add(strings.TrimPrefix(at+".options", "."), "number %d is nil", i+1)
			continue
		}
		use(o)
	}
}

// number is n as the message has it.
func (b *blame) number(at string, n int) int32 {
	if n < math.MinInt32 || n > math.MaxInt32 {
		b.add(at, "%d is out of bounds", n)
		return 0
	}
	return int32(n)
}
