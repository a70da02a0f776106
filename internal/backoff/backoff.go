package backoff

import (
	"cmp"
	"fmt"
	"time"
)

// Config is the range of the delays. The zero value of a field means its
// default.
type Config struct {
	// Min is the shortest delay; 100 ms by default.
	Min time.Duration
	// Max is the longest delay; 5 s by default.
	Max time.Duration
	// Factor is how much longer each ceiling is than the one before; 2 by
	// default, at least 1.
	Factor float64
}

// Backoff counts failed tries and says how long to wait after each.
type Backoff struct {
	min, max time.Duration
	factor   float64
	draw     func() float64
	ceiling  float64 // of the next delay, in nanoseconds
}

// New returns a Backoff at its beginning. draw returns a random number in
// [0, 1), as math/rand/v2.Float64 does; it is called once per Next. New panics
// where the settings contradict each other.
func New(c Config, draw func() float64) *Backoff {
	b := &Backoff{
		min:    cmp.Or(c.Min, 100*time.Millisecond),
		max:    cmp.Or(c.Max, 5*time.Second),
		factor: cmp.Or(c.Factor, 2),
		draw:   draw,
	}
	if b.min < 0 || b.max < b.min || !(b.factor >= 1) || draw == nil {
		panic(fmt.Sprintf("backoff: want 0 < min <= max, factor >= 1 and a draw, have %v, %v, %v", b.min, b.max, b.factor))
	}
	b.Reset()
	return b
}

// Next returns the delay after one more failed try: drawn from the upper half
// of a range whose ceiling grows by the factor from Min to Max.
func (b *Backoff) Next() time.Duration {
	d := time.Duration(b.ceiling/2 + b.draw()*b.ceiling/2)
	// The product may be +Inf; what is kept is finite.
	b.ceiling = min(b.ceiling*b.factor, float64(b.max))
	return max(b.min, min(d, b.max))
}

// Reset begins again, as after a success.
func (b *Backoff) Reset() {
	// The first range is [Min, 2*Min), so that the first delays differ too.
	b.ceiling = min(2*float64(b.min), float64(b.max))
}
