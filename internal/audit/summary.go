package audit

import (
	"fmt"
	"maps"
	"slices"
)

// Summary says what a history held, and how much of it could be judged.
type Summary struct {
	// Since is the revision of the snapshot that the history begins with, 0
	// for an empty store; Rev is the last one that was read.
	Since, Rev int64
	// Partial lists what holds only from Since on; it is empty for a whole
	// history.
	Partial []string

	Revisions, Events         int
	Runs, Ended, Reopened     int
	Attempts, Clears          int
	Sessions, Terms, Observed int

	// What the guards and rules stood between: dispatches into a void that
	// were replaced, tokens that their worker refused, workers lost, deaths
	// without proof.
	Abandoned, Refused, Lost, Unproven int

	// Blind counts the questions that could not be asked: attempts without a
	// spec, observations from before the history.
	Blind int
	// Checks counts the questions that were asked, by invariant.
	Checks []Check
}

// Check is how often an invariant was asked about.
type Check struct {
	Invariant string
	Times     int
}

// Summary returns what was read so far.
func (a *Auditor) Summary() Summary {
	s := a.sum
	s.Since, s.Rev, s.Terms = a.since, a.rev, len(a.terms)
	s.Sessions, s.Observed = len(a.sessions), len(a.observed)
	if a.partial {
		s.Partial = []string{
			fmt.Sprintf("I1: observations of attempts that ended before revision %d are not judged", a.since),
			fmt.Sprintf("I3: tokens are compared with those of the rows at revision %d and after, and of the documents given", a.since),
			fmt.Sprintf("I5, I6: what was decided before revision %d is taken as it stands", a.since),
			fmt.Sprintf("I9, I10: runs that ended before revision %d are known by their documents only", a.since),
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.checks)) {
		s.Checks = append(s.Checks, Check{Invariant: id, Times: a.checks[id]})
	}
	return s
}
