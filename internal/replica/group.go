package replica

import (
	"context"
	"fmt"
	"sync"
)

// group runs parts that live together. The zero value is ready for use.
type group struct {
	parts sync.WaitGroup
	once  sync.Once
	fail  chan error // capacity 1: the first failure
}

func (g *group) failed() chan error {
	g.once.Do(func() { g.fail = make(chan error, 1) })
	return g.fail
}

// run runs one part until ctx ends. One that returns an error while ctx lasts
// has failed.
func (g *group) run(ctx context.Context, name string, f func(context.Context) error) {
	failed := g.failed()
	g.parts.Go(func() {
		err := f(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		select {
		case failed <- fmt.Errorf("%s: %w", name, err):
		default: // another failed first
		}
	})
}

func (g *group) wait() { g.parts.Wait() }
