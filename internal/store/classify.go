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
	// None of them proposed it: a member under pressure, one that a call with
	// WithRequireLeader reached without its leader, one that is a learner.
	for _, busy := range []error{rpctypes.ErrGRPCRequestTooManyRequests, rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCNotSupportedForLearner} {
		if says(err, busy) {
			return batch.Busy
		}
	}
	// The apply layer writes, and complains after.
	if says(err, rpctypes.ErrGRPCNoSpace) {
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

// says tells whether err is an error of etcd, as the client hands it out or as it
// came over the wire.
func says(err, etcd error) bool {
	var wire interface{ GRPCStatus() *status.Status }
	return errors.Is(err, rpctypes.Error(etcd)) ||
		errors.As(err, &wire) && wire.GRPCStatus().Message() == status.Convert(etcd).Message()
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
func leaseGone(err error) bool { return err != nil && says(err, rpctypes.ErrGRPCLeaseNotFound) }
