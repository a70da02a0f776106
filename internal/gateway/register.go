package gateway

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
)

// writeID draws a write id.
func writeID() record.WriteID {
	b := make([]byte, 9)
	_, _ = rand.Read(b) // it never fails, see crypto/rand
	return record.WriteID(strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)))
}

// registerTries bounds the conflicts of one registration; each means that
// somebody else wrote about the same worker in between.
const registerTries = 8

// ttl is how long a session lives that asks for want.
func (g *Gateway) ttl(want time.Duration) time.Duration {
	if want <= 0 {
		return g.config.TTL
	}
	return min(max(want, 2*time.Second), 10*g.config.TTL)
}

// registered is a session whose stream counts.
type registered struct {
	peer  session.Peer
	lease int64
}

// register makes a stream count. A refusal is an answer, not an error.
func (g *Gateway) register(ctx context.Context, h session.Hello, want time.Duration) (registered, *session.Refusal, error) {
	var fresh int64 // a lease that no key is attached to yet
	defer func() {
		if fresh != 0 {
			_ = g.leases.Revoke(context.WithoutCancel(ctx), fresh) // it expires by itself where this fails
		}
	}()
	for range registerTries {
		known, err := g.known(ctx, h.Worker)
		if err != nil {
			return registered{}, nil, err
		}
		offer := session.Offer{Replica: g.config.Replica, TTL: g.ttl(want), At: time.Now().UTC(), Write: writeID()}
		if session.NeedsLease(h, known) {
			if fresh, offer.TTL, err = g.leases.Grant(ctx, offer.TTL); err != nil {
				return registered{}, nil, fmt.Errorf("grant a lease: %w", err)
			}
			offer.Lease = fresh
		}
		change, refusal, err := session.Register(h, known, offer)
		if err != nil || refusal != nil {
			return registered{}, refusal, err
		}
		outcome, err := g.store.Commit(ctx, change)
		switch {
		case err != nil:
			return registered{}, nil, err
		case outcome.Verdict == record.Unknown:
			return registered{}, nil, status.Error(codes.Unavailable, "etcd does not answer")
		case outcome.Verdict == record.Committed:
			fresh = 0
			reg, ok, err := g.readBack(ctx, h)
			if err != nil || ok {
				return reg, nil, err
			}
		default:
			if fresh != 0 {
				_ = g.leases.Revoke(context.WithoutCancel(ctx), fresh) // it expires by itself where this fails
				fresh = 0
			}
		}
	}
	return registered{}, nil, status.Errorf(codes.Unavailable, "worker %s is being registered elsewhere at the same time", h.Worker)
}

// readBack reads what a registration left; ok is false where it was overtaken.
func (g *Gateway) readBack(ctx context.Context, h session.Hello) (reg registered, ok bool, err error) {
	mine, err := g.store.Get(ctx, record.SessionKey(h.Worker, h.Session))
	if err != nil {
		return reg, false, err
	}
	key, err := g.store.Get(ctx, record.WorkerKey(h.Worker, h.Session))
	if err != nil {
		return reg, false, err
	}
	s, isSession := mine.Value.(record.Session)
	w, isWorker := key.Value.(record.Worker)
	if !isSession || !isWorker || s.Stream != h.Stream || s.Replica != g.config.Replica {
		return reg, false, nil
	}
	return registered{
		peer:  session.Peer{Worker: h.Worker, Session: h.Session, Rev: mine.ModRev, TTL: w.TTL.Std()},
		lease: w.Lease,
	}, true, nil
}

// maxKnown bounds the records that one worker's name may have.
const maxKnown = 1000

// known reads everything about a worker's name.
func (g *Gateway) known(ctx context.Context, w record.WorkerName) (session.Known, error) {
	var k session.Known
	live, err := g.store.List(ctx, record.SessionsOf(w), record.Key{}, maxKnown)
	if err != nil {
		return k, fmt.Errorf("read the sessions of worker %s: %w", w, err)
	}
	for _, s := range live {
		if v, ok := s.Value.(record.Worker); ok {
			k.Live = append(k.Live, session.Seen[record.Worker]{Record: v, Rev: s.ModRev})
		}
	}
	kept, err := g.store.List(ctx, record.Range{Family: record.FamilySession, Name: string(w)}, record.Key{}, maxKnown)
	if err != nil {
		return k, fmt.Errorf("read the sessions of worker %s: %w", w, err)
	}
	for _, s := range kept {
		if v, ok := s.Value.(record.Session); ok {
			k.Sessions = append(k.Sessions, session.Seen[record.Session]{Record: v, Rev: s.ModRev})
		}
	}
	return k, nil
}
