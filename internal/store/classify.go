package store

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/batch"
)

// classify says what an error of a Txn proves. etcd never says that a Txn was
// given up: whatever is not a refusal by name may still be made.
func classify(err error) batch.Class {
	if err == nil {
		return batch.Answered
	}
	// Neither was proposed: the first by a member under pressure, the second by
	// one that a call with WithRequireLeader reached without its leader.
	if errors.Is(err, rpctypes.ErrTooManyRequests) || errors.Is(err, rpctypes.ErrNoLeader) {
		return batch.Busy
	}
	// The apply layer writes, and complains after.
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return batch.Lost
	}
	switch code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound, codes.PermissionDenied, codes.FailedPrecondition,
		codes.Unimplemented, codes.Unauthenticated:
		return batch.Refused
	case codes.ResourceExhausted:
		// gRPC's own: a message above its limit was not sent.
		return batch.Refused
	default:
		return batch.Lost
	}
}

// code is the gRPC code of an error as the client hands it out.
func code(err error) codes.Code {
	var known rpctypes.EtcdError
	switch {
	case errors.As(err, &known):
		return known.Code()
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	default:
		return status.Code(err)
	}
}

// leaseGone says that a put names a lease that is no more.
func leaseGone(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }
