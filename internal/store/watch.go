package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/writ-sched/writ/internal/record"
)

// errDone ends a watch whose caller has seen enough.
var errDone = errors.New("done")

// Watch calls each with everything that happens in active/ after the revision,
// whole revisions at a time, and with empty Events whenever it is known that
// nothing else happened up to Rev. It ends with an error of each, one that wraps
// ErrCompacted where the history is gone, or the cause of ctx's end.
func (s *Store) Watch(ctx context.Context, after int64, each func(record.Events) error) error {
	from, to := s.space.Active()
	if _, err := s.watch(ctx, from, to, after+1, each); err != nil {
		return fmt.Errorf("watch active records: %w", err)
	}
	return nil
}

// History calls each with everything that happened in the whole keyspace from
// the revision on until now, and returns the revision up to which it is
// complete. From 0 it begins at the oldest revision that is kept; otherwise a
// history that is gone is an error that wraps ErrCompacted.
func (s *Store) History(ctx context.Context, from int64, each func(record.Events) error) (int64, error) {
	now, err := s.revision(ctx)
	if err != nil {
		return 0, fmt.Errorf("read history: %w", err)
	}
	start, stop := s.space.Everything()
	until := func(e record.Events) error {
		if len(e.Events) > 0 {
			if err := each(e); err != nil {
				return err
			}
		}
		if e.Rev >= now {
			now = e.Rev
			return errDone
		}
		return nil
	}
	compacted, err := s.watch(ctx, start, stop, max(from, 1), until)
	if from == 0 && errors.Is(err, ErrCompacted) && compacted > 0 {
		_, err = s.watch(ctx, start, stop, compacted, until)
	}
	if err != nil && !errors.Is(err, errDone) {
		return 0, fmt.Errorf("read history: %w", err)
	}
	return now, nil
}

// revision is the store's revision, read linearizably.
func (s *Store) revision(ctx context.Context) (int64, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	got, err := s.config.Live.Get(ctx, s.space.Prefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return got.Header.Revision, nil
}

// watch follows an interval of keys from a revision on. With ErrCompacted it
// returns the oldest revision that can be watched.
func (s *Store) watch(ctx context.Context, from, to string, rev int64, each func(record.Events) error) (int64, error) {
	// The watcher's stream is chosen by what stands in its context, so that
	// requests for progress must use the same one.
	watchCtx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	answers := s.config.Live.Watch(watchCtx, from, clientv3.WithRange(to), clientv3.WithRev(rev))
	// The client forwards to this channel without a bound, and its goroutine ends
	// with the context; nothing need be read to let it go.
	tick := time.NewTicker(s.config.Progress)
	defer tick.Stop()
	for {
		select {
		case answer, open := <-answers:
			if !open {
				return 0, ended(ctx)
			}
			if err := answer.Err(); err != nil {
				if answer.CompactRevision > 0 {
					return answer.CompactRevision, fmt.Errorf("%w up to revision %d", ErrCompacted, answer.CompactRevision)
				}
				return 0, err
			}
			if err := s.relay(answer, each); err != nil {
				return 0, err
			}
		case <-tick.C:
			if err := s.config.Live.RequestProgress(watchCtx); err != nil {
				return 0, errors.Join(ended(ctx), err)
			}
		case <-ctx.Done():
			return 0, ended(ctx)
		}
	}
}

// ended says why a watch is over.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.New("etcd ended the watch")
}

// relay decodes one answer. etcd never splits a revision over two.
func (s *Store) relay(answer clientv3.WatchResponse, each func(record.Events) error) error {
	if answer.IsProgressNotify() {
		return each(record.Events{Rev: answer.Header.Revision})
	}
	events := record.Events{Events: make([]record.Event, 0, len(answer.Events))}
	for _, e := range answer.Events {
		events.Rev = e.Kv.ModRevision
		if e.Type == clientv3.EventTypeDelete {
			key, err := s.space.Parse(string(e.Kv.Key))
			if err != nil {
				s.damaged(err)
				continue
			}
			events.Events = append(events.Events, record.Event{Key: key, ModRev: e.Kv.ModRevision})
			continue
		}
		stored, err := s.stored(e.Kv)
		if err != nil {
			s.damaged(err)
			continue
		}
		events.Events = append(events.Events, record.Event(stored))
	}
	if events.Rev == 0 {
		return nil // the watch was created, and nothing has happened
	}
	return each(events)
}
