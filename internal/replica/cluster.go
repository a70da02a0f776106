package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/writ-sched/writ/internal/api"
	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/gateway"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// cluster tells the api what is not in active/.
type cluster struct {
	*parts
	gateway *gateway.Gateway
	peers   *peers
}

// Admit implements api.Cluster.
func (c *cluster) Admit() error {
	if c.full.Load() {
		return fmt.Errorf("%w: more than %d %% of its quota is in use (hint: shorter retention, or a larger quota)", api.ErrFull, int(fullShare*100))
	}
	return nil
}

// statusLimit bounds the question to etcd's members.
const statusLimit = 3 * time.Second

// Status implements api.Cluster.
func (c *cluster) Status(ctx context.Context) (*writv1.GetStatusResponse, error) {
	answer := &writv1.GetStatusResponse{
		Cluster: c.config.Cluster, Replica: string(c.id), MirrorAge: durationpb.New(c.mirror.Age(time.Now())), Prevented: c.metrics.PreventedByRule(),
	}
	leader, _ := c.elector.Current()
	c.mirror.Read(func(v *view.Active) {
		for _, kept := range v.Replicas() {
			r := kept.Record
			m := &writv1.ReplicaStatus{Replica: string(r.Replica), Address: r.Address, Version: r.Version, Since: timestamppb.New(r.Since)}
			if leader.Replica == string(r.Replica) {
				m.Leader, m.Term = true, leader.Rev
			}
			answer.Replicas = append(answer.Replicas, m)
		}
	})
	ctx, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	members, err := c.clients.Members(ctx)
	if err != nil {
		answer.Members = []*writv1.MemberStatus{{Name: "etcd", Error: err.Error()}}
		return answer, nil
	}
	for _, m := range members {
		answer.Members = append(answer.Members, toMember(m))
	}
	return answer, nil
}

// Audit implements api.Cluster.
func (c *cluster) Audit(ctx context.Context, run string) (*writv1.AuditResponse, error) {
	found, err := auditor{store: c.store}.audit(ctx)
	if err != nil {
		return nil, err
	}
	answer := &writv1.AuditResponse{
		FromRevision: found.From, ToRevision: found.To, Events: int64(found.Summary.Events), Runs: int32(found.Summary.Runs),
		Attempts: int32(found.Summary.Attempts), Truncated: found.Truncated,
	}
	for _, v := range found.Violations {
		if run != "" && v.Key.Run != "" && string(v.Key.Run) != run {
			continue
		}
		answer.Violations = append(answer.Violations, &writv1.Violation{
			Invariant: v.Invariant, Revision: v.Rev, Record: keyText(v.Key), Text: v.Text,
		})
	}
	for _, r := range found.Reigns {
		answer.Leaders = append(answer.Leaders, &writv1.ReplicaStatus{
			Replica: strings.TrimPrefix(r.Who, "replica/"), Leader: true, Term: r.Term, Since: timestamppb.New(r.First),
		})
	}
	return answer, nil
}

// keyText names a record for people.
func keyText(k record.Key) string {
	parts := []string{string(k.Family)}
	for _, part := range []string{string(k.Run), k.Name, string(k.Session)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if k.Task != "" {
		parts = append(parts, record.TaskRef{Task: k.Task, Instance: k.Instance}.Name())
	}
	if k.N != 0 {
		parts = append(parts, fmt.Sprint(k.N))
	}
	return strings.Join(parts, "/")
}

// forwarded marks a request of a replica to its peer, which answers by itself
// or not at all.
const forwarded = "writ-forwarded"

// ReadLog implements api.Cluster: it asks the worker, or the replica that holds
// the worker's stream.
func (c *cluster) ReadLog(ctx context.Context, who view.SessionRef, name record.Ref, offset int64, limit int) (*writv1.LogChunk, error) {
	who = c.living(who)
	if c.gateway.Holds(who) {
		chunk, err := c.gateway.ReadLog(ctx, who, name, offset, limit)
		switch {
		case errors.Is(err, gateway.ErrNoLog):
			return nil, fmt.Errorf("%w: %w", api.ErrNoLog, err)
		case !errors.Is(err, gateway.ErrNotHeld):
			return chunk, err
		}
	}
	gone := fmt.Errorf("%w: worker %s keeps the log of %s and is not attending (hint: its files are in its state directory)", api.ErrNoWorker, who.Worker, name)
	if md, _ := metadata.FromIncomingContext(ctx); len(md.Get(forwarded)) > 0 {
		return nil, gone
	}
	address := c.holder(who)
	if address == "" {
		return nil, gone
	}
	return c.peers.readLog(ctx, address, name, offset)
}

// living is the session that keeps a worker's logs now: the one that is asked
// about or, where that is gone, the worker's living one of the same state
// directory.
func (c *cluster) living(who view.SessionRef) view.SessionRef {
	directory, _, _ := strings.Cut(string(who.Session), "-")
	c.mirror.Read(func(v *view.Active) {
		if _, lives := v.Worker(who); lives {
			return
		}
		for _, kept := range v.Workers() {
			w := kept.Record
			if w.Worker == who.Worker && strings.HasPrefix(string(w.Session), directory+"-") {
				who.Session = w.Session
			}
		}
	})
	return who
}

// holder is the address of the replica that holds a worker's stream, or empty.
func (c *cluster) holder(who view.SessionRef) string {
	address := ""
	c.mirror.Read(func(v *view.Active) {
		s, ok := v.Session(who)
		if _, lives := v.Worker(who); !ok || !lives {
			return
		}
		for _, r := range v.Replicas() {
			if r.Record.Replica == s.Record.Replica && r.Record.Replica != c.id {
				address = r.Record.Address
			}
		}
	})
	return address
}

// toMember writes how an etcd member is.
func toMember(m etcd.MemberStatus) *writv1.MemberStatus {
	out := &writv1.MemberStatus{Name: m.Name, Endpoints: m.ClientURLs, Leader: m.Leader, SizeBytes: m.DBSize, InUseBytes: m.DBInUse}
	if m.Err != nil {
		out.Error = m.Err.Error()
		return out
	}
	out.Version = m.Version.String()
	return out
}

// peers are connections to other replicas, made when they are needed.
type peers struct {
	mu    sync.Mutex // guards conns
	conns map[string]*grpc.ClientConn
}

func newPeers() *peers { return &peers{conns: map[string]*grpc.ClientConn{}} }

func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close() // nothing is left to be lost by it
	}
	clear(p.conns)
}

func (p *peers) conn(address string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.conns[address]; c != nil {
		return c, nil
	}
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	p.conns[address] = c
	return c, nil
}

// readLog reads a piece of a log from a peer.
func (p *peers) readLog(ctx context.Context, address string, name record.Ref, offset int64) (*writv1.LogChunk, error) {
	conn, err := p.conn(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, forwarded, "1"))
	defer cancel()
	stream, err := writv1.NewRunServiceClient(conn).ReadLog(ctx, &writv1.ReadLogRequest{
		Run: string(name.Run), Task: string(name.Task), Instance: string(name.Instance), Attempt: int32(name.N), Offset: offset,
	})
	if err != nil {
		return nil, err
	}
	m, err := stream.Recv()
	switch {
	case errors.Is(err, io.EOF):
		return &writv1.LogChunk{Offset: offset}, nil
	case status.Code(err) == codes.NotFound:
		return nil, fmt.Errorf("%w: %s", api.ErrNoLog, status.Convert(err).Message())
	case err != nil:
		return nil, err
	}
	return &writv1.LogChunk{Offset: m.GetOffset(), LeftOut: m.GetLeftOut(), Data: m.GetData(), Complete: m.GetComplete(), Note: m.GetNote()}, nil
}
