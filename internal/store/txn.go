package store

import (
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/record"
)

// opOverhead is what etcd's messages add to a key and a value, rounded up.
const opOverhead = 64

// child is one change as a nested Txn. It is encoded once, so that a further try
// is the same byte for byte.
type child struct {
	change record.Change
	op     clientv3.Op
	reads  []record.Key // what Else reads, in order
	ops    int          // the width that etcd counts
	bytes  int
}

// encode turns a change into a child Txn. Its error wraps ErrRefused.
func (s *Store) encode(c record.Change) (child, error) {
	ch := child{change: c}
	fail := func(err error) (child, error) {
		return ch, fmt.Errorf("%w: change by rule %s: %w", ErrRefused, c.Rule, err)
	}
	if err := c.Check(); err != nil {
		return fail(err)
	}
	when, err := s.compares(c, &ch.bytes)
	if err != nil {
		return fail(err)
	}
	then, err := s.writes(c, &ch.bytes)
	if err != nil {
		return fail(err)
	}
	ch.reads = batch.Reads(c)
	otherwise := make([]clientv3.Op, len(ch.reads))
	for i, k := range ch.reads {
		key := s.space.Key(k)
		otherwise[i] = clientv3.OpGet(key)
		ch.bytes += len(key) + opOverhead
	}
	ch.ops = batch.Width(c)
	if limit := s.config.Limits.Ops; ch.ops > limit-1 {
		return fail(fmt.Errorf("it has %d operations, at most %d fit one transaction", ch.ops, limit-1))
	}
	if ch.bytes > maxRequest {
		return fail(fmt.Errorf("it has %d bytes, at most %d fit one transaction", ch.bytes, maxRequest))
	}
	ch.op = clientv3.OpTxn(when, then, otherwise)
	return ch, nil
}

func (s *Store) compares(c record.Change, bytes *int) ([]clientv3.Cmp, error) {
	list := make([]clientv3.Cmp, len(c.Expect))
	for i, e := range c.Expect {
		if e.Ranged() && !s.space.Exact(e.Range) {
			return nil, fmt.Errorf("it expects something of the %s in %+v, and other records lie between them", e.Range.Family, e.Range)
		}
		key := s.space.Key(e.Key)
		switch e.Want {
		case record.WantAbsent:
			list[i] = clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
		case record.WantPresent:
			list[i] = clientv3.Compare(clientv3.CreateRevision(key), ">", 0)
		case record.WantRev:
			list[i] = clientv3.Compare(clientv3.ModRevision(key), "=", e.Rev)
		case record.WantCreateRev:
			list[i] = clientv3.Compare(clientv3.CreateRevision(key), "=", e.Rev)
		case record.WantEmpty:
			from, to := s.space.Range(e.Range)
			key = from
			list[i] = clientv3.Compare(clientv3.CreateRevision(from), "=", 0).WithRange(to)
		case record.WantUnchanged:
			from, to := s.space.Range(e.Range)
			key = from
			list[i] = clientv3.Compare(clientv3.ModRevision(from), "<", e.Rev+1).WithRange(to)
		default:
			return nil, fmt.Errorf("it expects %q of %s, which is no expectation", e.Want, key)
		}
		*bytes += len(key) + opOverhead
	}
	return list, nil
}

func (s *Store) writes(c record.Change, bytes *int) ([]clientv3.Op, error) {
	list := make([]clientv3.Op, 0, len(c.Put)+len(c.Delete))
	for _, p := range c.Put {
		value, err := keyspace.EncodeAt(p.Key, p.Value)
		if err != nil {
			return nil, err
		}
		key := s.space.Key(p.Key)
		list = append(list, clientv3.OpPut(key, string(value), clientv3.WithLease(clientv3.LeaseID(p.Lease))))
		*bytes += len(key) + len(value) + opOverhead
	}
	for _, d := range c.Delete {
		if !d.Over {
			key := s.space.Key(d.Key)
			list = append(list, clientv3.OpDelete(key))
			*bytes += len(key) + opOverhead
			continue
		}
		if !s.space.Exact(d.Range) {
			return nil, fmt.Errorf("it deletes the %s in %+v, and other records lie between them", d.Range.Family, d.Range)
		}
		from, to := s.space.Range(d.Range)
		list = append(list, clientv3.OpDelete(from, clientv3.WithRange(to)))
		*bytes += len(from) + len(to) + opOverhead
	}
	return list, nil
}

// outcome reads the answer to a child.
func (s *Store) outcome(ch child, answer *pb.TxnResponse, rev int64) record.Outcome {
	if answer.GetSucceeded() {
		return record.Outcome{Verdict: record.Committed, Rev: rev}
	}
	seen := make([]record.Stored, len(ch.reads))
	for i, k := range ch.reads {
		seen[i].Key = k
		if i >= len(answer.GetResponses()) {
			continue
		}
		for _, kv := range answer.Responses[i].GetResponseRange().GetKvs() {
			stored, err := s.stored(kv)
			if err != nil {
				s.damaged(err)
			}
			stored.Key = k
			seen[i] = stored
		}
	}
	return batch.Judge(ch.change, seen)
}
