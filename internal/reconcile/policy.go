package reconcile

import "time"

// Policy holds the durations that the rules wait. Tests scale all of them by
// one factor.
type Policy struct {
	// Confirm is how long a dispatch may stand before its worker is probed.
	Confirm time.Duration
	// Probe is how long the probe may take; after both the dispatch is
	// abandoned.
	Probe time.Duration
	// Margin is added to a session's TTL before a fenced process counts as
	// dead.
	Margin time.Duration
	// AbandonDelay is the wait before the second dispatch into a void; it
	// doubles with each further one, up to AbandonMax.
	AbandonDelay time.Duration
	AbandonMax   time.Duration
	// Forget is how long a session that nobody names is remembered.
	Forget time.Duration
}

// Defaults returns DESIGN's durations.
func Defaults() Policy {
	return Policy{
		Confirm: 5 * time.Second, Probe: 3 * time.Second, Margin: 2 * time.Second,
		AbandonDelay: time.Second, AbandonMax: time.Minute, Forget: time.Minute,
	}
}

// MaxPage bounds one page of an ended document, in bytes of its JSON as
// estimated: a value of etcd may have 1.5 MiB, and a Txn of writ 512 KiB.
const MaxPage = 256 << 10
