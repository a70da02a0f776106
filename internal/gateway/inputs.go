package gateway

import (
	"context"
	"fmt"
	"sync"

	"github.com/writ-sched/writ/internal/record"
)

// maxInputs bounds the runs whose parameters are remembered.
const maxInputs = 1024

// inputs remembers the parameters of runs, which never change.
type inputs struct {
	store Store

	mu    sync.Mutex // guards known
	known map[record.RunID]map[string]string
}

func newInputs(s Store) *inputs {
	return &inputs{store: s, known: map[record.RunID]map[string]string{}}
}

func (i *inputs) of(ctx context.Context, run record.RunID) (map[string]string, error) {
	i.mu.Lock()
	params, ok := i.known[run]
	i.mu.Unlock()
	if ok {
		return params, nil
	}
	stored, err := i.store.Get(ctx, record.InputKey(run))
	if err != nil {
		return nil, fmt.Errorf("read the parameters of run %s: %w", run, err)
	}
	if input, ok := stored.Value.(record.Input); ok {
		params = input.Params
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.known) >= maxInputs {
		clear(i.known)
	}
	i.known[run] = params
	return params, nil
}
