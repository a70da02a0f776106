package store

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/writ-sched/writ/internal/record"
)

// sweepPage is how many keys one Txn of a sweep deletes at most: more would
// hold up everybody else's.
const sweepPage = 100

// Compact lets the history before rev go. A history that is gone already is no
// error.
func (s *Store) Compact(ctx context.Context, rev int64) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	if _, err := s.config.Bulk.Compact(ctx, rev); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact up to revision %d: %w", rev, err)
	}
	return nil
}

// Status is the size of etcd's database: the largest of all members that
// answered.
type Status struct {
	// Rev is the highest revision of any member.
	Rev int64
	// Bytes is the size of the file, InUse what of it holds records. Only InUse
	// shrinks by compaction.
	Bytes, InUse int64
	// Quota is where etcd stops taking writes; 0 where it does not say.
	Quota int64
	// Alarms are what members complain about, by member.
	Alarms []string
}

// Status asks every member. It fails only where none answers.
func (s *Store) Status(ctx context.Context) (Status, error) {
	var status Status
	var failures []error
	endpoints := s.config.Live.Endpoints()
	for _, endpoint := range endpoints {
		if err := s.addStatus(ctx, endpoint, &status); err != nil {
			failures = append(failures, fmt.Errorf("status of etcd at %s: %w", endpoint, err))
		}
	}
	if len(failures) == len(endpoints) {
		return Status{}, errors.Join(failures...)
	}
	return status, nil
}

func (s *Store) addStatus(ctx context.Context, endpoint string, sum *Status) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	got, err := s.config.Live.Status(ctx, endpoint)
	if err != nil {
		return err
	}
	sum.Rev = max(sum.Rev, got.Header.Revision)
	sum.Bytes, sum.InUse = max(sum.Bytes, got.DbSize), max(sum.InUse, got.DbSizeInUse)
	if got.DbSizeQuota > 0 && (sum.Quota == 0 || got.DbSizeQuota < sum.Quota) {
		sum.Quota = got.DbSizeQuota
	}
	for _, text := range got.Errors {
		sum.Alarms = append(sum.Alarms, endpoint+": "+text)
	}
	return nil
}

// Sweep deletes what is left of an ended run: results, pages, and at last its
// parameters, head and index line in one Txn. line is the index line as it was
// read; every Txn expects it unchanged, and also what is given in expect, such
// as the leader's term. It returns false, and leaves the rest, where one of them
// does not hold any more or the outcome is unknown; a later sweep goes on.
func (s *Store) Sweep(ctx context.Context, line record.Stored, expect ...record.Expect) (bool, error) {
	expect = append([]record.Expect{record.At(line.Key, line.ModRev)}, expect...)
	run := line.Key.Run
	for _, family := range []record.Family{record.FamilyResult, record.FamilyPage} {
		for {
			list, err := s.List(ctx, record.OfRun(family, run), record.Key{}, sweepPage)
			if err != nil {
				return false, fmt.Errorf("sweep %s: %w", run, err)
			}
			if len(list) == 0 {
				break
			}
			keys := make([]record.Key, len(list))
			for i, stored := range list {
				keys[i] = stored.Key
			}
			if swept, err := s.sweepKeys(ctx, run, expect, keys); err != nil || !swept {
				return false, err
			}
		}
	}
	return s.sweepKeys(ctx, run, expect, []record.Key{record.InputKey(run), record.EndedKey(run), line.Key})
}

func (s *Store) sweepKeys(ctx context.Context, run record.RunID, expect []record.Expect, keys []record.Key) (bool, error) {
	deletes := make([]record.Delete, len(keys))
	for i, k := range keys {
		deletes[i] = record.Remove(k)
	}
	change, err := record.NewChange(record.RuleSweep, "", expect, nil, deletes...)
	if err != nil {
		return false, fmt.Errorf("sweep %s: %w", run, err)
	}
	outcome, err := s.Commit(ctx, change)
	if err != nil {
		return false, fmt.Errorf("sweep %s: %w", run, err)
	}
	return outcome.Verdict == record.Committed, nil
}
