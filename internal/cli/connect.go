package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/backoff"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

const (
	// requestTime is how long a request may take where --timeout says nothing.
	requestTime = 15 * time.Second
	// auditTime is the same for an audit, which reads everything.
	auditTime = 10 * time.Minute
	// defaultServer is where a server listens that nobody told otherwise.
	defaultServer = "127.0.0.1:7400"
	// serverVariable names the server where --server does not.
	serverVariable = "WRIT_SERVER"
)

// servers is a connection to the cluster.
type servers struct {
	conn      *grpc.ClientConn
	workflows writv1.WorkflowServiceClient
	runs      writv1.RunServiceClient
	admin     writv1.AdminServiceClient
}

// close ends the connection; nothing is left to be lost by it.
func (s *servers) close() { _ = s.conn.Close() }

// asks gives a command the flags of those that ask a server.
func (a *app) asks(c *cobra.Command) {
	c.Flags().StringVar(&a.server, "server", "", fmt.Sprintf("host:port of any replica, or several with commas (default $%s, or %s)", serverVariable, defaultServer))
	c.Flags().DurationVar(&a.timeout, "timeout", 0, "give up after this time (default 15s for a request, never while following)")
}

// answers gives a command the flag of those that answer.
func (a *app) answers(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "answer in JSON, with the field names of the protocol")
}

// servers is where to ask.
func (a *app) servers() string {
	for _, s := range []string{a.server, a.env.Getenv(serverVariable)} {
		if s != "" {
			return s
		}
	}
	return defaultServer
}

// connect prepares a connection; it is made with the first request.
func (a *app) connect() (*servers, error) {
	a.asked = true
	state := resolver.State{}
	for _, address := range trimAll(strings.Split(a.servers(), ",")) {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, usage("--server %q: expected host:port (hint: %s)", address, defaultServer)
		}
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address})
	}
	if len(state.Addresses) == 0 {
		return nil, usage("--server %q: expected host:port (hint: %s)", a.servers(), defaultServer)
	}
	r := manual.NewBuilderWithScheme("writ")
	r.InitialState(state)
	conn, err := grpc.NewClient("writ:///servers", grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", a.servers(), err)
	}
	return &servers{
		conn:      conn,
		workflows: writv1.NewWorkflowServiceClient(conn),
		runs:      writv1.NewRunServiceClient(conn),
		admin:     writv1.NewAdminServiceClient(conn),
	}, nil
}

// trimAll drops white space around the parts of a list, and empty parts.
func trimAll(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// bound limits a command by --timeout, or else by the usual time; zero means
// no limit.
func (a *app) bound(ctx context.Context, usual time.Duration) (context.Context, context.CancelFunc) {
	limit := usual
	if a.timeout > 0 {
		limit = a.timeout
	}
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// lostLimit is for how long a broken stream is opened again, in vain, before
// it is given up.
const lostLimit = 60 * time.Second

// again opens a stream until it has ended well, was refused, or could not be
// had back for lostLimit. open says whether it brought anything.
func (a *app) again(ctx context.Context, open func() (brought bool, err error)) error {
	wait := backoff.New(backoff.Config{}, rand.Float64)
	var last time.Time // when the stream last brought something; zero: never
	for {
		brought, err := open()
		now := a.env.Now()
		if brought {
			wait.Reset()
			last = now
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case status.Code(err) != codes.Unavailable, last.IsZero(), now.Sub(last) > lostLimit:
			return err
		}
		select {
		case <-time.After(wait.Next()):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watch emits what is told of a run, over broken connections, until the run
// has ended.
func (a *app) watch(ctx context.Context, s *servers, run string, emit func(*writv1.WatchRunResponse) error) error {
	return a.again(ctx, func() (bool, error) {
		stream, err := s.runs.WatchRun(ctx, &writv1.WatchRunRequest{Run: run})
		if err != nil {
			return false, err
		}
		for brought := false; ; brought = true {
			m, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return brought, status.Error(codes.Unavailable, "the stream ended before the run")
			}
			if err != nil {
				return brought, err
			}
			if err := emit(m); err != nil {
				return true, err
			}
			if m.GetEnded() {
				return true, nil
			}
		}
	})
}

// readLog emits a log from the request's offset on. A followed one goes on
// over broken connections, behind the last byte that it got.
func (a *app) readLog(ctx context.Context, s *servers, req *writv1.ReadLogRequest, emit func(*writv1.ReadLogResponse) error) error {
	return a.again(ctx, func() (bool, error) {
		stream, err := s.runs.ReadLog(ctx, req)
		if err != nil {
			return false, err
		}
		for brought := false; ; brought = true {
			m, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return brought, nil
			}
			if err != nil {
				return brought && req.GetFollow(), err
			}
			req.Attempt, req.Offset = m.GetAttempt(), m.GetOffset()+int64(len(m.GetData()))
			if err := emit(m); err != nil {
				return true, err
			}
		}
	})
}
