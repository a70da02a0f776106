package store_test

import (
	"fmt"
	"testing"

	"github.com/writ-sched/writ/internal/etcd/etcdtest"
	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store"
	"github.com/writ-sched/writ/internal/store/storetest"
)

// BenchmarkSubmit measures guarded inserts of typical rows that gather, on an
// etcd that does not sync: what the store itself costs.
func BenchmarkSubmit(b *testing.B) {
	client, live := etcdtest.Start(b).Client(b), etcdtest.Start(b).Client(b)
	space, err := keyspace.New(fmt.Sprintf("b%d", clusters.Add(1)))
	if err != nil {
		b.Fatal(err)
	}
	s, err := store.New(store.Config{Bulk: client, Live: live, Space: space})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(b.Context()) }()
	row := storetest.SampleAttempt()
	outcomes := make(chan record.Outcome, 1000)
	b.ResetTimer()
	go func() {
		for n := range b.N {
			row.Attempt = n + 1
			key := record.AttemptKey(row.Ref())
			s.Submit(record.Change{
				Rule: record.RuleStart, Write: row.Wrote(), Expect: []record.Expect{record.Absent(key), record.Absent(record.RunKey(row.Run))},
				Put: []record.Put{{Key: key, Value: row}},
			}, func(o record.Outcome) { outcomes <- o })
		}
	}()
	for range b.N {
		if o := <-outcomes; o.Verdict != record.Committed {
			b.Fatalf("%+v", o)
		}
	}
	b.StopTimer()
}
