package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/writ-sched/writ/internal/record"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// Handler executes one attempt of a task that names it. What it returns is
// encoded as JSON, at most 64 KiB, and is the task's result; nil is no result.
// ctx ends, with ErrCancelled or ErrStopped as its cause, when the attempt is
// to end.
type Handler func(ctx context.Context, t *Task) (any, error)

// Task is what a handler is told about its attempt.
type Task struct {
	Run      string
	Workflow string
	Task     string
	Instance string // of a fan-out, or empty
	Attempt  int    // from 1
	Token    string
	// Fence grows over the attempts of a task, for conditional writes of its own.
	Fence int64
	// LogicalDate is zero where the run has none.
	LogicalDate time.Time
	Params      map[string]string
	Input       json.RawMessage
	// Inputs are the attempts of direct upstream tasks that succeeded.
	Inputs []*writv1.AttemptRef
}

var (
	// ErrCancelled is the cause of a context whose attempt was cancelled.
	ErrCancelled = errors.New("the attempt was cancelled")
	// ErrStopped is the cause of a context whose worker stops.
	ErrStopped = errors.New("the worker stops")
	// ErrFenced is the cause of a context whose attempt must not outlive the
	// worker's own deadline.
	ErrFenced = errors.New("the worker's own deadline has struck")
	// ErrSkip ends the task as skipped where a handler returns it, wrapped or not.
	ErrSkip = errors.New("skipped")
	// ErrInUse means that another worker runs on the state directory.
	ErrInUse = errors.New("the state directory is in use")
)

// Skip is what a handler returns to end its task as skipped, and why.
func Skip(reason string) error { return fmt.Errorf("%w: %s", ErrSkip, reason) }

// RefusedError says that the server refused the worker for good.
type RefusedError struct {
	Code string // such as superseded
	Text string
}

// Error is what the server said.
func (e *RefusedError) Error() string { return fmt.Sprintf("refused (%s): %s", e.Code, e.Text) }

// Processes runs attempts that are scripts or commands. Each function may be
// called from any goroutine; only Run may take long.
type Processes struct {
	// Prepare is called once, with the state directory locked. It ends what an
	// earlier life left and returns how those attempts ended; only where it
	// succeeds are they attested dead.
	Prepare func(ctx context.Context) ([]*writv1.Finished, error)
	// Run executes one attempt to its end. The fence, where not zero, is the
	// reading of the boot-time clock by which nothing of it may live.
	Run func(ctx context.Context, a *writv1.Assign, fence time.Duration) *writv1.Finished
	// Extend moves the fence of everything that runs.
	Extend func(ctx context.Context, fence time.Duration)
	// Forget lets go of what was kept of an attempt whose report was answered.
	Forget func(token string)
	// ReadLog answers a question about a log.
	ReadLog func(ask *writv1.ServeLogsResponse) *writv1.LogChunk
	// Grace is told how long is between TERM and KILL.
	Grace func(grace time.Duration)
}

// Config describes a worker.
type Config struct {
	// Servers are host:port of replicas, or of what stands before them; they
	// are tried in turn.
	Servers []string
	// Credentials of the connection. Nil means none, for loopback and networks
	// that are safe.
	Credentials credentials.TransportCredentials
	// DialOptions are added to the connection's.
	DialOptions []grpc.DialOption
	// Name is the worker's over its restarts; two workers never share one.
	Name string
	// Slots is how many attempts run at once. Zero means 1.
	Slots int
	// Queues are served. Empty means "default".
	Queues []string
	Labels map[string]string
	// StateDir keeps identity and reports. Empty means that neither survives
	// the process.
	StateDir string
	// TTL asks for a session's time to live. Zero leaves it to the server.
	TTL time.Duration
	// Drain is how long attempts may go on when the worker stops.
	Drain time.Duration
	// Handlers by name.
	Handlers map[string]Handler
	// Processes may be nil.
	Processes *Processes
	// Logger may be nil.
	Logger *slog.Logger
}

// resolve fills in defaults and refuses what the server would refuse.
func (c Config) resolve() (Config, error) {
	if len(c.Servers) == 0 {
		return c, errors.New("no server is given (hint: 127.0.0.1:7400)")
	}
	if err := record.CheckName(c.Name, record.MaxName); err != nil {
		return c, fmt.Errorf("name: %w", err)
	}
	c.Slots = cmp.Or(c.Slots, 1)
	if c.Slots < 1 {
		return c, fmt.Errorf("slots %d: expected at least 1", c.Slots)
	}
	if len(c.Queues) == 0 {
		c.Queues = []string{"default"}
	}
	for _, q := range c.Queues {
		if err := record.CheckName(q, record.MaxName); err != nil {
			return c, fmt.Errorf("queue: %w", err)
		}
	}
	for name, h := range c.Handlers {
		if name == "" || h == nil {
			return c, fmt.Errorf("handler %q: expected a name and a function", name)
		}
	}
	if len(c.Handlers) == 0 && c.Processes == nil {
		return c, errors.New("neither handlers nor processes are given, so nothing could run")
	}
	if c.Drain < 0 || c.TTL < 0 {
		return c, errors.New("drain and time to live: expected zero or a positive time")
	}
	if c.Credentials == nil {
		c.Credentials = insecure.NewCredentials()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func host() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
