package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/writ-sched/writ/internal/executor"
	"github.com/writ-sched/writ/internal/record"
	sdk "github.com/writ-sched/writ/pkg/worker"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// bridge runs what the SDK is assigned on the executor.
type bridge struct {
	runner
	logger *zap.Logger
	wait   atomic.Int64 // between TERM and KILL, as the server says
}

// pruneEvery is how often old logs are looked for.
const pruneEvery = time.Hour

// work runs the worker until ctx ends.
func (w *worker) work(ctx context.Context, env Env, logger *zap.Logger) error {
	p, err := w.place(env)
	if err != nil {
		return err
	}
	x, err := executor.New(executor.Config{StateDir: p.state})
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	b := &bridge{runner: runner{place: p, exec: x}, logger: logger}
	// The executor outlives the worker's context: it drains what runs.
	executing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts sync.WaitGroup
	ended := make(chan error, 1) // the executor's end, where it was begun
	agent, err := sdk.New(sdk.Config{
		Servers: trimAll(strings.Split(w.servers, ",")), Name: w.name, Slots: w.slots, Queues: w.queues, Labels: w.labels,
		StateDir: p.state, Drain: w.drain, Logger: slog.New(&zapHandler{logger}),
		Processes: &sdk.Processes{
			Prepare: func(ctx context.Context) ([]*writv1.Finished, error) {
				left, err := b.prepare(ctx)
				if err == nil {
					parts.Go(func() { ended <- x.Run(executing) })
				}
				return left, err
			},
			Run: b.run, Extend: b.extend, Forget: b.close, ReadLog: b.readLog,
			Grace: func(d time.Duration) { b.wait.Store(int64(d)) },
		},
	})
	if err != nil {
		return usage("worker: %w", err)
	}
	parts.Go(func() { w.pruning(ctx, b) })
	worked := make(chan error, 1)
	go func() { worked <- agent.Run(ctx) }()
	select {
	case err = <-worked:
	case err = <-ended: // nothing can be run any more
		cancel()
		err = errors.Join(err, <-worked)
	}
	cancel()
	stop()
	parts.Wait()
	select {
	case last := <-ended:
		return errors.Join(err, last)
	default:
		return err
	}
}

// prepare ends what an earlier life of the worker left, and says how it ended.
func (b *bridge) prepare(ctx context.Context) ([]*writv1.Finished, error) {
	left, err := executor.EndLeftovers(ctx, b.state)
	if err != nil {
		return nil, err
	}
	if left.Killed > 0 {
		b.logger.Warn("processes of an earlier life of this worker were ended", zap.Int("processes", left.Killed))
	}
	var list []*writv1.Finished
	for _, l := range left.Attempts {
		as, rep, known := b.leftover(l)
		if !known {
			// It was not started: what it is to be is kept before.
			b.logger.Info("an attempt of an earlier life is not known any more", zap.String("attempt", l.Ref))
			if err := b.forget(l.Token); err != nil {
				return nil, err
			}
			continue
		}
		list = append(list, finishedOf(as, rep))
	}
	return list, nil
}

// run runs one attempt to its end.
func (b *bridge) run(ctx context.Context, as *writv1.Assign, fence time.Duration) *writv1.Finished {
	r := b.runner
	r.grace = time.Duration(b.wait.Load())
	return finishedOf(as, r.run(ctx, as, executor.Instant(fence), func(cause error) ending {
		switch {
		case errors.Is(cause, sdk.ErrCancelled):
			return endingCancel
		case errors.Is(cause, sdk.ErrFenced):
			return endingFence
		default:
			return endingStopped
		}
	}))
}

func (b *bridge) extend(ctx context.Context, fence time.Duration) {
	err := b.exec.Extend(ctx, executor.Instant(fence))
	if err != nil && !errors.Is(err, executor.ErrStopped) && ctx.Err() == nil { // nothing runs in one that is stopped
		b.logger.Warn("the fence of what runs is not moved", zap.Error(err))
	}
}

func (b *bridge) close(token string) {
	if err := b.forget(token); err != nil {
		b.logger.Warn("files of an ended attempt are left", zap.Error(err))
	}
}

// finishedOf writes a report in the words of the protocol.
func finishedOf(as *writv1.Assign, r report) *writv1.Finished {
	f := &writv1.Finished{
		Token: as.GetToken(), Attempt: as.GetAttempt(), State: r.state, Exit: r.exit, Result: r.result,
		Idempotent: as.GetTask().GetIdempotent(), Cause: &writv1.Cause{Code: string(r.cause.Code), Text: r.cause.Text},
	}
	if r.cause.Code == record.CauseNone {
		f.Cause = nil
	}
	if !r.startedAt.IsZero() {
		f.StartedAt = timestamppb.New(r.startedAt)
	}
	if !r.endedAt.IsZero() {
		f.EndedAt = timestamppb.New(r.endedAt)
	}
	return f
}

// pruning removes old logs until ctx ends.
func (w *worker) pruning(ctx context.Context, b *bridge) {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		if err := b.prune(time.Now().Add(-w.keepLogs)); err != nil {
			b.logger.Warn("old logs are not removed", zap.Error(err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// zapHandler writes what the SDK logs through zap.
type zapHandler struct{ logger *zap.Logger }

func levelOf(l slog.Level) zapcore.Level {
	switch {
	case l >= slog.LevelError:
		return zapcore.ErrorLevel
	case l >= slog.LevelWarn:
		return zapcore.WarnLevel
	case l >= slog.LevelInfo:
		return zapcore.InfoLevel
	default:
		return zapcore.DebugLevel
	}
}

// Enabled implements slog.Handler.
func (h *zapHandler) Enabled(_ context.Context, l slog.Level) bool {
	return h.logger.Core().Enabled(levelOf(l))
}

// Handle implements slog.Handler.
func (h *zapHandler) Handle(_ context.Context, r slog.Record) error {
	fields := make([]zap.Field, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		fields = append(fields, zap.Any(a.Key, a.Value.Any()))
		return true
	})
	h.logger.Log(levelOf(r.Level), r.Message, fields...)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *zapHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	fields := make([]zap.Field, 0, len(attrs))
	for _, a := range attrs {
		fields = append(fields, zap.Any(a.Key, a.Value.Any()))
	}
	return &zapHandler{h.logger.With(fields...)}
}

// WithGroup implements slog.Handler.
func (h *zapHandler) WithGroup(name string) slog.Handler {
	return &zapHandler{h.logger.With(zap.Namespace(name))}
}
