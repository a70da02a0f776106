package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-sched/writ/internal/executor"
	"github.com/writ-sched/writ/internal/record"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// skipExitCode ends a process as skipped where its task says nothing else.
const skipExitCode = 99

// place is where a worker keeps what its attempts need and leave.
type place struct {
	state   string           // the worker's state directory
	outputs executor.Outputs // shared by the workers of a workflow
	environ []string         // the worker's own environment
	grace   time.Duration    // between TERM and KILL
}

// logPath is the log of an attempt; the logs of one task share a directory.
func (p place) logPath(ref *writv1.AttemptRef) string {
	return filepath.Join(p.state, logsName, ref.GetRun(), taskName(ref.GetTask(), ref.GetInstance()), strconv.Itoa(int(ref.GetAttempt()))+".log")
}

// spec is what the executor is asked to run for an attempt whose output
// directory has been made.
func (p place) spec(as *writv1.Assign, output string) (executor.Spec, error) {
	t, ref := as.GetTask(), as.GetAttempt()
	dirs := p.inputs(as)
	inputs, err := json.Marshal(dirs)
	if err != nil {
		return executor.Spec{}, fmt.Errorf("write the list of inputs: %w", err)
	}
	return executor.Spec{
		Token:   as.GetToken(),
		Ref:     refText(ref),
		Argv:    t.GetCommand(),
		Script:  t.GetRun(),
		Env:     executor.Environ(p.environ, t.GetEnv(), variables(as, output, dirs)),
		Cwd:     t.GetCwd(),
		Inputs:  append(inputs, '\n'),
		Log:     p.logPath(ref),
		Timeout: t.GetTimeout().AsDuration(),
		Grace:   p.grace,
	}, nil
}

// inputs are the output directories of the upstream attempts that succeeded,
// by the names of their tasks.
func (p place) inputs(as *writv1.Assign) map[string]string {
	dirs := make(map[string]string, len(as.GetInputs()))
	for _, in := range as.GetInputs() {
		name := taskName(in.GetTask(), in.GetInstance())
		dirs[name] = p.outputs.Path(in.GetRun(), name, int(in.GetAttempt()))
	}
	return dirs
}

// variables are the reserved ones that tell a task about its attempt, besides
// those that the executor sets.
func variables(as *writv1.Assign, output string, inputs map[string]string) map[string]string {
	ref := as.GetAttempt()
	vars := map[string]string{
		"WRIT_RUN_ID":     ref.GetRun(),
		"WRIT_TASK_ID":    taskName(ref.GetTask(), ref.GetInstance()),
		"WRIT_ATTEMPT":    strconv.Itoa(int(ref.GetAttempt())),
		"WRIT_TOKEN":      as.GetToken(),
		"WRIT_FENCE":      strconv.FormatInt(as.GetFence(), 10),
		"WRIT_OUTPUT_DIR": output,
	}
	if as.GetLogicalDate() != nil {
		vars["WRIT_LOGICAL_DATE"] = as.GetLogicalDate().AsTime().UTC().Format(time.RFC3339)
	}
	for name, value := range as.GetParams() {
		vars["WRIT_PARAM_"+upper(name)] = value
	}
	for name, dir := range inputs {
		// Instances of a fan-out have no variable each; WRIT_INPUTS lists them.
		if !strings.Contains(name, ".") {
			vars["WRIT_INPUT_"+upper(name)] = dir
		}
	}
	return vars
}

// upper turns a name into the part of a variable's.
func upper(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// refText names an attempt for people.
func refText(ref *writv1.AttemptRef) string {
	return fmt.Sprintf("%s/%s/%d", ref.GetRun(), taskName(ref.GetTask(), ref.GetInstance()), ref.GetAttempt())
}

// ending is why the worker ended an attempt by itself.
type ending string

const (
	endingNone    ending = ""
	endingCancel  ending = "cancel"  // the run was cancelled
	endingStopped ending = "stopped" // the worker stops
	endingFence   ending = "fence"   // the worker's own deadline struck
)

// end is the end of an attempt in the words of the protocol.
type end struct {
	state writv1.TaskState
	cause record.Cause
	exit  *writv1.Exit
}

// failed is an end that the task, the worker or the host is to blame for.
func failed(code record.CauseCode, format string, args ...any) end {
	return end{state: writv1.TaskState_TASK_STATE_FAILED, cause: record.Because(code, fmt.Sprintf(format, args...))}
}

// endOf reads the end of a process. skip is the exit code that means skipped,
// negative for none.
func endOf(r executor.Result, skip int, why ending) end {
	switch {
	case r.StartError != "":
		return failed(record.CauseStartError, "not started: %s", r.StartError)
	case r.Lost:
		return failed(record.CauseWorkerLost, "its keeper died and its processes were ended; nobody saw how it ended")
	}
	e := ended(r, skip, why)
	e.exit = &writv1.Exit{Code: int32(r.ExitCode)}
	if r.Signal != 0 {
		e.exit = &writv1.Exit{Code: -1, Signal: signalName(r.Signal)}
	}
	return e
}

// ended reads the end of a process that ran and was seen to end.
func ended(r executor.Result, skip int, why ending) end {
	switch {
	case r.Cause == executor.CauseTimeout:
		return failed(record.CauseTimeout, "ended after %s, the timeout of the task", r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond))
	case r.Cause == executor.CauseFenced:
		return failed(record.CauseFenced, "ended at the worker's own deadline: no heartbeat was acknowledged in time")
	case r.Cause == executor.CauseAgentGone:
		return failed(record.CauseWorkerLost, "ended because its worker was gone")
	case r.Cause == executor.CauseKilled:
		return stopped(why)
	case r.Signal != 0:
		return failed(record.CauseSignal, "ended by %s", signalName(r.Signal))
	case r.ExitCode == 0:
		return end{state: writv1.TaskState_TASK_STATE_SUCCESS}
	case r.ExitCode == skip:
		return end{state: writv1.TaskState_TASK_STATE_SKIPPED, cause: record.Because(record.CauseSkippedByTask, fmt.Sprintf("exit code %d", r.ExitCode))}
	default:
		return failed(record.CauseExitCode, "exit code %d", r.ExitCode)
	}
}

// stopped is the end of an attempt that its worker ended.
func stopped(why ending) end {
	switch why {
	case endingCancel:
		return end{state: writv1.TaskState_TASK_STATE_CANCELLED, cause: record.Because(record.CauseCancelled, "ended because the run was cancelled")}
	case endingFence:
		return failed(record.CauseFenced, "ended at the worker's own deadline: no heartbeat was acknowledged in time")
	case endingNone, endingStopped:
	}
	return failed(record.CauseWorkerStopped, "ended because its worker stopped")
}

// skipOf is a task's exit code for skipped, negative for none.
func skipOf(t *writv1.Task) int {
	if t.SkipExitCode == nil {
		return skipExitCode
	}
	return int(t.GetSkipExitCode())
}

// signalName is such as SIGKILL.
func signalName(n int) string {
	if name := unix.SignalName(unix.Signal(n)); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(n)
}

// withResult reads what a process left at WRIT_RESULT: the end is a failure
// where it cannot be taken. Only a success has a result.
func withResult(e end, path string) (end, []byte) {
	if e.state != writv1.TaskState_TASK_STATE_SUCCESS {
		return e, nil
	}
	result, err := executor.ReadResult(path)
	var bad *executor.ResultError
	switch {
	case errors.As(err, &bad):
		exit := e.exit
		e = failed(record.CauseResultInvalid, "the result %s", bad.Reason)
		e.exit = exit
		return e, nil
	case err != nil:
		exit := e.exit
		e = failed(record.CauseResultInvalid, "%v", err)
		e.exit = exit
		return e, nil
	default:
		return e, result
	}
}
