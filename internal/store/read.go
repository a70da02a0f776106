package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// page is how many keys one read of a long range takes (ETCD: several hundred
// keys a request are always fine).
const page = 500

// silenceLimit is how long a streamed read may pause between two pieces. It is
// generous: who lists again after a pause gives a slow etcd more to do.
const silenceLimit = 15 * time.Second

// Get reads one record, linearizably. Of a key that is absent it returns a
// Stored with ModRev 0 and no Value; a value that cannot be decoded is an error.
func (s *Store) Get(ctx context.Context, k record.Key) (record.Stored, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	got, err := s.config.Bulk.Get(ctx, s.space.Key(k))
	if err != nil {
		return record.Stored{}, fmt.Errorf("get %s: %w", s.space.Key(k), err)
	}
	if len(got.Kvs) == 0 {
		return record.Stored{Key: k}, nil
	}
	stored, err := s.stored(got.Kvs[0])
	if err != nil {
		return record.Stored{}, fmt.Errorf("get: %w", err)
	}
	return stored, nil
}

// List reads up to limit records of r in the order of their keys, beginning
// behind after, or at the first where after is the zero key. Fewer than limit
// are returned only where there are no more. A value that cannot be decoded is
// logged and listed with its revisions and without a Value.
func (s *Store) List(ctx context.Context, r record.Range, after record.Key, limit int) ([]record.Stored, error) {
	from, to := s.space.Range(r)
	if after != (record.Key{}) {
		from = max(from, s.space.Key(after)+"\x00")
	}
	var list []record.Stored
	for len(list) < limit && from < to {
		got, err := s.page(ctx, from, to, limit-len(list), 0)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", r.Family, err)
		}
		for _, kv := range got.Kvs {
			stored, err := s.stored(kv)
			if err != nil {
				s.damaged(err)
			}
			if r.Has(stored.Key) {
				list = append(list, stored)
			}
		}
		if !got.More {
			break
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
	return list, nil
}

// page reads up to limit keys of an interval; at a revision where rev is set.
func (s *Store) page(ctx context.Context, from, to string, limit int, rev int64) (*clientv3.GetResponse, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	return s.config.Bulk.Get(ctx, from, clientv3.WithRange(to), clientv3.WithLimit(int64(min(limit, page))), clientv3.WithRev(rev))
}

// Count counts the keys of a range that is exact (see keyspace.Space.Exact).
func (s *Store) Count(ctx context.Context, r record.Range) (int64, error) {
	if !s.space.Exact(r) {
		return 0, fmt.Errorf("count %s: other records lie between these", r.Family)
	}
	ctx, cancel := s.call(ctx)
	defer cancel()
	from, to := s.space.Range(r)
	got, err := s.config.Bulk.Get(ctx, from, clientv3.WithRange(to), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", r.Family, err)
	}
	return got.Count, nil
}

// Present says whether a key is there, by a linearizable read that begins after
// the call.
func (s *Store) Present(ctx context.Context, k record.Key) (bool, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	got, err := s.config.Live.Get(ctx, s.space.Key(k), clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", s.space.Key(k), err)
	}
	return got.Count > 0, nil
}

// Snapshot calls each for every record of active/ at one revision, in the order
// of their keys, and returns that revision. What cannot be decoded is logged
// and left out. An error of each ends it.
func (s *Store) Snapshot(ctx context.Context, each func(record.Stored) error) (int64, error) {
	rev, err := s.stream(ctx, each)
	if status.Code(err) == codes.Unimplemented {
		rev, err = s.pages(ctx, each)
	}
	if err != nil {
		return 0, fmt.Errorf("read all active records: %w", err)
	}
	return rev, nil
}

// stream reads all of active/ in one answer that comes in pieces.
func (s *Store) stream(ctx context.Context, each func(record.Stored) error) (int64, error) {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	defer cancel(nil)
	silence := time.AfterFunc(silenceLimit, func() { cancel(ErrSilent) })
	defer silence.Stop()
	from, to := s.space.Active()
	pieces, err := s.config.Bulk.GetStream(ctx, from, clientv3.WithRange(to))
	if err != nil {
		return 0, errors.Join(err, context.Cause(ctx))
	}
	// The client's goroutine ends only when its channel is read to the end.
	defer func() {
		cancel(nil)
		for range pieces {
			continue
		}
	}()
	var rev int64
	for piece := range pieces {
		silence.Stop()
		if err := piece.Err(); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = errors.Join(cause, err)
			}
			return 0, err
		}
		if piece.Header != nil {
			rev = piece.Header.Revision
		}
		if err := s.hand(piece.Kvs, each); err != nil {
			return 0, err
		}
		silence.Reset(silenceLimit)
	}
	if rev == 0 {
		return 0, errors.New("the stream ended before its last piece")
	}
	return rev, nil
}

// pages reads all of active/ at the revision of its first page.
func (s *Store) pages(ctx context.Context, each func(record.Stored) error) (int64, error) {
	from, to := s.space.Active()
	var rev int64
	for {
		got, err := s.page(ctx, from, to, page, rev)
		if err != nil {
			return 0, err
		}
		if rev == 0 {
			rev = got.Header.Revision
		}
		if err := s.hand(got.Kvs, each); err != nil {
			return 0, err
		}
		if !got.More {
			return rev, nil
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
}

// hand decodes what was read and hands it on.
func (s *Store) hand(kvs []*mvccpb.KeyValue, each func(record.Stored) error) error {
	for _, kv := range kvs {
		stored, err := s.stored(kv)
		if err != nil {
			s.damaged(err)
			continue
		}
		if err := each(stored); err != nil {
			return err
		}
	}
	return nil
}

// Spec reads one revision of a workflow, its chunks included. The error names a
// revision that is absent or cut short.
func (s *Store) Spec(ctx context.Context, name record.WorkflowName, revision int) (*spec.Workflow, error) {
	fail := func(err error) (*spec.Workflow, error) {
		return nil, fmt.Errorf("read revision %d of %s: %w", revision, name, err)
	}
	stored, err := s.Get(ctx, record.RevisionKey(name, revision))
	if err != nil {
		return fail(err)
	}
	head, ok := stored.Value.(record.Revision)
	if !ok {
		return fail(errors.New("it does not exist"))
	}
	var text strings.Builder
	text.WriteString(string(head.Spec))
	for chunk := 1; chunk <= head.Chunks; chunk++ {
		stored, err := s.Get(ctx, record.ChunkKey(name, revision, chunk))
		if err != nil {
			return fail(err)
		}
		blob, ok := stored.Value.(record.Blob)
		if !ok {
			return fail(fmt.Errorf("chunk %d of %d is missing", chunk, head.Chunks))
		}
		text.Write(blob)
	}
	w, err := spec.Parse([]byte(text.String()))
	if err != nil {
		return fail(err)
	}
	return w, nil
}

// damaged logs a key or value that cannot be decoded.
func (s *Store) damaged(err error) {
	s.logger.Error("a record cannot be read and is passed over", zap.Error(err))
}
