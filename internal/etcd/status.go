package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// statusTimeout bounds the question to each member.
const statusTimeout = 2 * time.Second

// MemberStatus is one member of the cluster as an operator wants to see it.
type MemberStatus struct {
	// ID is etcd's number of the member.
	ID uint64
	// Name is empty for a member that was added and never started.
	Name string
	// ClientURLs and PeerURLs are as the member announced them.
	ClientURLs, PeerURLs []string
	// Version is the member's own; zero where Err is set.
	Version Version
	// Leader and Learner are the member's role in raft.
	Leader, Learner bool
	// DBSize is the size of the database file and DBInUse the part in use, in
	// bytes. Quota is the limit, and zero where the server does not tell (3.5).
	DBSize, DBInUse, Quota int64
	// Alarms holds etcd's names of raised alarms (NOSPACE, CORRUPT).
	Alarms []string
	// Err says why the member did not answer; it is nil where it did.
	Err error
}

// Members asks every member of the cluster how it is, those included that no
// endpoint names, ordered by name. Members that do not answer are part of the
// answer. It works without a leader as long as one endpoint answers.
func (c *Clients) Members(ctx context.Context) ([]MemberStatus, error) {
	listCtx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	list, err := c.Bulk.MemberList(listCtx, clientv3.WithSerializable())
	if err != nil {
		return nil, fmt.Errorf("list etcd members: %w", err)
	}
	members := make([]MemberStatus, len(list.Members))
	var asked sync.WaitGroup
	for i, m := range list.Members {
		members[i] = MemberStatus{ID: m.ID, Name: m.Name, ClientURLs: m.ClientURLs, PeerURLs: m.PeerURLs, Learner: m.IsLearner}
		asked.Go(func() { members[i].Err = c.ask(ctx, &members[i]) })
	}
	asked.Wait()
	slices.SortFunc(members, func(a, b MemberStatus) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return members, nil
}

// ask completes one member's line with what it says itself.
func (c *Clients) ask(ctx context.Context, m *MemberStatus) error {
	if len(m.ClientURLs) == 0 {
		return errors.New("member never started")
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	answer, err := c.Bulk.Status(ctx, m.ClientURLs[0])
	if err != nil {
		return fmt.Errorf("ask member %s at %s: %w", m.Name, m.ClientURLs[0], err)
	}
	if m.Version, err = ParseVersion(answer.Version); err != nil {
		return err
	}
	m.Leader = answer.Leader == m.ID
	m.Learner = answer.IsLearner
	m.DBSize, m.DBInUse, m.Quota = answer.DbSize, answer.DbSizeInUse, answer.DbSizeQuota
	m.Alarms = alarms(answer.Errors)
	return nil
}

// alarms picks the names of alarms out of a status answer's errors. Asking for
// the alarms themselves is a raft proposal, and would need a leader.
func alarms(lines []string) []string {
	var names []string
	for _, name := range []pb.AlarmType{pb.AlarmType_NOSPACE, pb.AlarmType_CORRUPT} {
		if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, name.String()) }) {
			names = append(names, name.String())
		}
	}
	return names
}
