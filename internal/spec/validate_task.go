package spec

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/writ-sched/writ/internal/record"
)

func taskPath(t *Task) Path { return Path{"tasks", string(t.ID)} }

func (v *validator) tasks() {
	switch n := len(v.w.Tasks); {
	case n == 0:
		v.ps.add(Path{"tasks"}, "", "is empty, expected at least one task")
	case n > MaxTasks:
		v.ps.add(Path{"tasks"}, "split it into several workflows", "are %d, at most %d are allowed", n, MaxTasks)
	}
	inputs := make(map[string]record.TaskID, len(v.w.Tasks))
	for i := range v.w.Tasks {
		if v.ps.full() {
			v.ps.more = true
			return
		}
		t := &v.w.Tasks[i]
		at := taskPath(t)
		if err := record.CheckName(string(t.ID), record.MaxName); err != nil {
			v.ps.add(at, nameHint(string(t.ID)), "task %v", err)
		}
		first, taken := inputs[InputEnv(t.ID)]
		switch {
		case taken && first == t.ID:
			v.ps.add(at, "", "stands here twice, expected every task once")
		case taken:
			v.ps.add(at, "rename one of them", "hands its outputs on as %s, and so does %q", InputEnv(t.ID), first)
		default:
			inputs[InputEnv(t.ID)] = t.ID
		}
		v.description(at.At("description"), t.Description)
		v.work(at, t)
		v.policy(at, t)
		v.retries(at.At("retries"), &t.Retries)
		v.process(at, t)
	}
}

// work checks that the task says once what it does.
func (v *validator) work(at Path, t *Task) {
	var kinds []string
	if t.Run != "" {
		kinds = append(kinds, "run")
		v.text(at.At("run"), t.Run, MaxArgBytes)
	}
	if len(t.Command) > 0 {
		kinds = append(kinds, "command")
		for i, word := range t.Command {
			v.text(at.At("command", Element(i)), word, MaxArgBytes)
		}
		if t.Command[0] == "" {
			v.ps.add(at.At("command", Element(0)), "", "is empty, expected the program")
		}
	}
	if t.Handler != "" {
		kinds = append(kinds, "handler")
		v.handler(at.At("handler"), t.Handler)
	}
	switch {
	case len(kinds) == 0:
		v.ps.add(at, "", "does nothing, expected one of run, command and handler")
	case len(kinds) > 1:
		v.ps.add(at, "take one of them out", "has %s, expected exactly one of run, command and handler", strings.Join(kinds, " and "))
	}
	if t.Input == "" {
		return
	}
	v.text(at.At("input"), t.Input, MaxTaskBytes)
	switch {
	case t.Handler == "":
		v.ps.add(at.At("input"), "a process takes env or command", "is only for a handler")
	case !json.Valid([]byte(t.Input)):
		v.ps.add(at.At("input"), "", "is not JSON: %s", quote(t.Input))
	}
}

func (v *validator) handler(at Path, s string) {
	if len(s) > MaxHandler {
		v.ps.add(at, "", "is %d bytes long, at most %d are allowed", len(s), MaxHandler)
		return
	}
	for _, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune("._/-", r) {
			v.ps.add(at, "", "%s is not the name of a handler, expected letters, digits and . _ / -", quote(s))
			return
		}
	}
}

// policy checks when the task runs, and what happens when it does not go well.
func (v *validator) policy(at Path, t *Task) {
	v.trigger(at.At("trigger_rule"), t)
	v.lost(at.At("on_lost"), t)
	v.between(at.At("lost_limit"), t.LostLimit, 0, MaxRetries, "leave it out for the default of 3")
	v.duration(at.At("timeout"), t.Timeout)
	v.duration(at.At("queue_timeout"), t.QueueTimeout)
	v.between(at.At("priority"), t.Priority, -MaxPriority, MaxPriority, "")
	if t.Queue == "" {
		return
	}
	if err := record.CheckName(string(t.Queue), record.MaxName); err != nil {
		v.ps.add(at.At("queue"), nameHint(string(t.Queue)), "%v", err)
	}
}

func (v *validator) trigger(at Path, t *Task) {
	rule := t.Rule()
	switch {
	case !slices.Contains(TriggerRules(), rule):
		hint := ""
		if near := Nearest(rule, TriggerRules()); near != "" {
			hint = "did you mean " + string(near) + "?"
		}
		v.ps.add(at, hint, "%s is no trigger rule, expected one of %s", quote(string(rule)), choices(TriggerRules()))
	case len(t.Needs) == 0 && rule != AllSuccess && rule != Always:
		v.ps.add(at, "name needs, or leave the rule out", "%s asks about upstream tasks, and the task needs none; expected all_success or always", rule)
	}
}

func (v *validator) lost(at Path, t *Task) {
	if t.OnLost == "" {
		return
	}
	all := []record.OnLost{record.OnLostWait, record.OnLostRetry, record.OnLostFail}
	switch {
	case !slices.Contains(all, t.OnLost):
		v.ps.add(at, "", "%s is unknown, expected one of %s", quote(string(t.OnLost)), choices(all))
	case t.Idempotent:
		v.ps.add(at, "an idempotent task always runs again; take one of the two out", "is only for a task that is not idempotent")
	case t.OnLost == record.OnLostRetry && t.Handler != "":
		v.ps.add(at, "say idempotent: true, or on_lost: wait or fail", "retry is refused for a handler that is not idempotent: a function cannot be killed, so that it is gone can never be proven")
	}
}

func (v *validator) retries(at Path, r *Retry) {
	v.between(at.At("limit"), r.Limit, 0, MaxRetries, "")
	v.duration(at.At("delay"), r.Delay)
	v.duration(at.At("max_delay"), r.MaxDelay)
	if r.Backoff != 0 {
		v.number(at.At("backoff"), r.Backoff, 1, MaxBackoff)
	}
	v.number(at.At("jitter"), r.Jitter, 0, 1)
	if r.MaxDelay > 0 && r.MaxDelay < r.Delay {
		v.ps.add(at.At("max_delay"), "", "is %v, expected at least the delay of %v", r.MaxDelay, r.Delay)
	}
}

// process checks what only a process has.
func (v *validator) process(at Path, t *Task) {
	if t.Handler != "" && t.Run == "" && len(t.Command) == 0 {
		v.noProcess(at, t)
		return
	}
	v.env(at.At("env"), t)
	if t.Cwd != "" {
		v.text(at.At("cwd"), t.Cwd, 4095) // PATH_MAX without its NUL
		if !strings.HasPrefix(t.Cwd, "/") {
			v.ps.add(at.At("cwd"), "a task starts in the directory of its worker otherwise", "%s is relative, expected an absolute path", quote(t.Cwd))
		}
	}
	if c := t.SkipExitCode; c != nil && (*c < -1 || *c == 0 || *c > 255) {
		v.ps.add(at.At("skip_exit_code"), "-1 means that no code skips", "is %d, expected 1 to 255, or -1", *c)
	}
	if n := len(t.NoRetryExitCodes); n > 255 {
		v.ps.add(at.At("no_retry_exit_codes"), "", "are %d, and there are no more than 255", n)
		return
	}
	for i, c := range t.NoRetryExitCodes {
		here := at.At("no_retry_exit_codes", Element(i))
		v.between(here, c, 1, 255, "")
		if slices.Index(t.NoRetryExitCodes, c) < i {
			v.ps.add(here, "", "%d stands here twice", c)
		}
	}
}

func (v *validator) noProcess(at Path, t *Task) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"env", len(t.Env) > 0},
		{"cwd", t.Cwd != ""},
		{"skip_exit_code", t.SkipExitCode != nil},
		{"no_retry_exit_codes", len(t.NoRetryExitCodes) > 0},
	} {
		if f.set {
			v.ps.add(at.At(f.name), "a handler takes input, and answers with its error", "is only for a process")
		}
	}
}

// perString is what the kernel counts for a string beside its bytes: a NUL and
// a pointer.
const perString = 9

func (v *validator) env(at Path, t *Task) {
	before := len(v.ps.list)
	total := len(t.Run) + perString
	for _, word := range t.Command {
		total += len(word) + perString
	}
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		here := at.At(name)
		switch {
		case !isEnvName(name):
			v.ps.add(here, "letters, digits and _ make a name, and no digit begins it", "%s is not the name of a variable", quote(name))
		case strings.HasPrefix(name, EnvPrefix):
			v.ps.add(here, "take another name", "names that begin with %s are writ's own", EnvPrefix)
		}
		v.text(here, t.Env[name], max(MaxArgBytes-len(name)-1, 0))
		total += len(name) + 1 + len(t.Env[name]) + perString
	}
	if total > MaxExecBytes && max(len(t.Run), longest(t.Command)) <= MaxArgBytes && len(v.ps.list) == before {
		v.ps.add(at[:len(at)-1], "keep large values in files that the worker has", "command and env are %d bytes together, at most %d can be handed to a process", total, MaxExecBytes)
	}
}

func longest(list []string) int {
	n := 0
	for _, s := range list {
		n = max(n, len(s))
	}
	return n
}

func isEnvName(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
