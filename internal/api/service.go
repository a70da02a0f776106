package api

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// MaxMessageBytes is the largest message that the server and its clients have
// to take, for grpc.MaxRecvMsgSize and grpc.MaxSendMsgSize: a workflow of
// spec.MaxBytes in either form, and a run with its attempts.
const MaxMessageBytes = 16 << 20

// Store makes changes and reads records, linearizably.
type Store interface {
	// Commit makes a change. One whose outcome is Unknown may be committed
	// again, byte for byte; the error means that it can never be made.
	Commit(ctx context.Context, c record.Change) (record.Outcome, error)
	// Get returns a Stored without a Value where the key is absent.
	Get(ctx context.Context, k record.Key) (record.Stored, error)
	// List reads up to limit records of a range behind a key, in key order.
	List(ctx context.Context, r record.Range, after record.Key, limit int) ([]record.Stored, error)
	// Spec reads one revision of a workflow.
	Spec(ctx context.Context, name record.WorkflowName, revision int) (*spec.Workflow, error)
}

// Mirror is the replica's copy of active/.
type Mirror interface {
	Read(f func(*view.Active))
	// Await returns once the view is complete up to rev.
	Await(ctx context.Context, rev int64) error
	// Feed begins with everything.
	Feed() Feed
}

// Feed gathers what was touched until it is asked; see mirror.Feed.
type Feed interface {
	Wake() <-chan struct{}
	Take() view.Touched
	Close()
}

// Cluster knows what stands in no record of active/.
type Cluster interface {
	// Admit says why no new run may be made now; the error wraps ErrFull.
	Admit() error
	// Status is complete but for the revision, the workers and what is active.
	Status(ctx context.Context) (*writv1.GetStatusResponse, error)
	// Audit checks the invariants over one run or, where it is empty, all.
	Audit(ctx context.Context, run string) (*writv1.AuditResponse, error)
	// ReadLog reads up to limit bytes of a log from the worker that captured
	// it, whichever replica holds its stream. The error wraps ErrNoWorker where
	// it cannot be asked, and ErrNoLog where it has no such log.
	ReadLog(ctx context.Context, who view.SessionRef, name record.Ref, offset int64, limit int) (*writv1.LogChunk, error)
}

// Config says whom the service speaks for.
type Config struct {
	Replica record.ReplicaID
	// Policy is that of the cluster; explain and status rest on it. Zero means
	// the defaults.
	Policy reconcile.Policy
	// KeyName is a key as etcdctl finds it; nil means a text without the prefix
	// of the cluster.
	KeyName func(record.Key) string
	// Holds says whether the leader holds losses and due times back; nil means
	// that it does not, or that nothing is known of it here.
	Holds func() (losses, due bool)
	// Logger may be nil.
	Logger *zap.Logger
}

// Service serves the three public services.
type Service struct {
	writv1.UnimplementedWorkflowServiceServer
	writv1.UnimplementedRunServiceServer
	writv1.UnimplementedAdminServiceServer

	config  Config
	store   Store
	mirror  Mirror
	cluster Cluster

	specs    summaries
	draining chan struct{} // closed by drain
	drain    func()
}

// New makes a service.
func New(config Config, store Store, mirror Mirror, cluster Cluster) *Service {
	if config.Policy == (reconcile.Policy{}) {
		config.Policy = reconcile.Defaults()
	}
	if config.KeyName == nil {
		config.KeyName = keyName
	}
	if config.Holds == nil {
		config.Holds = func() (bool, bool) { return false, false }
	}
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	draining := make(chan struct{})
	return &Service{
		config: config, store: store, mirror: mirror, cluster: cluster,
		specs:    summaries{kept: map[record.WorkflowName]summary{}},
		draining: draining, drain: sync.OnceFunc(func() { close(draining) }),
	}
}

// keyName names a record by its family and what tells it apart there.
func keyName(k record.Key) string {
	parts := []string{string(k.Family)}
	for _, part := range []string{string(k.Run), record.TaskRef{Task: k.Task, Instance: k.Instance}.Name(), k.Name, string(k.Session)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if k.N != 0 {
		parts = append(parts, strconv.FormatInt(k.N, 10))
	}
	return strings.Join(parts, "/")
}

// Register gives the service to a server.
func (s *Service) Register(server grpc.ServiceRegistrar) {
	writv1.RegisterWorkflowServiceServer(server, s)
	writv1.RegisterRunServiceServer(server, s)
	writv1.RegisterAdminServiceServer(server, s)
}

// Drain ends the streams with UNAVAILABLE, so that their clients open them at
// another replica; later ones end at once. Other requests go on.
func (s *Service) Drain() { s.drain() }
