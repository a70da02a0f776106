package api

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/specfile"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// triggerRules are the trigger rules by their number in the protocol.
func triggerRules() []spec.TriggerRule {
	return []spec.TriggerRule{
		"", spec.AllSuccess, spec.AllFailed, spec.AllDone, spec.OneSuccess, spec.OneFailed, spec.OneDone, spec.NoneFailed,
		spec.NoneFailedMinOneSuccess, spec.NoneSkipped, spec.Always,
	}
}

// lostPolicies are the values of on_lost by their number in the protocol.
func lostPolicies() []record.OnLost {
	return []record.OnLost{"", record.OnLostWait, record.OnLostRetry, record.OnLostFail}
}

// reading gathers what cannot be said in a spec while a message is converted.
type reading struct{ problems []spec.Problem }

func (r *reading) blame(at spec.Path, format string, args ...any) {
	if len(r.problems) < spec.MaxProblems {
		r.problems = append(r.problems, spec.Problem{Path: at, Text: fmt.Sprintf(format, args...)})
	}
}

func (r *reading) duration(at spec.Path, d *durationpb.Duration) record.Duration {
	if d == nil {
		return 0
	}
	if err := d.CheckValid(); err != nil {
		r.blame(at, "is no duration: %v", err)
		return 0
	}
	return record.Duration(d.AsDuration())
}

// chosen returns the n-th word, or blames the place.
func chosen[S ~string](r *reading, at spec.Path, n int32, words []S) S {
	if n < 0 || int(n) >= len(words) {
		r.blame(at, "%d is not known, expected a number from 0 to %d", n, len(words)-1)
		return ""
	}
	return words[n]
}

// readWorkflow turns a message into a spec. It finds what the types of the
// protocol permit and a spec does not; spec.Validate finds the rest.
func readWorkflow(m *writv1.Workflow) (*spec.Workflow, []spec.Problem) {
	r := &reading{}
	w := &spec.Workflow{
		Name: record.WorkflowName(m.GetName()), Description: m.GetDescription(),
		Timeout: r.duration(spec.Path{"timeout"}, m.GetTimeout()), MaxActiveRuns: int(m.GetMaxActiveRuns()),
	}
	for i, p := range m.GetParams() {
		if p == nil {
			r.blame(spec.Path{"params", spec.Element(i)}, "is empty, expected a parameter")
			continue
		}
		w.Params = append(w.Params, spec.Param{
			Name: p.GetName(), Description: p.GetDescription(), Default: p.Default, Required: p.GetRequired(),
			Pattern: p.GetPattern(), Enum: slices.Clone(p.GetEnum()),
		})
	}
	for i, t := range m.GetTasks() {
		if t == nil {
			r.blame(spec.Path{"tasks", spec.Element(i)}, "is empty, expected a task")
			continue
		}
		w.Tasks = append(w.Tasks, r.task(spec.Path{"tasks", t.GetId()}, t))
	}
	return w, r.problems
}

func (r *reading) task(at spec.Path, m *writv1.Task) spec.Task {
	t := spec.Task{
		ID: record.TaskID(m.GetId()), Description: m.GetDescription(),
		Run: m.GetRun(), Command: slices.Clone(m.GetCommand()), Handler: m.GetHandler(), Input: m.GetInput(),
		Needs:       texts[record.TaskID](m.GetNeeds()),
		TriggerRule: chosen(r, at.At("trigger_rule"), int32(m.GetTriggerRule()), triggerRules()),
		Idempotent:  m.GetIdempotent(), OnLost: chosen(r, at.At("on_lost"), int32(m.GetOnLost()), lostPolicies()),
		LostLimit: int(m.GetLostLimit()), Timeout: r.duration(at.At("timeout"), m.GetTimeout()),
		QueueTimeout: r.duration(at.At("queue_timeout"), m.GetQueueTimeout()), AllowFailure: m.GetAllowFailure(),
		Queue: record.Queue(m.GetQueue()), Priority: int(m.GetPriority()), Env: maps.Clone(m.GetEnv()), Cwd: m.GetCwd(),
		NoRetryExitCodes: integers[int](m.GetNoRetryExitCodes()),
	}
	if retries := m.GetRetries(); retries != nil {
		t.Retries = spec.Retry{
			Limit: int(retries.GetLimit()), Delay: r.duration(at.At("retries", "delay"), retries.GetDelay()), Backoff: retries.GetBackoff(),
			MaxDelay: r.duration(at.At("retries", "max_delay"), retries.GetMaxDelay()), Jitter: retries.GetJitter(),
		}
	}
	if m.SkipExitCode != nil {
		code := int(m.GetSkipExitCode())
		t.SkipExitCode = &code
	}
	return t
}

// texts converts a list of texts to another type of text; an empty one is nil.
func texts[To, From ~string](list []From) []To {
	if len(list) == 0 {
		return nil
	}
	out := make([]To, len(list))
	for i, s := range list {
		out[i] = To(s)
	}
	return out
}

func integers[To, From int | int32](list []From) []To {
	if len(list) == 0 {
		return nil
	}
	out := make([]To, len(list))
	for i, n := range list {
		out[i] = To(n)
	}
	return out
}

// toWorkflow turns a spec into a message. What Validate accepts comes back
// from readWorkflow as it was.
func toWorkflow(w *spec.Workflow) *writv1.Workflow {
	m := &writv1.Workflow{
		Name: string(w.Name), Description: w.Description, Timeout: toDuration(w.Timeout), MaxActiveRuns: int32(w.MaxActiveRuns),
	}
	for i := range w.Params {
		p := &w.Params[i]
		m.Params = append(m.Params, &writv1.Param{
			Name: p.Name, Description: p.Description, Default: p.Default, Required: p.Required, Pattern: p.Pattern, Enum: p.Enum,
		})
	}
	for i := range w.Tasks {
		m.Tasks = append(m.Tasks, toTask(&w.Tasks[i]))
	}
	return m
}

func toTask(t *spec.Task) *writv1.Task {
	m := &writv1.Task{
		Id: string(t.ID), Description: t.Description, Run: t.Run, Command: t.Command, Handler: t.Handler, Input: t.Input,
		Needs:       texts[string](t.Needs),
		TriggerRule: writv1.TriggerRule(slices.Index(triggerRules(), t.TriggerRule)), Idempotent: t.Idempotent,
		OnLost: writv1.OnLost(slices.Index(lostPolicies(), t.OnLost)), LostLimit: int32(t.LostLimit),
		Timeout: toDuration(t.Timeout), QueueTimeout: toDuration(t.QueueTimeout), AllowFailure: t.AllowFailure,
		Queue: string(t.Queue), Priority: int32(t.Priority), Env: t.Env, Cwd: t.Cwd, NoRetryExitCodes: integers[int32](t.NoRetryExitCodes),
	}
	if t.Retries != (spec.Retry{}) {
		m.Retries = &writv1.Retry{
			Limit: int32(t.Retries.Limit), Delay: toDuration(t.Retries.Delay), Backoff: t.Retries.Backoff,
			MaxDelay: toDuration(t.Retries.MaxDelay), Jitter: t.Retries.Jitter,
		}
	}
	if t.SkipExitCode != nil {
		code := int32(*t.SkipExitCode)
		m.SkipExitCode = &code
	}
	return m
}

// toDuration leaves out a bound that is not there.
func toDuration(d record.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(time.Duration(d))
}

// fromSpec are problems of a workflow that came as a message, or of parameters.
func fromSpec(list []spec.Problem) []*writv1.Problem {
	out := make([]*writv1.Problem, 0, len(list))
	for _, p := range list {
		out = append(out, &writv1.Problem{Field: p.Path.String(), Text: p.Text, Hint: p.Hint})
	}
	return out
}

// fromFile are problems of a workflow file.
func fromFile(list []specfile.Problem) []*writv1.Problem {
	out := make([]*writv1.Problem, 0, len(list))
	for _, p := range list {
		out = append(out, &writv1.Problem{
			File: p.File, Line: int32(p.Line), Column: int32(p.Column), Field: p.Field, Text: p.Text, Hint: p.Hint,
		})
	}
	return out
}
