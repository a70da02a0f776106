package session

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-sched/writ/internal/record"
)

// Hello is what a session says of itself when it opens a stream.
type Hello struct {
	Worker  record.WorkerName
	Session record.SessionID
	Stream  int64
	// Predecessor is the session before it of the same state directory.
	Predecessor record.SessionID
	// Attested says that every process of the sessions before it is dead.
	Attested bool
	// Unsettled counts the results of earlier sessions that it has to deliver.
	Unsettled int
	Slots     int
	Queues    []record.Queue
	Labels    map[string]string
	Handlers  []string
	Processes bool
	Host      string
	Protocol  int
	Draining  bool
}

// Known is what the store holds about the name of a worker.
type Known struct {
	// Live are the worker keys of the name, Sessions its session records.
	Live     []Seen[record.Worker]
	Sessions []Seen[record.Session]
}

func (k Known) live(s record.SessionID) (Seen[record.Worker], bool) {
	i := slices.IndexFunc(k.Live, func(w Seen[record.Worker]) bool { return w.Record.Session == s })
	if i < 0 {
		return Seen[record.Worker]{}, false
	}
	return k.Live[i], true
}

func (k Known) session(s record.SessionID) Seen[record.Session] {
	for _, seen := range k.Sessions {
		if seen.Record.Session == s {
			return seen
		}
	}
	return Seen[record.Session]{}
}

// Offer is what the gateway adds to a registration.
type Offer struct {
	Replica record.ReplicaID
	// Lease is fresh where the session has no key; it is 0 where it has.
	Lease int64
	TTL   time.Duration
	At    time.Time
	Write record.WriteID
}

// Code says in one word why a Hello is refused.
type Code string

// The codes.
const (
	NameTaken  Code = "name_taken" // another session of the name lives
	Superseded Code = "superseded" // a later stream or session took over
)

// Refusal says why a session may not speak.
type Refusal struct {
	Code Code
	Why  string
	// RetryAfter is when it may be otherwise; zero means never.
	RetryAfter time.Duration
}

// NeedsLease says that the session has no key, so that Register needs a lease.
func NeedsLease(h Hello, k Known) bool {
	_, alive := k.live(h.Session)
	return !alive
}

// Register makes the change that lets a session's stream count: its key, on
// its lease, and its record with the stream's number. A worker name has one
// live session; a new one takes over at once only where it is the next of the
// same state directory and attests that all of its predecessor's processes are
// dead. Earlier sessions of the directory get the attestation with it.
func Register(h Hello, k Known, o Offer) (record.Change, *Refusal, error) {
	own := k.session(h.Session)
	if own.Rev != 0 && (own.Record.Successor != "" || own.Record.Stream >= h.Stream) {
		return record.Change{}, &Refusal{Code: Superseded, Why: "a later stream or session of worker " + string(h.Worker) + " took over"}, nil
	}
	sessionKey := record.SessionKey(h.Worker, h.Session)
	expect := []record.Expect{record.At(sessionKey, own.Rev)}
	put := []record.Put{{Key: sessionKey, Value: record.Session{
		Schema: record.Schema, Worker: h.Worker, Session: h.Session, Stream: h.Stream, Replica: o.Replica, Host: h.Host,
		Predecessor: h.Predecessor, Write: o.Write,
	}}}
	var remove []record.Delete
	live, alive := k.live(h.Session)
	switch {
	case alive:
		key := record.WorkerKey(h.Worker, h.Session)
		expect = append(expect, record.At(key, live.Rev))
		if h.Draining && live.Record.Draining == nil { // its Drain was lost with an earlier stream
			next := live.Record
			next.Draining, next.Write = &record.Hold{By: "session/" + string(h.Session), At: o.At}, o.Write
			put = append(put, record.Put{Key: key, Value: next, Lease: next.Lease})
		}
	default:
		taken := slices.DeleteFunc(slices.Clone(k.Live), func(w Seen[record.Worker]) bool { return w.Record.Session == h.Session })
		guard, gone, refusal := vacate(h, taken, o.TTL)
		if refusal != nil {
			return record.Change{}, refusal, nil
		}
		expect, remove = append(expect, guard...), gone
		put = append(put, record.Put{Key: record.WorkerKey(h.Worker, h.Session), Value: h.worker(o), Lease: o.Lease})
		for _, earlier := range k.earlier(h) {
			next := earlier.Record
			next.Successor, next.Write = h.Session, o.Write
			next.Settled = next.Settled || h.Unsettled == 0
			if h.Attested && next.Attested == nil {
				next.Attested = &record.Mark{By: "session/" + string(h.Session), At: o.At}
			}
			key := record.SessionKey(h.Worker, earlier.Record.Session)
			expect = append(expect, record.At(key, earlier.Rev))
			put = append(put, record.Put{Key: key, Value: next})
		}
	}
	c, err := record.NewChange(record.RuleRegister, o.Write, expect, put, remove...)
	return c, nil, err
}

// vacate makes the name free: no other session lives, or the one that does is
// the predecessor, attested dead.
func vacate(h Hello, taken []Seen[record.Worker], ttl time.Duration) ([]record.Expect, []record.Delete, *Refusal) {
	switch {
	case len(taken) == 0:
		return []record.Expect{record.Empty(record.SessionsOf(h.Worker))}, nil, nil
	case len(taken) == 1 && h.Attested && follows(h.Session, taken[0].Record.Session):
		key := record.WorkerKey(h.Worker, taken[0].Record.Session)
		return []record.Expect{record.At(key, taken[0].Rev), record.Absent(record.WorkerKey(h.Worker, h.Session))},
			[]record.Delete{record.Remove(key)}, nil
	default:
		other := taken[0].Record
		return nil, nil, &Refusal{
			Code: NameTaken, RetryAfter: ttl,
			Why: "worker " + string(h.Worker) + " lives on " + cmp.Or(other.Host, "another host") + " as session " + string(other.Session) +
				"; two workers never share a name (hint: another --name, or wait until it is gone)",
		}
	}
}

// maxEarlier bounds the earlier sessions that one registration writes about.
const maxEarlier = 16

// earlier returns the records of the directory's earlier sessions that still
// have something to be told, newest first.
func (k Known) earlier(h Hello) []Seen[record.Session] {
	if h.Predecessor == "" {
		return nil
	}
	var list []Seen[record.Session]
	for _, s := range k.Sessions {
		if follows(h.Session, s.Record.Session) && (s.Record.Attested == nil || !s.Record.Settled) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b Seen[record.Session]) int {
		_, m := split(a.Record.Session)
		_, n := split(b.Record.Session)
		return cmp.Compare(n, m)
	})
	return list[:min(len(list), maxEarlier)]
}

// follows says that s is a later session of the directory of earlier.
func follows(s, earlier record.SessionID) bool {
	dir, n := split(s)
	other, m := split(earlier)
	return dir != "" && dir == other && n > m
}

// split parts a session id into its directory and its number there.
func split(s record.SessionID) (dir string, n int) {
	dir, count, ok := strings.Cut(string(s), "-")
	n, err := strconv.Atoi(count)
	if !ok || err != nil {
		return "", 0
	}
	return dir, n
}

func (h Hello) worker(o Offer) record.Worker {
	w := record.Worker{
		Schema: record.Schema, Worker: h.Worker, Session: h.Session, Lease: o.Lease, TTL: record.Duration(o.TTL), Slots: h.Slots,
		Queues: h.Queues, Labels: h.Labels, Handlers: h.Handlers, Processes: h.Processes, Host: h.Host, Protocol: h.Protocol,
		RegisteredAt: o.At, Write: o.Write,
	}
	if h.Draining {
		w.Draining = &record.Hold{By: "session/" + string(h.Session), At: o.At}
	}
	return w
}

// Drain makes the change by which a session takes no new attempts; ok is false
// where it drains already. The key keeps its lease.
func Drain(p Peer, live Seen[record.Worker], why string, at time.Time, id record.WriteID) (c record.Change, ok bool, err error) {
	if live.Rev == 0 || live.Record.Draining != nil {
		return record.Change{}, false, nil
	}
	next := live.Record
	next.Draining, next.Write = &record.Hold{By: "session/" + string(p.Session), At: at, Why: why}, id
	c, err = record.NewChange(record.RuleRegister, id, []record.Expect{record.At(p.key(), live.Rev)},
		[]record.Put{{Key: p.key(), Value: next, Lease: next.Lease}})
	return c, true, err
}

// Settle makes the change that says that all results which earlier sessions of
// the directory left were answered; ok is false where nobody waits for it.
func Settle(p Peer, k Known, id record.WriteID) (c record.Change, ok bool, err error) {
	var expect []record.Expect
	var put []record.Put
	for _, s := range k.Sessions {
		if s.Record.Successor != p.Session || s.Record.Settled {
			continue
		}
		next := s.Record
		next.Settled, next.Write = true, id
		key := record.SessionKey(p.Worker, s.Record.Session)
		expect, put = append(expect, record.At(key, s.Rev)), append(put, record.Put{Key: key, Value: next})
	}
	if len(put) == 0 {
		return record.Change{}, false, nil
	}
	c, err = record.NewChange(record.RuleRegister, id, expect, put)
	return c, true, err
}
