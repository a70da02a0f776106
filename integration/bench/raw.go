package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/etcd"
)

// replay makes the writes of a history on an etcd of its own, as fast as etcd
// takes them, and returns how long that took. The writes of one key keep their
// order: all first ones go, then all second ones, and so on.
func replay(ctx context.Context, history []write) (took time.Duration, err error) {
	dir, err := os.MkdirTemp("", "writ-bench-raw-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	member, err := etcd.New(etcd.Config{Dir: dir}, nil)
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- member.Run(ctx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	select {
	case <-member.Ready():
	case err := <-ended:
		ended <- nil
		return 0, fmt.Errorf("start etcd: %w", err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: member.Endpoints(), DialTimeout: 5 * time.Second})
	if err != nil {
		return 0, err
	}
	defer client.Close() //nolint:errcheck // all answers have come
	waves := map[int64][]write{}
	for _, w := range history {
		waves[w.version] = append(waves[w.version], w)
	}
	began := time.Now()
	for version := int64(1); len(waves[version]) > 0; version++ {
		if err := wave(ctx, client, batches(waves[version])); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// batches divides writes as the store does: by operations and by bytes.
func batches(list []write) [][]write {
	var all [][]write
	var next []write
	size := 0
	for _, w := range list {
		n := len(w.key)*3 + len(w.value)
		if len(next) > 0 && (len(next)+1 >= batch.DefaultOps-1 || size+n > batch.DefaultBytes) {
			all, next, size = append(all, next), nil, 0
		}
		next, size = append(next, w), size+n
	}
	return append(all, next)
}

// wave sends batches, as many at a time as the store does.
func wave(ctx context.Context, client *clientv3.Client, list [][]write) error {
	slots := make(chan struct{}, batch.DefaultTxns)
	var work sync.WaitGroup
	var mu sync.Mutex // guards failed
	var failed error
	for _, b := range list {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			if err := send(ctx, client, b); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
			}
		})
	}
	work.Wait()
	return failed
}

// send makes one Txn of guarded children.
func send(ctx context.Context, client *clientv3.Client, b []write) error {
	ops := make([]clientv3.Op, len(b))
	for i, w := range b {
		ops[i] = guarded(w)
	}
	answer, err := client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return err
	}
	for i, r := range answer.Responses {
		if !r.GetResponseTxn().GetSucceeded() {
			return fmt.Errorf("the guard of %s did not hold", b[i].key)
		}
	}
	return nil
}

func guarded(w write) clientv3.Op {
	return clientv3.OpTxn(
		[]clientv3.Cmp{clientv3.Compare(clientv3.Version(w.key), "=", w.version-1)},
		[]clientv3.Op{clientv3.OpPut(w.key, string(w.value))}, []clientv3.Op{clientv3.OpGet(w.key)})
}

// singleWrite is the median time of one guarded write of a row's size.
func singleWrite(ctx context.Context, endpoints []string) (time.Duration, error) {
	const writes, size = 200, 1024
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second})
	if err != nil {
		return 0, err
	}
	defer client.Close() //nolint:errcheck // all answers have come
	value := make([]byte, size)
	times := make([]time.Duration, 0, writes)
	for i := range writes {
		began := time.Now()
		if err := send(ctx, client, []write{{key: fmt.Sprintf("bench/single/%d", i), value: value, version: 1}}); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}
