package leader

import (
	"sync"

	"github.com/writ-sched/writ/internal/record"
)

// flight is one change on its way.
type flight struct {
	change  record.Change
	page    *document // of an ended document
	outcome record.Outcome
}

// inbox takes what became of changes, from whatever goroutine says so, until
// the loop comes to it.
type inbox struct {
	wake chan struct{} // capacity 1: something arrived

	mu      sync.Mutex // guards arrived
	arrived []*flight
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) put(f *flight) {
	b.mu.Lock()
	b.arrived = append(b.arrived, f)
	b.mu.Unlock()
	b.knock()
}

// knock makes the loop come round.
func (b *inbox) knock() {
	select {
	case b.wake <- struct{}{}:
	default: // it will find everything
	}
}

func (b *inbox) take() []*flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.arrived
	b.arrived = nil
	return taken
}
