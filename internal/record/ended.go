package record

import "time"

// Ended is the head of the document of an ended run. The rows follow in Pages
// pages of their own, written before the head; the head and the deletion of
// the active keys are one Txn.
type Ended struct {
	Schema int   `json:"schema"`
	Run    Run   `json:"run"`
	RunRev int64 `json:"run_rev"` // the run record's last revision
	// Tasks counts the tasks by their final state.
	Tasks    map[AttemptState]int `json:"tasks"`
	Attempts int                  `json:"attempts"`
	Pages    int                  `json:"pages"`
	Clears   []EndedClear         `json:"clears,omitempty"`
	Unproven []Unproven           `json:"unproven,omitempty"`
	Write    WriteID              `json:"write"`
}

// Wrote implements Value.
func (e Ended) Wrote() WriteID { return e.Write }

// EndedClear is a clear with the revision that it was created at.
type EndedClear struct {
	Clear     Clear `json:"clear"`
	CreateRev int64 `json:"create_rev"`
}

// EndedPage is one page of an ended document.
type EndedPage struct {
	Schema int        `json:"schema"`
	Run    RunID      `json:"run"`
	Page   int        `json:"page"` // from 1
	Rows   []EndedRow `json:"rows"`
	Write  WriteID    `json:"write"`
}

// Wrote implements Value.
func (p EndedPage) Wrote() WriteID { return p.Write }

// EndedRow is a row with its create and last revisions, which a reopening
// carries over.
type EndedRow struct {
	Attempt   Attempt `json:"attempt"`
	CreateRev int64   `json:"create_rev"`
	ModRev    int64   `json:"mod_rev"`
}

// IndexLine is what lists and the sweep read of an ended run.
type IndexLine struct {
	Schema      int                  `json:"schema"`
	Run         RunID                `json:"run"`
	Workflow    WorkflowName         `json:"workflow"`
	Revision    int                  `json:"revision"`
	State       RunState             `json:"state"`
	Trigger     RunTrigger           `json:"trigger"`
	LogicalDate time.Time            `json:"logical_date,omitzero"`
	CreatedAt   time.Time            `json:"created_at"`
	StartedAt   time.Time            `json:"started_at,omitzero"`
	EndedAt     time.Time            `json:"ended_at"`
	Tasks       map[AttemptState]int `json:"tasks"`
	Attempts    int                  `json:"attempts"`
	Pages       int                  `json:"pages"`
	Write       WriteID              `json:"write"`
}

// Wrote implements Value.
func (l IndexLine) Wrote() WriteID { return l.Write }
