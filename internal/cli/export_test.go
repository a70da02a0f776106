package cli

import (
	"context"
	"time"

	"github.com/writ-sched/writ/internal/executor"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// Ended is how the end of a process reads in the words of the protocol.
func Ended(r executor.Result, t *writv1.Task, why string) (writv1.TaskState, string, string, *writv1.Exit) {
	e := endOf(r, skipOf(t), ending(why))
	return e.state, string(e.cause.Code), e.cause.Text, e.exit
}

// Asked is what the executor is asked to run for an attempt.
func Asked(state, outputs string, environ []string, as *writv1.Assign) (executor.Spec, error) {
	p := place{state: state, outputs: executor.Outputs{Dir: outputs}, environ: environ, grace: time.Second}
	return p.spec(as, "/out/here")
}

// Took, Size and Some are words for people.
var (
	Took = took
	Size = size
	Some = some
)

// Runner is the bridge between the protocol and the executor.
type Runner struct{ r runner }

// Report is what became of an attempt.
type Report struct {
	State  writv1.TaskState
	Cause  string
	Result string
}

// NewRunner makes a Runner with directories below dir.
func NewRunner(x *executor.Executor, dir string) Runner {
	return Runner{runner{exec: x, place: place{
		state: dir, outputs: executor.Outputs{Dir: dir + "/outputs"}, environ: []string{"PATH=/usr/bin:/bin"}, grace: 100 * time.Millisecond,
	}}}
}

// Run runs an attempt; the end of ctx is a cancelled run.
func (r Runner) Run(ctx context.Context, as *writv1.Assign) Report {
	return reported(r.r.run(ctx, as, 0, func(error) ending { return endingCancel }))
}

// Leftover reads the end of an attempt of an earlier life.
func (r Runner) Leftover(l executor.Leftover) (*writv1.Assign, Report, bool) {
	as, rep, known := r.r.leftover(l)
	return as, reported(rep), known
}

// ReadLog answers a question about a log.
func (r Runner) ReadLog(ask *writv1.ServeLogsResponse) *writv1.LogChunk { return r.r.readLog(ask) }

// Forget removes an attempt.
func (r Runner) Forget(token string) error { return r.r.forget(token) }

// Prune removes old logs.
func (r Runner) Prune(before time.Time) error { return r.r.prune(before) }

func reported(r report) Report { return Report{r.state, string(r.cause.Code), string(r.result)} }
