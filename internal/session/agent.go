package session

import (
	"maps"
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/record"
)

// Instant is a reading of a clock that only moves forward and goes on while
// the machine is suspended, such as Linux's boot-time clock.
type Instant time.Duration

// Phase is how far a session is with a token.
type Phase string

// The phases.
const (
	// Assigned: nothing runs; no slot is free, a claim is not answered, or the
	// session's own deadline has passed since it was.
	Assigned Phase = "assigned"
	Running  Phase = "running"
	// Unreported: it has ended, and the report is not answered.
	Unreported Phase = "unreported"
)

// Assignment is an attempt that was handed to the session.
type Assignment struct {
	Token      record.Token
	Ref        record.Ref
	Idempotent bool
	OnLost     record.OnLost // of one that is not idempotent
}

// fenced says that the process must be dead by the session's own deadline.
func (a Assignment) fenced() bool { return !a.Idempotent && a.OnLost == record.OnLostRetry }

// Act is something that the agent's shell is to do.
type Act string

// The acts.
const (
	SendStarted  Act = "send_started"  // a claim, where the attempt is not idempotent
	SendFinished Act = "send_finished" // the report that was kept
	SendPhase    Act = "send_phase"    // the answer to a probe: how far it is
	SendUnknown  Act = "send_unknown"  // the answer to a probe: not known, and refused from now on
	Begin        Act = "begin"         // start the attempt
	Cancel       Act = "cancel"        // end it: the run is cancelled
	Fence        Act = "fence"         // end it: the deadline has struck
	GiveUp       Act = "give_up"       // end it: the server knows that it is over
	// Report asks for a report of an attempt that was never started, by its
	// Cause; the shell keeps it and calls Ended.
	Report Act = "report"
	// Close lets go of everything that was kept about it.
	Close Act = "close"
)

// Action is an act about one token.
type Action struct {
	Act   Act
	Token record.Token
	// Cause counts for Report.
	Cause record.CauseCode
}

// HeldToken is a token that is not closed, as a Hello names it.
type HeldToken struct {
	Assignment
	Phase Phase
}

// resendAfter is how long an answer is waited for on a stream that stands.
const resendAfter = Instant(5 * time.Second)

// holding is one token of the agent.
type holding struct {
	Assignment
	phase    Phase
	admitted bool    // it has a slot
	granted  bool    // the claim was acknowledged on the stream that counts
	answered bool    // Started was answered
	struck   bool    // it was told to end at the deadline
	kept     bool    // the shell has its report
	sentAt   Instant // when the last unanswered message left
}

// Agent is the worker's end of a session: what it holds, and what it may do
// with it. Each method takes what has happened and returns what is to be done,
// in order. Make it with NewAgent.
type Agent struct {
	slots   int
	busy    int // slots in use
	held    map[record.Token]*holding
	waiting []record.Token // for a slot, in the order of arrival; closed ones too
	// refused are tokens that this session said it does not know; they are
	// never started.
	refused  map[record.Token]struct{}
	deadline Instant
	draining bool
}

// NewAgent makes an agent that holds nothing and runs so many attempts at
// once. Its deadline has passed: nothing that is not idempotent starts before
// a Hello or a heartbeat was acknowledged.
func NewAgent(slots int) *Agent {
	return &Agent{slots: slots, held: map[record.Token]*holding{}, refused: map[record.Token]struct{}{}}
}

// Held lists the tokens that are not closed, in the order of their tokens.
func (a *Agent) Held() []HeldToken {
	list := make([]HeldToken, 0, len(a.held))
	for _, t := range a.tokens() {
		h := a.held[t]
		list = append(list, HeldToken{Assignment: h.Assignment, Phase: h.phase})
	}
	return list
}

func (a *Agent) tokens() []record.Token { return slices.Sorted(maps.Keys(a.held)) }

// Idle says that nothing is assigned or running; reports may be unanswered.
func (a *Agent) Idle() bool {
	for _, h := range a.held {
		if h.phase != Unreported {
			return false
		}
	}
	return true
}

// Empty says that every token is closed.
func (a *Agent) Empty() bool { return len(a.held) == 0 }

// Deadline is when everything fenced is given up.
func (a *Agent) Deadline() Instant { return a.deadline }

// Phase is how far the session is with a token; false where it does not hold
// it.
func (a *Agent) Phase(t record.Token) (Phase, bool) {
	h, ok := a.held[t]
	if !ok {
		return "", false
	}
	return h.phase, true
}

// Assign takes an attempt. With a slot, one that is idempotent begins at once,
// and any other is claimed first.
func (a *Agent) Assign(as Assignment, now Instant) []Action {
	if _, known := a.held[as.Token]; known {
		return nil
	}
	if _, no := a.refused[as.Token]; no || a.draining {
		return a.refuse(as.Token)
	}
	a.held[as.Token] = &holding{Assignment: as, phase: Assigned}
	a.waiting = append(a.waiting, as.Token)
	return a.admit(now)
}

// refuse says that a token is not known, and keeps to it.
func (a *Agent) refuse(t record.Token) []Action {
	a.refused[t] = struct{}{}
	return []Action{{Act: SendUnknown, Token: t}}
}

// admit gives free slots to those that wait for one.
func (a *Agent) admit(now Instant) []Action {
	var acts []Action
	for a.busy < a.slots && len(a.waiting) > 0 {
		h, ok := a.held[a.waiting[0]]
		a.waiting = a.waiting[1:]
		if !ok || h.admitted || h.phase != Assigned {
			continue
		}
		h.admitted, h.sentAt = true, now
		a.busy++
		if h.Idempotent {
			h.phase = Running
			acts = append(acts, Action{Act: Begin, Token: h.Token})
		}
		acts = append(acts, Action{Act: SendStarted, Token: h.Token})
	}
	return acts
}

// leave gives up the slot of a token that runs no more.
func (a *Agent) leave(h *holding) {
	if h.admitted {
		h.admitted = false
		a.busy--
	}
}

// Answered takes the answer to Started, heard on the stream that counts.
func (a *Agent) Answered(t record.Token, granted bool, now Instant) []Action {
	h, ok := a.held[t]
	if !ok || h.answered || !h.admitted {
		return nil
	}
	h.answered = true
	switch {
	case !granted && h.phase == Assigned:
		a.leave(h)
		delete(a.held, t)
		a.refused[t] = struct{}{}
		return append([]Action{{Act: Close, Token: t}}, a.admit(now)...)
	case !granted:
		return []Action{{Act: GiveUp, Token: t}}
	case h.phase == Assigned:
		h.granted = true
		return a.begin(h, now)
	default:
		return nil
	}
}

// begin starts what was claimed, unless the deadline has passed; then it waits
// for a newer one, or for the fence to give it up.
func (a *Agent) begin(h *holding, now Instant) []Action {
	if now >= a.deadline {
		return nil
	}
	h.phase = Running
	return []Action{{Act: Begin, Token: h.Token}}
}

// Ended takes the end of an attempt, whose report the shell has kept.
func (a *Agent) Ended(t record.Token, now Instant) []Action {
	h, ok := a.held[t]
	if !ok {
		return nil
	}
	a.leave(h)
	h.phase, h.kept, h.sentAt = Unreported, true, now
	return append([]Action{{Act: SendFinished, Token: t}}, a.admit(now)...)
}

// Settled takes the answer to Finished, whichever it is.
func (a *Agent) Settled(t record.Token) []Action {
	h, ok := a.held[t]
	if !ok || h.phase != Unreported {
		return nil
	}
	delete(a.held, t)
	return []Action{{Act: Close, Token: t}}
}

// Cancelled takes the word that an attempt is to end.
func (a *Agent) Cancelled(t record.Token, now Instant) []Action {
	h, ok := a.held[t]
	switch {
	case !ok:
		return a.refuse(t)
	case h.phase == Assigned:
		return append(a.never(h, record.CauseCancelled), a.admit(now)...)
	case h.phase == Running:
		return []Action{{Act: Cancel, Token: t}}
	default:
		return nil
	}
}

// never ends a token that was not started: nothing will start it any more.
func (a *Agent) never(h *holding, cause record.CauseCode) []Action {
	a.leave(h)
	h.phase = Unreported
	return []Action{{Act: Report, Token: h.Token, Cause: cause}}
}

// Probed takes the question whether the session knows a token.
func (a *Agent) Probed(t record.Token) []Action {
	if _, ok := a.held[t]; ok {
		return []Action{{Act: SendPhase, Token: t}}
	}
	return a.refuse(t)
}

// Opened takes the news that a stream counts, with the deadline that follows
// from when its Hello was sent. Everything unanswered is sent again, and a
// claim that was granted on an earlier stream but not used is asked for anew:
// the session may have been gone in between.
func (a *Agent) Opened(deadline, now Instant) []Action {
	acts := a.strike(now)
	a.deadline = max(a.deadline, deadline)
	for _, t := range a.tokens() {
		h := a.held[t]
		if h.phase == Assigned {
			h.granted, h.answered = false, false
		}
		acts = append(acts, a.resend(h, now)...)
	}
	return append(acts, a.admit(now)...)
}

// Alive takes the acknowledgement of a heartbeat: the deadline that follows
// from when that was sent. A deadline that has struck stays struck for what it
// struck; what waited for a newer one begins.
func (a *Agent) Alive(deadline, now Instant) []Action {
	acts := a.strike(now)
	a.deadline = max(a.deadline, deadline)
	for _, t := range a.tokens() {
		if h := a.held[t]; h.phase == Assigned && h.granted {
			acts = append(acts, a.begin(h, now)...)
		}
	}
	return append(acts, a.admit(now)...)
}

// Tick looks at the clock: at the deadline everything fenced is given up, and
// what was not answered for a while is sent again.
func (a *Agent) Tick(now Instant) []Action {
	acts := a.strike(now)
	for _, t := range a.tokens() {
		if h := a.held[t]; now-h.sentAt >= resendAfter {
			acts = append(acts, a.resend(h, now)...)
		}
	}
	return append(acts, a.admit(now)...)
}

// strike gives up everything fenced where the deadline has passed, claimed or
// not, started or not.
func (a *Agent) strike(now Instant) []Action {
	if now < a.deadline {
		return nil
	}
	var acts []Action
	for _, t := range a.tokens() {
		h := a.held[t]
		switch {
		case !h.fenced():
		case h.phase == Assigned:
			acts = append(acts, a.never(h, record.CauseFenced)...)
		case h.phase == Running && !h.struck:
			h.struck = true
			acts = append(acts, Action{Act: Fence, Token: t})
		}
	}
	return acts
}

func (a *Agent) resend(h *holding, now Instant) []Action {
	switch {
	case h.kept:
		h.sentAt = now
		return []Action{{Act: SendFinished, Token: h.Token}}
	case h.admitted && !h.answered:
		h.sentAt = now
		return []Action{{Act: SendStarted, Token: h.Token}}
	default:
		return nil
	}
}

// Drain makes the agent refuse what comes from now on; what was not started is
// given up.
func (a *Agent) Drain() []Action {
	a.draining = true
	var acts []Action
	for _, t := range a.tokens() {
		if h := a.held[t]; h.phase == Assigned {
			acts = append(acts, a.never(h, record.CauseWorkerStopped)...)
		}
	}
	return acts
}
