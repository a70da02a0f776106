package record

import "time"

// Schema is the version of every record that this code writes. A replica
// refuses a store whose meta record names a newer one.
const Schema = 1

// Attempt is the row of one attempt, the heart of writ: an attempt that has no
// row was never dispatched. Rows are inserted and moved, never reused; a retry
// is a new row with the next number.
type Attempt struct {
	Schema   int          `json:"schema"`
	Run      RunID        `json:"run"`
	Task     TaskID       `json:"task"`
	Instance Instance     `json:"instance,omitempty"`
	Attempt  int          `json:"attempt"` // from 1
	Kind     Kind         `json:"kind"`
	State    AttemptState `json:"state"`
	// EnteredAt is when State was entered, by the clock of who wrote it.
	EnteredAt time.Time `json:"entered_at"`
	// NotBefore is the due time of a retry; zero means at once.
	NotBefore time.Time `json:"not_before,omitzero"`

	// Token is empty in a row that waits for its time. With a token, a queued
	// row is an intent: it names the only session that may be sent it.
	Token   Token      `json:"token,omitempty"`
	Worker  WorkerName `json:"worker,omitempty"`
	Session SessionID  `json:"session,omitempty"`

	Queue Queue    `json:"queue,omitempty"`
	Pool  Pool     `json:"pool,omitempty"`
	Keys  []string `json:"keys,omitempty"` // concurrency keys, see Holder

	Idempotent bool   `json:"idempotent"`
	OnLost     OnLost `json:"on_lost,omitempty"` // set only where not idempotent
	// Fence is the create revision of the row as it first stood. It is zero in
	// a row that still has that revision, and is filled in when an ended run is
	// reopened (see FirstRev).
	Fence int64 `json:"fence,omitempty"`
	// TTL is the session's lease at the claim. The wait before a fenced
	// attempt is given up lasts this long plus a margin.
	TTL Duration `json:"ttl,omitzero"`

	// Failures, Losses and Abandons count how the attempts before this one
	// ended, since the last clear. Only Failures spend retries.
	Failures int `json:"failures,omitempty"`
	Losses   int `json:"losses,omitempty"`
	Abandons int `json:"abandons,omitempty"`

	// Refused is set when the probed worker said that it does not know the
	// token; the leader then abandons the row.
	Refused *Mark `json:"refused,omitempty"`
	// Unproven says that the row is terminal though nothing proves that its
	// process is dead; a key of its own keeps the task from running again.
	Unproven bool `json:"unproven,omitempty"`

	Cause Cause `json:"cause,omitzero"`
	// Exit is how the process ended; nil where none did.
	Exit *Exit `json:"exit,omitempty"`
	// ResultBytes is the size of the JSON result stored beside the row.
	ResultBytes int `json:"result_bytes,omitempty"`

	Transitions []Transition `json:"transitions"`
}

// Exit is how a process ended: by a code, or by a signal.
type Exit struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"` // such as SIGKILL; Code is then -1
}

// Mark says who noted something, and when.
type Mark struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Hold is an operator's word on a record: who, when and why.
type Hold struct {
	By  string    `json:"by"`
	At  time.Time `json:"at"`
	Why string    `json:"why,omitempty"`
}

// Transition is one step in the life of a row or a run.
type Transition struct {
	State string    `json:"state"`
	At    time.Time `json:"at"`
	Rule  Rule      `json:"rule"`
	// By is who wrote it: replica/<id>, session/<id> or person/<name>.
	By string `json:"by"`
	// Term is the create revision of the leader's election key; zero for
	// writes that need no leader.
	Term  int64   `json:"term,omitempty"`
	Write WriteID `json:"write"`
}

// Rule names the rule that asked for a write: a reconcile rule, or what a
// worker, a person or the api did.
type Rule string

// The rules, in the order in which a run meets them.
const (
	RuleApply      Rule = "apply"      // api: a new revision of a workflow
	RuleCreate     Rule = "create"     // api or timetable: a new run
	RuleAdmit      Rule = "admit"      // leader: a queued run may start
	RuleTrigger    Rule = "trigger"    // leader: decided skipped or upstream_failed
	RuleStart      Rule = "start"      // leader: the intent of a task's next attempt
	RuleDispatch   Rule = "dispatch"   // leader: a waiting row gets token and worker
	RuleRegister   Rule = "register"   // gateway: a session appears or moves
	RuleClaim      Rule = "claim"      // gateway: the worker may start
	RuleStarted    Rule = "started"    // gateway: the worker has started
	RuleFinish     Rule = "finish"     // gateway: the worker's result
	RuleProbe      Rule = "probe"      // gateway: the answer to a probe
	RuleAbandon    Rule = "abandon"    // leader: an unconfirmed dispatch is replaced
	RuleLost       Rule = "lost"       // leader or gateway: the worker is gone
	RuleRetry      Rule = "retry"      // leader: a failed task waits for its next attempt
	RuleTimeout    Rule = "timeout"    // leader: queue timeout, run timeout
	RuleFinishRun  Rule = "finish_run" // leader: all tasks are terminal
	RuleEnd        Rule = "end"        // leader: pages and head of the ended document
	RuleCancel     Rule = "cancel"     // operator, then leader and gateway
	RulePause      Rule = "pause"      // operator: hold or release
	RuleClear      Rule = "clear"      // operator: tasks are to run again
	RuleReopen     Rule = "reopen"     // operator, then leader: an ended run lives again
	RuleResolve    Rule = "resolve"    // operator: the outcome of a lost attempt
	RuleDrain      Rule = "drain"      // operator: a worker takes no new attempts, or does again
	RuleProve      Rule = "prove"      // a death is proven, its mark goes
	RuleSweep      Rule = "sweep"      // leader: retention
	RuleRepair     Rule = "repair"     // leader: a state that no rule should have left
	RuleInitialise Rule = "initialise" // replica: the meta record of a new store
	RuleAttend     Rule = "attend"     // replica: its own leased address record
)

// TaskRef returns the task, or instance, that the row belongs to.
func (a Attempt) TaskRef() TaskRef { return TaskRef{Run: a.Run, Task: a.Task, Instance: a.Instance} }

// Ref returns the row's own name.
func (a Attempt) Ref() Ref { return a.TaskRef().At(a.Attempt) }

// Intent says that the row is a dispatch that nobody has confirmed yet.
func (a Attempt) Intent() bool { return a.State == Queued && a.Token != "" }

// Waiting says that the row waits for its time and has no token.
func (a Attempt) Waiting() bool { return a.State == Queued && a.Token == "" }

// Live says that a worker holds the row: an intent, or running.
func (a Attempt) Live() bool { return a.Token != "" && !a.State.Terminal() }

// Fenced says that the process must be dead by the worker's own deadline.
func (a Attempt) Fenced() bool { return !a.Idempotent && a.OnLost == OnLostRetry }

// Claimed says that a session was given the right to start the row.
func (a Attempt) Claimed() bool {
	for _, t := range a.Transitions {
		if t.State == string(Running) {
			return true
		}
	}
	return false
}

// FirstRev is the create revision that counts for clears and for WRIT_FENCE:
// the one carried over a reopening, or else that of the key.
func (a Attempt) FirstRev(createRev int64) int64 {
	if a.Fence != 0 {
		return a.Fence
	}
	return createRev
}

// EnteredState returns when the row first entered s, and whether it did.
func (a Attempt) EnteredState(s AttemptState) (time.Time, bool) {
	for _, t := range a.Transitions {
		if t.State == string(s) {
			return t.At, true
		}
	}
	return time.Time{}, false
}

// Wrote implements Value.
func (a Attempt) Wrote() WriteID { return lastWrite(a.Transitions) }

// HasWrite says whether one of the transitions was made by that write: the
// only proof that a write whose answer was lost did commit.
func (a Attempt) HasWrite(w WriteID) bool { return hasWrite(a.Transitions, w) }

func lastWrite(ts []Transition) WriteID {
	if len(ts) == 0 {
		return ""
	}
	return ts[len(ts)-1].Write
}

func hasWrite(ts []Transition, w WriteID) bool {
	for _, t := range ts {
		if t.Write == w {
			return true
		}
	}
	return false
}
