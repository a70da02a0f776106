package record

import "time"

// Family is a kind of record, and the part of the keyspace where it stands.
type Family string

// The families, with the parts of Key that name a record of each. Package
// keyspace turns them into key strings.
const (
	FamilyMeta     Family = "meta"        // one record
	FamilyElection Family = "election"    // N: the lease of a candidate
	FamilyRun      Family = "runs"        // Run
	FamilyClear    Family = "clears"      // Run, N: sequence
	FamilyAttempt  Family = "attempts"    // Run, Task, Instance, N: attempt
	FamilyWorker   Family = "workers"     // Name, Session; leased
	FamilySession  Family = "sessions"    // Name: worker, Session
	FamilyReplica  Family = "replicas"    // Name; leased
	FamilyWorkflow Family = "workflows"   // Name
	FamilyUnproven Family = "unproven"    // Run, Task, Instance, N: attempt
	FamilyHolder   Family = "holders"     // Name: concurrency key, N: slot
	FamilyPool     Family = "pools"       // Name
	FamilyBackfill Family = "backfills"   // Name
	FamilySignal   Family = "signals"     // Run (may be empty), Name
	FamilyRevision Family = "revisions"   // Name: workflow, N: revision
	FamilyChunk    Family = "chunks"      // Name: workflow, N: revision, Part: chunk
	FamilyInput    Family = "inputs"      // Run
	FamilyResult   Family = "results"     // Run, Task, Instance, N: attempt
	FamilyEnded    Family = "ended"       // Run
	FamilyPage     Family = "pages"       // Run, Part: page
	FamilyIndex    Family = "index"       // Hour, Run
	FamilyCompact  Family = "compactions" // one record: what the leader compacted last
)

// Families lists every family.
func Families() []Family {
	return []Family{
		FamilyMeta, FamilyElection, FamilyRun, FamilyClear, FamilyAttempt, FamilyWorker, FamilySession, FamilyReplica,
		FamilyWorkflow, FamilyUnproven, FamilyHolder, FamilyPool, FamilyBackfill, FamilySignal, FamilyRevision,
		FamilyChunk, FamilyInput, FamilyResult, FamilyEnded, FamilyPage, FamilyIndex, FamilyCompact,
	}
}

// Active says that the family stands below active/, the only watched prefix.
func (f Family) Active() bool {
	switch f {
	case FamilyRun, FamilyClear, FamilyAttempt, FamilyWorker, FamilySession, FamilyReplica, FamilyWorkflow,
		FamilyUnproven, FamilyHolder, FamilyPool, FamilyBackfill, FamilySignal:
		return true
	default:
		return false
	}
}

// Key names one record. Which fields count depends on Family; the others are
// zero, so that two keys of the same record are equal values.
type Key struct {
	Family   Family
	Run      RunID
	Task     TaskID
	Instance Instance
	Name     string
	Session  SessionID
	N        int64
	Part     int
	Hour     int64 // hours since 1970 in UTC
}

// MetaKey names the meta record.
func MetaKey() Key { return Key{Family: FamilyMeta} }

// CompactKey names the record of the last compaction.
func CompactKey() Key { return Key{Family: FamilyCompact} }

// ElectionKey names the key of the candidate with that lease.
func ElectionKey(lease int64) Key { return Key{Family: FamilyElection, N: lease} }

// RunKey names the record of an active run.
func RunKey(r RunID) Key { return Key{Family: FamilyRun, Run: r} }

// ClearKey names the seq-th clear of a run.
func ClearKey(r RunID, seq int) Key { return Key{Family: FamilyClear, Run: r, N: int64(seq)} }

// AttemptKey names an attempt row.
func AttemptKey(r Ref) Key { return refKey(FamilyAttempt, r) }

// UnprovenKey names the mark of an attempt whose death is not proven.
func UnprovenKey(r Ref) Key { return refKey(FamilyUnproven, r) }

// ResultKey names the JSON result of an attempt.
func ResultKey(r Ref) Key { return refKey(FamilyResult, r) }

func refKey(f Family, r Ref) Key {
	return Key{Family: f, Run: r.Run, Task: r.Task, Instance: r.Instance, N: int64(r.N)}
}

// WorkerKey names the leased liveness of a session.
func WorkerKey(w WorkerName, s SessionID) Key {
	return Key{Family: FamilyWorker, Name: string(w), Session: s}
}

// SessionKey names the unleased memory of a session.
func SessionKey(w WorkerName, s SessionID) Key {
	return Key{Family: FamilySession, Name: string(w), Session: s}
}

// ReplicaKey names the address of a replica.
func ReplicaKey(r ReplicaID) Key { return Key{Family: FamilyReplica, Name: string(r)} }

// WorkflowKey names the pointer to a workflow's current revision.
func WorkflowKey(w WorkflowName) Key { return Key{Family: FamilyWorkflow, Name: string(w)} }

// HolderKey names one place of a concurrency key.
func HolderKey(name string, slot int) Key {
	return Key{Family: FamilyHolder, Name: name, N: int64(slot)}
}

// PoolKey names the width of a pool.
func PoolKey(p Pool) Key { return Key{Family: FamilyPool, Name: string(p)} }

// BackfillKey names a backfill.
func BackfillKey(name string) Key { return Key{Family: FamilyBackfill, Name: name} }

// SignalKey names a signal of one run or, with an empty run, of the cluster.
func SignalKey(r RunID, name string) Key { return Key{Family: FamilySignal, Run: r, Name: name} }

// RevisionKey names the head of a revision.
func RevisionKey(w WorkflowName, n int) Key {
	return Key{Family: FamilyRevision, Name: string(w), N: int64(n)}
}

// ChunkKey names a chunk of a revision, counted from 1.
func ChunkKey(w WorkflowName, n, chunk int) Key {
	return Key{Family: FamilyChunk, Name: string(w), N: int64(n), Part: chunk}
}

// InputKey names the parameters of a run.
func InputKey(r RunID) Key { return Key{Family: FamilyInput, Run: r} }

// EndedKey names the head of an ended run's document.
func EndedKey(r RunID) Key { return Key{Family: FamilyEnded, Run: r} }

// PageKey names a page of an ended run's document, counted from 1.
func PageKey(r RunID, page int) Key { return Key{Family: FamilyPage, Run: r, Part: page} }

// IndexKey names the line of a run that ended at that time.
func IndexKey(endedAt time.Time, r RunID) Key {
	return Key{Family: FamilyIndex, Hour: endedAt.Unix() / 3600, Run: r}
}

// Range names all records of a family that agree with it in every field that
// is set: all of the family, all of a run, all of one task, all of a worker.
// Fields are set from the left, in the order of the family's comment.
type Range struct {
	Family   Family
	Run      RunID
	Task     TaskID
	Instance Instance // counts only where Task is set: empty means the task itself, not its instances
	Name     string
	N        int64 // of FamilyChunk only: one revision
}

// AllOf is every record of a family.
func AllOf(f Family) Range { return Range{Family: f} }

// AttemptsOf is every attempt row of a run.
func AttemptsOf(r RunID) Range { return Range{Family: FamilyAttempt, Run: r} }

// UnprovenOf is every unproven death of one task or instance.
func UnprovenOf(t TaskRef) Range {
	return Range{Family: FamilyUnproven, Run: t.Run, Task: t.Task, Instance: t.Instance}
}

// OfRun is every record of a family that belongs to a run.
func OfRun(f Family, r RunID) Range { return Range{Family: f, Run: r} }

// SessionsOf is every living session of a worker.
func SessionsOf(w WorkerName) Range { return Range{Family: FamilyWorker, Name: string(w)} }

// Has says whether k lies in the range.
func (r Range) Has(k Key) bool {
	switch {
	case r.Family != k.Family,
		r.Run != "" && r.Run != k.Run,
		r.Task != "" && (r.Task != k.Task || r.Instance != k.Instance),
		r.Name != "" && r.Name != k.Name,
		r.N != 0 && r.N != k.N:
		return false
	default:
		return true
	}
}

// Meets says whether some key can lie in both ranges.
func (r Range) Meets(o Range) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	switch {
	case r.Family != o.Family,
		differ(string(r.Run), string(o.Run)),
		differ(string(r.Task), string(o.Task)),
		r.Task != "" && o.Task != "" && r.Instance != o.Instance,
		differ(r.Name, o.Name),
		r.N != 0 && o.N != 0 && r.N != o.N:
		return false
	default:
		return true
	}
}
