package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// Get implements Store.
func (f *Fake) Get(_ context.Context, k record.Key) (record.Stored, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.alive("get"); err != nil {
		return record.Stored{}, err
	}
	at := f.records[k]
	at.Key = k
	return at, nil
}

// Present implements Store.
func (f *Fake) Present(ctx context.Context, k record.Key) (bool, error) {
	at, err := f.Get(ctx, k)
	return at.ModRev != 0, err
}

// List implements Store.
func (f *Fake) List(_ context.Context, r record.Range, after record.Key, limit int) ([]record.Stored, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.alive("list"); err != nil {
		return nil, err
	}
	behind := func(k record.Key) bool { return after == record.Key{} || f.space.Key(k) > f.space.Key(after) }
	list := f.ordered(func(k record.Key) bool { return r.Has(k) && behind(k) })
	return list[:min(limit, len(list))], nil
}

// Count implements Store.
func (f *Fake) Count(_ context.Context, r record.Range) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.space.Exact(r) {
		return 0, fmt.Errorf("count %s: other records lie between these", r.Family)
	}
	return int64(len(f.ordered(r.Has))), f.alive("count")
}

// ordered lists records in key order. It is called with the lock.
func (f *Fake) ordered(want func(record.Key) bool) []record.Stored {
	var keys []record.Key
	for k := range f.records {
		if want(k) {
			keys = append(keys, k)
		}
	}
	f.sort(keys)
	list := make([]record.Stored, len(keys))
	for i, k := range keys {
		list[i] = f.records[k]
	}
	return list
}

// Spec implements Store.
func (f *Fake) Spec(ctx context.Context, name record.WorkflowName, revision int) (*spec.Workflow, error) {
	at, err := f.Get(ctx, record.RevisionKey(name, revision))
	if err != nil {
		return nil, err
	}
	head, ok := at.Value.(record.Revision)
	if !ok {
		return nil, fmt.Errorf("read revision %d of %s: it does not exist", revision, name)
	}
	var text strings.Builder
	text.WriteString(string(head.Spec))
	for i := range head.Chunks {
		chunk, err := f.Get(ctx, record.ChunkKey(name, revision, i+1))
		if err != nil {
			return nil, err
		}
		blob, _ := chunk.Value.(record.Blob)
		text.Write(blob)
	}
	return spec.Parse([]byte(text.String()))
}

// Snapshot implements Store.
func (f *Fake) Snapshot(_ context.Context, each func(record.Stored) error) (int64, error) {
	f.mu.Lock()
	list, rev, err := f.ordered(func(k record.Key) bool { return k.Family.Active() }), f.rev, f.alive("snapshot")
	f.mu.Unlock()
	if err != nil {
		return 0, err
	}
	for _, at := range list {
		if err := each(at); err != nil {
			return 0, err
		}
	}
	return rev, nil
}

// Watch implements Store.
func (f *Fake) Watch(ctx context.Context, after int64, each func(record.Events) error) error {
	f.mu.Lock()
	cuts := f.cuts
	if err := f.alive("watch"); err != nil {
		f.mu.Unlock()
		return err
	}
	if after+1 < f.compacted {
		f.mu.Unlock()
		return fmt.Errorf("watch: %w", ErrCompacted)
	}
	f.mu.Unlock()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		f.mu.Lock()
		if f.cuts != cuts {
			f.mu.Unlock()
			return fmt.Errorf("watch: %w", ErrCompacted)
		}
		list, rev, advanced := f.since(after+1, record.Family.Active), f.rev, f.advanced
		if f.down {
			list, rev = nil, after
		}
		f.mu.Unlock()
		for _, events := range list {
			after = events.Rev
			if err := each(events); err != nil {
				return err
			}
		}
		select {
		case <-advanced:
		case <-tick.C:
			if rev > after || !f.isDown() {
				after = max(after, rev)
				if err := each(record.Events{Rev: after}); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *Fake) isDown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

// since gathers history from a revision on, one Events for each revision. It is
// called with the lock.
func (f *Fake) since(rev int64, want func(record.Family) bool) []record.Events {
	var list []record.Events
	start, _ := slices.BinarySearchFunc(f.history, rev, func(e record.Event, rev int64) int { return int(e.ModRev - rev) })
	for _, e := range f.history[start:] {
		if !want(e.Key.Family) {
			continue
		}
		if len(list) == 0 || list[len(list)-1].Rev != e.ModRev {
			list = append(list, record.Events{Rev: e.ModRev})
		}
		last := &list[len(list)-1]
		last.Events = append(last.Events, e)
	}
	return list
}

// History implements Store.
func (f *Fake) History(_ context.Context, from int64, each func(record.Events) error) (int64, error) {
	f.mu.Lock()
	if from == 0 {
		from = f.compacted
	}
	list, rev, err := f.since(from, func(record.Family) bool { return true }), f.rev, f.alive("history")
	if from < f.compacted {
		err = errors.Join(err, fmt.Errorf("history: %w", ErrCompacted))
	}
	f.mu.Unlock()
	if err != nil {
		return 0, err
	}
	for _, e := range list {
		if err := each(e); err != nil {
			return 0, err
		}
	}
	return rev, nil
}

// Compact implements Store.
func (f *Fake) Compact(_ context.Context, rev int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.alive("compact"); err != nil {
		return err
	}
	if rev > f.rev {
		return fmt.Errorf("compact up to revision %d: it lies in the future", rev)
	}
	f.compacted = max(f.compacted, rev)
	f.history = slices.DeleteFunc(f.history, func(e record.Event) bool { return e.ModRev < rev })
	return nil
}
