package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/store"
)

func TestErrorsOfATxnProveWhatETCDmdSays(t *testing.T) {
	t.Parallel()
	for class, errs := range map[batch.Class][]error{
		batch.Answered: {nil},
		batch.Busy:     {rpctypes.ErrTooManyRequests, rpctypes.ErrNoLeader, rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCNotSupportedForLearner},
		batch.Refused: {
			rpctypes.ErrTooManyOps, rpctypes.ErrDuplicateKey, rpctypes.ErrRequestTooLarge, rpctypes.ErrLeaseNotFound, rpctypes.ErrPermissionDenied,
			rpctypes.ErrGRPCTooManyOps, status.Error(codes.ResourceExhausted, "grpc: trying to send message larger than max"),
		},
		batch.Lost: {
			rpctypes.ErrTimeout, rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrNoSpace,
			rpctypes.ErrGRPCNoSpace, context.DeadlineExceeded, context.Canceled, status.Error(codes.DeadlineExceeded, ""),
			status.Error(codes.Internal, ""), status.Error(codes.Unavailable, "connection reset"), errors.New("anything else"),
		},
	} {
		for _, err := range errs {
			require.Equal(t, class, store.Classify(err), "%v", err)
			if err != nil {
				require.Equal(t, class, store.Classify(fmt.Errorf("wrapped: %w", err)), "wrapped %v", err)
			}
		}
	}
}
