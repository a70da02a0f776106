package audit

import (
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/record"
)

// core are the fields of a row that can be compared; the texts of times are
// taken since two values of one instant may differ.
type core struct {
	schema                     int
	ref                        record.Ref
	kind                       record.Kind
	queue                      record.Queue
	pool                       record.Pool
	idempotent                 bool
	onLost                     record.OnLost
	failures, losses, abandons int
	notBefore                  int64
	token                      record.Token
	worker                     record.WorkerName
	session                    record.SessionID
	ttl                        record.Duration
	state                      record.AttemptState
	enteredAt                  int64
	unproven                   bool
	cause                      record.Cause
	resultBytes                int
	refused                    string
	code                       int
	signal                     string
}

// changed names a part in which two rows differ, beside their fence; it is
// empty where they are the same.
func changed(x, y record.Attempt) string {
	switch {
	case coreOf(x) != coreOf(y):
		return "a field"
	case !slices.Equal(x.Keys, y.Keys):
		return "keys"
	case !slices.EqualFunc(x.Transitions, y.Transitions, sameTransition):
		return "transitions"
	default:
		return ""
	}
}

func coreOf(a record.Attempt) core {
	c := core{
		schema: a.Schema, ref: a.Ref(), kind: a.Kind, queue: a.Queue, pool: a.Pool, idempotent: a.Idempotent, onLost: a.OnLost,
		failures: a.Failures, losses: a.Losses, abandons: a.Abandons, notBefore: instant(a.NotBefore), token: a.Token, worker: a.Worker,
		session: a.Session, ttl: a.TTL, state: a.State, enteredAt: instant(a.EnteredAt), unproven: a.Unproven, cause: a.Cause,
		resultBytes: a.ResultBytes,
	}
	if a.Refused != nil {
		c.refused = a.Refused.By + a.Refused.At.UTC().String()
	}
	if a.Exit != nil {
		c.code, c.signal = a.Exit.Code+1, a.Exit.Signal
	}
	return c
}

// instant is a time as a number; the zero time is 0.
func instant(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// rewritten names a field of a row that changed though no transition may
// change it; it is empty where there is none.
func rewritten(b, w record.Attempt) string {
	switch {
	case b.Kind != w.Kind:
		return "the kind"
	case b.Queue != w.Queue, b.Pool != w.Pool, !slices.Equal(b.Keys, w.Keys):
		return "the queue, pool or keys"
	case b.Idempotent != w.Idempotent, b.OnLost != w.OnLost:
		return "idempotent or on_lost"
	case b.Failures != w.Failures, b.Losses != w.Losses, b.Abandons != w.Abandons:
		return "a count"
	case b.Fence != w.Fence:
		return "the fence"
	case !b.NotBefore.Equal(w.NotBefore):
		return "not_before"
	case b.Token != "" && (b.Token != w.Token || b.Worker != w.Worker || b.Session != w.Session):
		return "token, worker or session"
	case b.TTL != 0 && b.TTL != w.TTL:
		return "the TTL"
	case b.Refused != nil && w.Refused == nil:
		return "the mark refused"
	default:
		return ""
	}
}

func sameTransition(x, y record.Transition) bool {
	return x.At.Equal(y.At) && x.State == y.State && x.Rule == y.Rule && x.By == y.By && x.Term == y.Term && x.Write == y.Write
}
