package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/writ-sched/writ/internal/executor"
	"github.com/writ-sched/writ/internal/record"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

const (
	// logsName is the directory of logs in a worker's state directory.
	logsName = "logs"
	// fenceTerm is how long before the fence deadline a process gets its TERM.
	fenceTerm = 500 * time.Millisecond
)

// report is what became of an attempt.
type report struct {
	end
	result             []byte
	startedAt, endedAt time.Time
}

// runner runs the attempts of a worker that are processes.
type runner struct {
	place
	exec *executor.Executor
}

// run runs one attempt to its end. Where ctx ends first it ends the processes;
// why tells from the context's cause what for. Fence is the deadline of an
// attempt that must not outlive its worker's session, or zero.
func (r *runner) run(ctx context.Context, as *writv1.Assign, fence executor.Instant, why func(error) ending) report {
	p, err := r.start(ctx, as, fence)
	if err != nil && ctx.Err() != nil {
		return report{end: stopped(why(context.Cause(ctx))), endedAt: time.Now().UTC()}
	}
	if err != nil {
		now := time.Now().UTC()
		return report{end: failed(record.CauseStartError, "not started: %v", err), startedAt: now, endedAt: now}
	}
	because := endingNone
	calm := context.WithoutCancel(ctx)
	select {
	case <-p.Done():
	case <-ctx.Done():
		because = why(context.Cause(ctx))
		// An executor that is gone has ended everything, and says so below.
		_ = r.exec.Kill(calm, as.GetToken(), r.grace)
	}
	result, err := p.Wait(calm)
	if err != nil {
		return report{end: failed(record.CauseWorkerLost, "%v", err), endedAt: time.Now().UTC()}
	}
	return r.reportOf(as, result, because)
}

// start makes the attempt's directories and asks the executor for it.
func (r *runner) start(ctx context.Context, as *writv1.Assign, fence executor.Instant) (*executor.Process, error) {
	ref := as.GetAttempt()
	output, err := r.outputs.Make(ref.GetRun(), taskName(ref.GetTask(), ref.GetInstance()), int(ref.GetAttempt()))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(r.logPath(ref)), 0o755); err != nil {
		return nil, err
	}
	s, err := r.spec(as, output)
	if err != nil {
		return nil, err
	}
	if fence != 0 {
		s.Fence, s.FenceTerm = fence, fenceTerm
	}
	if err := r.remember(as); err != nil {
		return nil, err
	}
	return r.exec.Start(ctx, s)
}

// leftover reads the end of an attempt that an earlier life of this worker
// started; false where nobody knows any more what it was.
func (r *runner) leftover(l executor.Leftover) (*writv1.Assign, report, bool) {
	as := r.recall(l.Token)
	if as == nil {
		return nil, report{}, false
	}
	return as, r.reportOf(as, l.Result, endingNone), true
}

// reportOf reads what a process left behind.
func (r *runner) reportOf(as *writv1.Assign, result executor.Result, why ending) report {
	e, value := withResult(endOf(result, skipOf(as.GetTask()), why), executor.ResultPath(r.state, as.GetToken()))
	return report{end: e, result: value, startedAt: result.StartedAt, endedAt: result.EndedAt}
}

// readLog answers a question about a log.
func (r *runner) readLog(ask *writv1.ServeLogsResponse) *writv1.LogChunk {
	c, err := executor.ReadLog(r.logPath(ask.GetAttempt()), ask.GetOffset(), int(ask.GetLimit()))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &writv1.LogChunk{Ask: ask.GetAsk(), Missing: "the worker has no log of " + refText(ask.GetAttempt())}
	case err != nil:
		return &writv1.LogChunk{Ask: ask.GetAsk(), Missing: err.Error()}
	}
	return &writv1.LogChunk{
		Ask: ask.GetAsk(), Offset: c.Offset, LeftOut: c.LeftOut, Data: c.Data, Complete: c.Complete, Note: c.Note,
	}
}

// prune removes the logs of runs that nobody wrote to since before.
func (r *runner) prune(before time.Time) error {
	dir := filepath.Join(r.state, logsName)
	runs, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, run := range runs {
		latest := time.Time{}
		walkErr := filepath.WalkDir(filepath.Join(dir, run.Name()), func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := d.Info()
			if err == nil && st.ModTime().After(latest) {
				latest = st.ModTime()
			}
			return err
		})
		if walkErr == nil && latest.Before(before) {
			walkErr = os.RemoveAll(filepath.Join(dir, run.Name()))
		}
		err = errors.Join(err, walkErr)
	}
	return err
}
