package record

import "time"

// Meta is the first record of a store.
type Meta struct {
	Schema int `json:"schema"`
	// Cluster is a random id of this store's life. A restore from a backup
	// gets a new one, since revisions may have gone backwards.
	Cluster   string    `json:"cluster"`
	CreatedAt time.Time `json:"created_at"`
	Write     WriteID   `json:"write"`
}

// Wrote implements Value.
func (m Meta) Wrote() WriteID { return m.Write }

// Workflow points at the current revision of a workflow. Revisions themselves
// are immutable and live outside the watch.
type Workflow struct {
	Schema    int          `json:"schema"`
	Workflow  WorkflowName `json:"workflow"`
	Revision  int          `json:"revision"`
	Digest    string       `json:"digest"` // of the encoded revision
	UpdatedAt time.Time    `json:"updated_at"`
	By        string       `json:"by,omitempty"`
	Paused    *Hold        `json:"paused,omitempty"`
	// Cursor is the last logical date for which a run was created or passed
	// over; the schedule goes on behind it.
	Cursor time.Time `json:"cursor,omitzero"`
	Write  WriteID   `json:"write"`
}

// Wrote implements Value.
func (w Workflow) Wrote() WriteID { return w.Write }

// Revision is the head of one immutable revision. A spec that does not fit one
// value continues in Chunks values of its own, written before the head.
type Revision struct {
	Schema   int          `json:"schema"`
	Workflow WorkflowName `json:"workflow"`
	Revision int          `json:"revision"`
	Digest   string       `json:"digest"`
	Bytes    int          `json:"bytes"`
	Chunks   int          `json:"chunks,omitempty"`
	// Spec is the encoded workflow where it fits; otherwise it is empty and
	// the chunks hold it.
	Spec      Text      `json:"spec,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	By        string    `json:"by,omitempty"`
	Write     WriteID   `json:"write"`
}

// Wrote implements Value.
func (r Revision) Wrote() WriteID { return r.Write }

// Text is a JSON text that is stored as it stands, not as a string in JSON.
type Text string

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return []byte(t), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = ""
		return nil
	}
	*t = Text(b)
	return nil
}

// Blob is one value that is not a record of fields: a chunk of a revision or
// the JSON result of a task. Its bytes are stored as they are.
type Blob []byte

// Wrote implements Value. A blob carries no write id; it is written once,
// under a key of its own, in the Txn of a record that does.
func (b Blob) Wrote() WriteID { return "" }

// Input is what a run was started with, written once.
type Input struct {
	Schema int               `json:"schema"`
	Run    RunID             `json:"run"`
	Params map[string]string `json:"params,omitempty"`
	Write  WriteID           `json:"write"`
}

// Wrote implements Value.
func (i Input) Wrote() WriteID { return i.Write }

// Clear is an operator's word that tasks are to run again. Rows of the tasks
// that were created before this key no longer count for the task's state.
type Clear struct {
	Schema int       `json:"schema"`
	Run    RunID     `json:"run"`
	Seq    int       `json:"seq"`
	Tasks  []TaskID  `json:"tasks"` // the closure, written out
	By     string    `json:"by"`
	Why    string    `json:"why,omitempty"`
	At     time.Time `json:"at"`
	// Rev is the create revision of the key as it first stood; zero while the
	// key still has it (see Attempt.Fence).
	Rev   int64   `json:"rev,omitempty"`
	Write WriteID `json:"write"`
}

// Wrote implements Value.
func (c Clear) Wrote() WriteID { return c.Write }

// Unproven marks an attempt that ended without proof that its process is dead.
// While it stands no token is written for that task.
type Unproven struct {
	Schema   int        `json:"schema"`
	Run      RunID      `json:"run"`
	Task     TaskID     `json:"task"`
	Instance Instance   `json:"instance,omitempty"`
	Attempt  int        `json:"attempt"`
	Worker   WorkerName `json:"worker"`
	Session  SessionID  `json:"session"`
	Fenced   bool       `json:"fenced,omitempty"`
	TTL      Duration   `json:"ttl,omitzero"`
	Since    time.Time  `json:"since"`
	Write    WriteID    `json:"write"`
}

// Wrote implements Value.
func (u Unproven) Wrote() WriteID { return u.Write }

// Holder is one occupied place of a concurrency key: exact, since it is put
// and deleted in the Txns of the row that it belongs to.
type Holder struct {
	Schema  int    `json:"schema"`
	Holder  string `json:"holder"` // the concurrency key
	Slot    int    `json:"slot"`
	Attempt Ref    `json:"attempt"`
	// Write is that of the row's Txn.
	Write WriteID `json:"write"`
}

// Wrote implements Value.
func (h Holder) Wrote() WriteID { return h.Write }

// PoolLimit is the width of a pool.
type PoolLimit struct {
	Schema int       `json:"schema"`
	Pool   Pool      `json:"pool"`
	Slots  int       `json:"slots"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	Write  WriteID   `json:"write"`
}

// Wrote implements Value.
func (p PoolLimit) Wrote() WriteID { return p.Write }

// Backfill is an order to run a workflow for a range of logical dates. It
// outlives its runs, so that retention never makes it create one again.
type Backfill struct {
	Schema   int          `json:"schema"`
	Backfill string       `json:"backfill"`
	Workflow WorkflowName `json:"workflow"`
	From     time.Time    `json:"from"`
	To       time.Time    `json:"to"`
	Cursor   time.Time    `json:"cursor,omitzero"`
	Round    int          `json:"round,omitempty"`
	Paused   *Hold        `json:"paused,omitempty"`
	By       string       `json:"by,omitempty"`
	Write    WriteID      `json:"write"`
}

// Wrote implements Value.
func (b Backfill) Wrote() WriteID { return b.Write }

// Signal is an event from outside that attempts of kind wait wait for.
type Signal struct {
	Schema int       `json:"schema"`
	Signal string    `json:"signal"`
	Run    RunID     `json:"run,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	Value  Text      `json:"value,omitempty"`
	Write  WriteID   `json:"write"`
}

// Wrote implements Value.
func (s Signal) Wrote() WriteID { return s.Write }

// Compaction is the leader's note of the history that it let go, so that no
// two leaders compact at odds.
type Compaction struct {
	Schema int       `json:"schema"`
	Rev    int64     `json:"rev"` // history before it is gone
	At     time.Time `json:"at"`
	Write  WriteID   `json:"write"`
}

// Wrote implements Value.
func (c Compaction) Wrote() WriteID { return c.Write }
