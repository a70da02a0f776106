package api_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/writ-sched/writ/internal/record"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func TestStatusCountsWhatIsActive(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	w.Seed(record.SessionKey("w1", "s1"), record.Session{Schema: record.Schema, Worker: "w1", Session: "s1", Replica: "r2", Write: "sessionsession"}, 0)
	w.Seed(record.WorkerKey("w1", "s1"), record.Worker{
		Schema: record.Schema, Worker: "w1", Session: "s1", TTL: record.Duration(15 * time.Second), Slots: 4, Queues: []record.Queue{"default"},
		Processes: true, Host: "ada", RegisteredAt: now, Write: "workerworkerwork",
	}, 0)
	one, two := w.begin("one"), w.begin("two")
	w.loaded(two)
	w.row(one, "list", 1, record.Running)

	list, err := w.admin.ListWorkers(t.Context(), &writv1.ListWorkersRequest{})
	require.NoError(t, err)
	require.Len(t, list.GetWorkers(), 1)
	require.True(t, proto.Equal(&writv1.WorkerStatus{
		Worker: "w1", Session: "s1", Host: "ada", Slots: 4, Used: 1, Queues: []string{"default"}, Processes: true,
		RegisteredAt: timestamppb.New(now), Replica: "r2", Ttl: durationpb.New(15 * time.Second),
	}, list.GetWorkers()[0]), "%v", list)

	got, err := w.admin.GetStatus(t.Context(), &writv1.GetStatusRequest{})
	require.NoError(t, err)
	require.Equal(t, "r1", got.GetReplica())
	require.Equal(t, w.mirror.Rev(), got.GetRevision())
	require.Equal(t, []int32{2, 1, 1}, []int32{got.GetActiveRuns(), got.GetLiveAttempts(), got.GetReadyTasks()})
	require.Len(t, got.GetWorkers(), 1)

	w.cluster.set(func(o *outside) { o.err = errors.New("etcd is away") })
	_, err = w.admin.GetStatus(t.Context(), &writv1.GetStatusRequest{})
	require.Equal(t, codes.Unavailable, status.Code(err))
}

func TestAuditIsHandedOn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, run := range []string{"", "census.one"} {
		answer, err := w.admin.Audit(t.Context(), &writv1.AuditRequest{Run: run})
		require.NoError(t, err)
		require.EqualValues(t, 3, answer.GetEvents())
	}
	_, err := w.admin.Audit(t.Context(), &writv1.AuditRequest{Run: "census"})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Equal(t, []string{"", "census.one"}, w.cluster.audits)
}
