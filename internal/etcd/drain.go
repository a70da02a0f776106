package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// drainStreams ends every open stream when stop ends. etcd itself waits 7 s for
// watches and lease streams, which never end by themselves. The clients are told
// that this server stopped, which makes them resume elsewhere; any other code
// would break their watches for good.
func drainStreams(stop context.Context) grpc.ServerOption {
	return grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(stop, cancel)()
		err := handler(srv, &drainedStream{ServerStream: stream, ctx: ctx})
		if stop.Err() != nil {
			return rpctypes.ErrGRPCStopped
		}
		return err
	})
}

// drainedStream is a stream whose context also ends with the member. The field
// is how grpc hands a context to a stream's handler.
type drainedStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // grpc asks a stream for its context
}

// Context returns the context that ends with the stream or with the member.
func (s *drainedStream) Context() context.Context { return s.ctx }
