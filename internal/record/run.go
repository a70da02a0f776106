package record

import "time"

// RunTrigger says what made a run.
type RunTrigger string

// The triggers of a run.
const (
	TriggerManual   RunTrigger = "manual"
	TriggerSchedule RunTrigger = "schedule"
	TriggerBackfill RunTrigger = "backfill"
	TriggerChild    RunTrigger = "child"
)

// Run is one execution of one revision of a workflow. The record is written
// only by the transitions of the run table and by operator actions, never for
// progress: every write on the run's tasks compares it, so that a cancel, a
// hold or a clear stops what was planned before it.
type Run struct {
	Schema   int          `json:"schema"`
	Run      RunID        `json:"run"`
	Workflow WorkflowName `json:"workflow"`
	Revision int          `json:"revision"`
	State    RunState     `json:"state"`
	Phase    Phase        `json:"phase,omitempty"`
	// EnteredAt is when State was entered.
	EnteredAt time.Time `json:"entered_at"`
	CreatedAt time.Time `json:"created_at"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`

	Trigger RunTrigger `json:"trigger"`
	By      string     `json:"by,omitempty"`
	// LogicalDate is the date that a scheduled or backfilled run is for.
	LogicalDate time.Time `json:"logical_date,omitzero"`
	// Round counts the runs of one logical date, from 1; zero without a date.
	Round    int    `json:"round,omitempty"`
	Backfill string `json:"backfill,omitempty"`
	// Request fingerprints what an idempotency key was first used for, so that
	// the same key with other parameters is refused.
	Request string `json:"request,omitempty"`
	// Parent is the attempt of kind child that this run belongs to.
	Parent *Ref `json:"parent,omitempty"`

	// Deadline is when the run times out; zero means never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Paused is a hold, not a state: nothing is started while it stands.
	Paused *Hold `json:"paused,omitempty"`
	// Cancelling says who asked for the end of the run.
	Cancelling *Hold `json:"cancelling,omitempty"`
	// Clears counts the clears of this run; it numbers their keys.
	Clears int `json:"clears,omitempty"`
	// Pages counts the pages of the ended document, known from phase ending.
	Pages int `json:"pages,omitempty"`

	Cause       Cause        `json:"cause,omitzero"`
	Transitions []Transition `json:"transitions"`
}

// Startable says that new attempts of the run may be created: it is running,
// in no phase, and not held.
func (r Run) Startable() bool {
	return r.State == RunRunning && r.Phase == PhaseNone && r.Paused == nil
}

// Wrote implements Value.
func (r Run) Wrote() WriteID { return lastWrite(r.Transitions) }

// HasWrite says whether one of the transitions was made by that write.
func (r Run) HasWrite(w WriteID) bool { return hasWrite(r.Transitions, w) }

// MaxTransitions bounds the transitions kept in a run record. Operators may
// hold and release a run for years; the oldest steps but the first are let go.
const MaxTransitions = 16
