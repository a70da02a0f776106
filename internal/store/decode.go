package store

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/record"
)

// stored decodes what etcd holds. With an error the revisions are set, and the
// key where it can be read.
func (s *Store) stored(kv *mvccpb.KeyValue) (record.Stored, error) {
	stored := record.Stored{CreateRev: kv.CreateRevision, ModRev: kv.ModRevision, Lease: kv.Lease}
	key, err := s.space.Parse(string(kv.Key))
	if err != nil {
		return stored, err
	}
	stored.Key = key
	value, err := keyspace.Decode(key, kv.Value)
	if err != nil {
		return stored, fmt.Errorf("value of %s: %w", kv.Key, err)
	}
	stored.Value = value
	return stored, nil
}
