package record

import "time"

// Worker is the liveness of one session, the only record on the session's
// lease: it is there exactly as long as the lease lives.
type Worker struct {
	Schema  int        `json:"schema"`
	Worker  WorkerName `json:"worker"`
	Session SessionID  `json:"session"`
	// Lease is the etcd lease that carries this key, so that any replica can
	// adopt the session.
	Lease int64    `json:"lease"`
	TTL   Duration `json:"ttl"`
	// Slots is how many attempts the session takes at once.
	Slots  int               `json:"slots"`
	Queues []Queue           `json:"queues"`
	Labels map[string]string `json:"labels,omitempty"`
	// Handlers are the Go functions that the session offers; a task with a
	// handler goes only to a session that lists it.
	Handlers []string `json:"handlers,omitempty"`
	// Processes says that the session runs scripts and commands.
	Processes bool   `json:"processes,omitempty"`
	Host      string `json:"host,omitempty"`
	Protocol  int    `json:"protocol"`
	// Draining says that the session takes no new attempts.
	Draining     *Hold     `json:"draining,omitempty"`
	RegisteredAt time.Time `json:"registered_at"`
	Write        WriteID   `json:"write"`
}

// Wrote implements Value.
func (w Worker) Wrote() WriteID { return w.Write }

// Session is the unleased memory of a session. It is rewritten at every
// registration and whenever the stream moves, which voids every wait that
// began before; it goes when no row and no mark names the session any more.
type Session struct {
	Schema  int        `json:"schema"`
	Worker  WorkerName `json:"worker"`
	Session SessionID  `json:"session"`
	// Stream is the number of the stream whose words count; only a higher one
	// replaces it.
	Stream int64 `json:"stream"`
	// Replica holds that stream.
	Replica ReplicaID `json:"replica,omitempty"`
	Host    string    `json:"host,omitempty"`
	// Predecessor is the session of the same state directory before this one.
	Predecessor SessionID `json:"predecessor,omitempty"`
	// Successor is the session that replaced this one; results that this one
	// left on disk are delivered by it.
	Successor SessionID `json:"successor,omitempty"`
	// Settled is set on a predecessor once the successor has delivered all
	// results that were left on disk.
	Settled bool `json:"settled,omitempty"`
	// Attested says that the successor proved every process of this session
	// dead: it holds the state directory's lock and has ended what it found,
	// or the machine was booted since.
	Attested *Mark `json:"attested,omitempty"`
	// GoneAt is when the leader first saw the session's key gone; the write of
	// it is what a fence wait counts from.
	GoneAt time.Time `json:"gone_at,omitzero"`
	Write  WriteID   `json:"write"`
}

// Wrote implements Value.
func (s Session) Wrote() WriteID { return s.Write }

// Replica is the address of a scheduler process, on its election session's
// lease.
type Replica struct {
	Schema  int       `json:"schema"`
	Replica ReplicaID `json:"replica"`
	Address string    `json:"address"`
	Version string    `json:"version,omitempty"`
	Since   time.Time `json:"since"`
	Write   WriteID   `json:"write"`
}

// Wrote implements Value.
func (r Replica) Wrote() WriteID { return r.Write }
