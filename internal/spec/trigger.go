package spec

import "github.com/writ-sched/writ/internal/record"

// Class is what a direct upstream counts as for a trigger rule.
type Class int

// The classes. A task whose next attempt is queued or owed is open, whatever
// its latest row says.
const (
	ClassOpen Class = iota
	ClassSuccess
	ClassBad
	ClassSkipped
)

// ClassOf returns the class of a task whose latest row has the state. It is
// for the caller to know that no retry is owed: a failed row that will be
// tried again is ClassOpen. An abandoned row is no end, since a replacement
// stands or follows.
func ClassOf(state record.AttemptState, allowFailure bool) Class {
	switch {
	case state == record.Success, state == record.Failed && allowFailure:
		return ClassSuccess
	case state.Bad():
		return ClassBad
	case state == record.Skipped:
		return ClassSkipped
	default:
		return ClassOpen
	}
}

// Tally counts the direct upstreams of a task by class.
type Tally struct{ Open, Success, Bad, Skipped int }

// Add counts one more upstream of the class.
func (t *Tally) Add(c Class) { *t.of(c)++ }

// Remove counts one upstream of the class less.
func (t *Tally) Remove(c Class) { *t.of(c)-- }

// Total is the number of upstreams.
func (t Tally) Total() int { return t.Open + t.Success + t.Bad + t.Skipped }

func (t *Tally) of(c Class) *int {
	switch c {
	case ClassSuccess:
		return &t.Success
	case ClassBad:
		return &t.Bad
	case ClassSkipped:
		return &t.Skipped
	default:
		return &t.Open
	}
}

// Decision is what a trigger rule says about a task that has not started.
type Decision int

// The decisions.
const (
	// Undecided means that the task waits: an end of an open upstream can
	// still change whether it runs, or the state that it gets, or the rule
	// wants every upstream terminal before it runs.
	Undecided Decision = iota
	// Run means that the task may start.
	Run
	// Skip means that the task never runs and ends skipped.
	Skip
	// UpstreamFail means that the task never runs and ends upstream_failed.
	UpstreamFail
)

// String is the decision as a word.
func (d Decision) String() string {
	switch d {
	case Undecided:
		return "undecided"
	case Run:
		return "run"
	case Skip:
		return "skip"
	default:
		return "upstream_fail"
	}
}

// Decide applies the rule to the upstreams. It is undecided exactly as long as
// some end of the open upstreams could change the outcome. An unknown rule is
// taken as all_success; Validate refuses it.
func (r TriggerRule) Decide(t Tally) Decision {
	ended := t.Open == 0
	switch r {
	case AllFailed:
		return decide(ended && t.Success+t.Skipped == 0, t.Success+t.Skipped > 0, Skip)
	case AllDone:
		return decide(ended, false, Skip)
	case OneSuccess:
		return decide(t.Success > 0, ended, t.miss())
	case OneFailed:
		return decide(t.Bad > 0, ended, Skip)
	case OneDone:
		return decide(t.Success+t.Bad > 0, ended, Skip)
	case NoneFailed:
		return decide(ended && t.Bad == 0, t.Bad > 0, UpstreamFail)
	case NoneFailedMinOneSuccess:
		return decide(ended && t.Bad == 0 && t.Success > 0, t.Bad > 0 || ended, t.miss())
	case NoneSkipped:
		return decide(ended && t.Skipped == 0, t.Skipped > 0, Skip)
	case Always:
		return Run
	default:
		// One skipped upstream settles that the task does not run, and leaves
		// open which state it gets; one bad upstream settles both.
		return decide(t.Success == t.Total(), t.Bad > 0 || ended, t.miss())
	}
}

// miss is how a task ends that cannot run: by a failure above, or skipped.
func (t Tally) miss() Decision {
	if t.Bad > 0 {
		return UpstreamFail
	}
	return Skip
}

// decide is Run where run holds, otherwise where settled holds, else
// Undecided.
func decide(run, settled bool, otherwise Decision) Decision {
	switch {
	case run:
		return Run
	case settled:
		return otherwise
	default:
		return Undecided
	}
}
