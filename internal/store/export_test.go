package store

import (
	"time"

	"github.com/writ-sched/writ/internal/batch"
)

// Classify is classify, for its table of cases.
func Classify(err error) batch.Class { return classify(err) }

// Renewals is the bookkeeping of the renewer without its stream.
type Renewals struct{ r *renewer }

// NewRenewals makes one.
func NewRenewals() Renewals { return Renewals{newRenewer(nil, time.Second)} }

// Ask asks for a renewal; the function says how long the lease lives, and false
// while that is not known.
func (x Renewals) Ask(lease int64) func() (time.Duration, bool) {
	answered, err := x.r.ask(lease)
	if err != nil {
		return func() (time.Duration, bool) { return -1, true }
	}
	return func() (time.Duration, bool) {
		select {
		case a := <-answered:
			if a.err != nil {
				return -1, true
			}
			return a.ttl, true
		default:
			return 0, false
		}
	}
}

// Take returns what is sent at now, Settle takes an answer, Overdue says that one
// is missing, Break loses the stream and Stop ends it all.
func (x Renewals) Take(now time.Time) []int64            { return x.r.take(now) }
func (x Renewals) Settle(lease int64, ttl time.Duration) { x.r.settle(lease, ttl) }
func (x Renewals) Overdue(now time.Time) bool            { return x.r.overdue(now) }
func (x Renewals) Break()                                { x.r.again() }
func (x Renewals) Stop()                                 { x.r.stop() }
