package mirror

import (
	"sync"

	"github.com/writ-sched/writ/internal/view"
)

// Feed gathers what was touched for one reader, who takes it when it likes.
type Feed struct {
	mirror *Mirror
	wake   chan struct{} // capacity 1: something was added

	mu      sync.Mutex // guards pending
	pending view.Touched
}

// Feed opens a feed. It begins with everything that is in the view. The caller
// closes it.
func (m *Mirror) Feed() *Feed {
	f := &Feed{mirror: m, wake: make(chan struct{}, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.feeds[f] = struct{}{}
	f.add(view.Touched{Full: true})
	return f
}

// Close ends the feed.
func (f *Feed) Close() {
	f.mirror.mu.Lock()
	defer f.mirror.mu.Unlock()
	delete(f.mirror.feeds, f)
}

// Wake receives whenever something was added since it last did.
func (f *Feed) Wake() <-chan struct{} { return f.wake }

// Take returns what was touched since the last call.
func (f *Feed) Take() view.Touched {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.pending
	f.pending = view.Touched{}
	return taken
}

func (f *Feed) add(t view.Touched) {
	f.mu.Lock()
	f.pending = f.pending.Merge(t)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default: // its reader will find it
	}
}
