package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/replica"
	"github.com/writ-sched/writ/pkg/worker"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// slots of the one worker: enough that it is never what is waited for.
const slots = 1000

// write is one put of a run's history; version counts the puts of its key.
type write struct {
	key     string
	value   []byte
	version int64
}

// house is a replica with an embedded member and a worker, in this process.
type house struct {
	*replica.Replica
	conn *grpc.ClientConn
	dir  string
	stop context.CancelFunc
	done chan error // of the replica and of the worker
}

func open(ctx context.Context) (*house, error) {
	dir, err := os.MkdirTemp("", "writ-bench-")
	if err != nil {
		return nil, err
	}
	r, err := replica.New(replica.Config{Listen: "127.0.0.1:0", Etcd: etcd.Config{Dir: dir}, KeepHistory: true}, nil)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	h := &house{Replica: r, dir: dir, stop: stop, done: make(chan error, 2)}
	go func() { h.done <- r.Run(ctx) }()
	select {
	case <-r.Ready():
	case err := <-h.done:
		stop()
		return nil, fmt.Errorf("start a replica: %w", err)
	}
	w, err := worker.New(worker.Config{
		Servers: []string{r.Address()}, Name: "bench", Slots: slots,
		Handlers: map[string]worker.Handler{"noop": func(context.Context, *worker.Task) (any, error) { return nil, nil }},
	})
	if err != nil {
		stop()
		return nil, err
	}
	go func() { h.done <- w.Run(ctx) }()
	h.conn, err = grpc.NewClient(r.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	return h, err
}

func (h *house) close() error {
	err := h.conn.Close()
	h.stop()
	return errors.Join(err, <-h.done, <-h.done, os.RemoveAll(h.dir))
}

// run applies a workflow, runs it once, and returns how long the run took from
// the request to the news of its end.
func (h *house) run(ctx context.Context, flow *writv1.Workflow) (time.Duration, error) {
	_, err := writv1.NewWorkflowServiceClient(h.conn).ApplyWorkflow(ctx, &writv1.ApplyWorkflowRequest{
		Source: &writv1.ApplyWorkflowRequest_Workflow{Workflow: flow},
	})
	if err != nil {
		return 0, err
	}
	if err := h.attended(ctx); err != nil {
		return 0, err
	}
	runs := writv1.NewRunServiceClient(h.conn)
	began := time.Now()
	made, err := runs.StartRun(ctx, &writv1.StartRunRequest{Workflow: flow.GetName()})
	if err != nil {
		return 0, err
	}
	stream, err := runs.WatchRun(ctx, &writv1.WatchRunRequest{Run: made.GetRun().GetRun()})
	if err != nil {
		return 0, err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return 0, err
		}
		switch {
		case m.GetRun().GetState() == writv1.RunState_RUN_STATE_SUCCESS:
			return time.Since(began), nil
		case m.GetEnded():
			return 0, fmt.Errorf("the run ended %s: %v", m.GetRun().GetState(), m.GetRun().GetCause())
		}
	}
}

// attended waits for the worker.
func (h *house) attended(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := writv1.NewAdminServiceClient(h.conn).ListWorkers(ctx, &writv1.ListWorkersRequest{})
		if err == nil && len(list.GetWorkers()) > 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// history reads every put since the beginning of the store under what a run
// writes: its rows, its record, its document.
func (h *house) history(ctx context.Context) ([]write, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: h.Endpoints(), DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	defer client.Close() //nolint:errcheck // it only read
	now, err := client.Get(ctx, "none")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var list []write
	versions := map[string]int64{}
	for m := range client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithProgressNotify(), clientv3.WithFragment()) {
		if err := m.Err(); err != nil {
			return nil, err
		}
		for _, e := range m.Events {
			key := string(e.Kv.Key)
			if e.Type != clientv3.EventTypePut || strings.Contains(key, "/election/") || e.Kv.Lease != 0 {
				continue
			}
			versions[key]++
			list = append(list, write{key: key, value: e.Kv.Value, version: versions[key]})
		}
		last := m.Header.Revision
		if n := len(m.Events); n > 0 {
			last = m.Events[n-1].Kv.ModRevision
		}
		if last >= now.Header.Revision {
			return list, nil
		}
		if len(m.Events) == 0 || last+1 >= now.Header.Revision {
			_ = client.RequestProgress(ctx) // without it the watch stays silent at the end
		}
	}
	return nil, ctx.Err()
}

// flat runs one wide run, and returns its history too.
func flat(ctx context.Context, tasks int, idempotent bool) (took time.Duration, history []write, err error) {
	h, err := open(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	flow := &writv1.Workflow{Name: "flat"}
	for i := range tasks {
		flow.Tasks = append(flow.Tasks, &writv1.Task{Id: "t" + strconv.Itoa(i), Handler: "noop", Idempotent: idempotent})
	}
	if took, err = h.run(ctx, flow); err != nil {
		return 0, nil, err
	}
	history, err = h.history(ctx)
	return took, history, err
}

// hop runs a chain, and returns the time per task beside that of one guarded
// write to the same etcd.
func hop(ctx context.Context, tasks int) (each, single time.Duration, err error) {
	h, err := open(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	flow := &writv1.Workflow{Name: "chain"}
	for i := range tasks {
		task := &writv1.Task{Id: "t" + strconv.Itoa(i), Handler: "noop", Idempotent: true}
		if i > 0 {
			task.Needs = []string{"t" + strconv.Itoa(i-1)}
		}
		flow.Tasks = append(flow.Tasks, task)
	}
	took, err := h.run(ctx, flow)
	if err != nil {
		return 0, 0, err
	}
	single, err = singleWrite(ctx, h.Endpoints())
	return took / time.Duration(tasks), single, err
}
