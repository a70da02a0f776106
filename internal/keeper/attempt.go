package keeper

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// phase is how far an attempt is on its way out.
type phase int

const (
	running phase = iota // nothing was asked; its main process may not exist yet
	ending               // TERM is sent to whoever is found; KILL follows at killAt
	killing              // KILL is sent to whoever is found
)

// procKey names a process for ever.
type procKey struct {
	pid   int
	ticks uint64
}

// attempt is the keeper's view of one attempt. The loop owns it; the forker
// reads Start and the fence only.
//
//	queued ─▶ forking ─▶ main lives ─▶ main reaped ─▶ tree empty ─▶ output drained ─▶ ended
type attempt struct {
	Start
	deadline atomic.Int64 // the fence as an Instant; zero: none

	pid     int    // of the main process; zero until the fork is reported
	ticks   uint64 // its start time
	started Instant
	wallAt  time.Time

	phase  phase
	killAt Instant
	termed map[procKey]struct{} // who got TERM already
	cause  Cause

	reaped  bool // the main process ended, and status is how
	status  unix.WaitStatus
	endedAt time.Time
	ended   Instant
	strays  map[procKey]struct{}

	empty   bool // nothing of it lives, proven after reaped
	capture *capture
	drained bool
}

// fence is the fence deadline; zero means none.
func (a *attempt) fence() Instant { return Instant(a.deadline.Load()) }

// next is the instant at which the attempt wants to be looked at; zero means
// that no deadline is set.
func (a *attempt) next() Instant {
	var at Instant
	for _, t := range []Instant{a.killDue(), a.timeoutDue(), a.fence(), a.fenceTermDue()} {
		if t != 0 && (at == 0 || t < at) {
			at = t
		}
	}
	return at
}

func (a *attempt) killDue() Instant {
	if a.phase != ending {
		return 0
	}
	return a.killAt
}

func (a *attempt) timeoutDue() Instant {
	if a.phase != running || a.Timeout <= 0 || a.started == 0 {
		return 0
	}
	return a.started.Add(a.Timeout)
}

func (a *attempt) fenceTermDue() Instant {
	if a.phase != running || a.FenceTerm <= 0 || a.fence() == 0 {
		return 0
	}
	return max(1, a.fence().Add(-a.FenceTerm))
}

// tick moves the attempt on where a deadline has passed, and says whether it
// did. A cause is kept only while the main process lives: what ended by itself
// was not ended by us.
func (a *attempt) tick(now Instant) bool {
	before := a.phase
	due := func(t Instant) bool { return t != 0 && now >= t }
	if due(a.fenceTermDue()) {
		a.end(CauseFenced, a.fence())
	}
	if due(a.timeoutDue()) {
		a.end(CauseTimeout, now.Add(a.Grace))
	}
	if a.phase != killing && due(a.fence()) {
		a.end(CauseFenced, now)
	}
	if a.phase == ending && now >= a.killAt {
		a.phase = killing
	}
	return a.phase != before
}

// end begins the end, or brings it forward.
func (a *attempt) end(cause Cause, killAt Instant) {
	if a.cause == "" && !a.reaped {
		a.cause = cause
	}
	if a.phase == running {
		a.phase, a.killAt = ending, killAt
	}
	a.killAt = min(a.killAt, killAt)
}

// mayOwn says whether an orphan without any sign may be this attempt's.
func (a *attempt) mayOwn(p Proc) bool { return a.started != 0 && p.Ticks >= a.ticks }

// report is the attempt's end in words.
func (a *attempt) report() *Ended {
	e := &Ended{
		Token: a.Token, Ref: a.Ref, Cause: a.cause, Strays: len(a.strays),
		StartedAt: a.wallAt, Started: a.started, EndedAt: a.endedAt, Ended: a.ended,
	}
	if a.status.Signaled() {
		e.Signal = int(a.status.Signal())
	} else {
		e.ExitCode = a.status.ExitStatus()
	}
	if a.capture != nil {
		e.LogBytes = a.capture.tape.written
		if err := a.capture.tape.err; err != nil {
			e.LogError = err.Error()
		}
	}
	return e
}

// unstarted says why an attempt that waited for its fork gets none.
func (a *attempt) unstarted() error {
	if a.cause == CauseFenced {
		return errFenced
	}
	return errEndedEarly
}

// note is the closing note of the log; most logs need none.
func (a *attempt) note() string {
	switch a.cause {
	case CauseTimeout:
		return "ended by writ: its timeout passed"
	case CauseFenced:
		return "ended by writ: the worker's fence deadline passed"
	case CauseKilled:
		return "ended by writ on request"
	case CauseAgentGone:
		return "ended by writ: the worker agent is gone"
	default:
		return ""
	}
}
