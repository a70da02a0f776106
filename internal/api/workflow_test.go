package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/writ-sched/writ/internal/api"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store/storetest"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func file(text string) *writv1.ApplyWorkflowRequest {
	return &writv1.ApplyWorkflowRequest{Source: &writv1.ApplyWorkflowRequest_File{File: &writv1.File{Name: "census.yaml", Content: []byte(text)}}}
}

func TestApplyMakesARevisionOnlyWhereSomethingChanged(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first, err := w.workflows.ApplyWorkflow(t.Context(), file("name: census\ntasks:\n  list:\n    run: ls\n"))
	require.NoError(t, err)
	require.True(t, proto.Equal(&writv1.ApplyWorkflowResponse{Name: "census", Revision: 1, Changed: true}, first))
	// The same workflow in the other form is the same.
	same := w.apply(&writv1.Workflow{Name: "census", Tasks: []*writv1.Task{{Id: "list", Run: "ls"}}})
	require.True(t, proto.Equal(&writv1.ApplyWorkflowResponse{Name: "census", Revision: 1}, same))
	next := w.apply(census())
	require.True(t, proto.Equal(&writv1.ApplyWorkflowResponse{Name: "census", Revision: 2, Changed: true}, next))

	now, err := w.workflows.GetWorkflow(t.Context(), &writv1.GetWorkflowRequest{Name: "census"})
	require.NoError(t, err)
	require.True(t, proto.Equal(census(), now.GetWorkflow()))
	require.EqualValues(t, 2, now.GetRevision())
	require.Equal(t, "person/ada", now.GetCurrent().GetBy())
	require.EqualValues(t, 3, now.GetCurrent().GetTasks())
	old, err := w.workflows.GetWorkflow(t.Context(), &writv1.GetWorkflowRequest{Name: "census", Revision: 1})
	require.NoError(t, err)
	require.EqualValues(t, 1, old.GetRevision())
	require.Len(t, old.GetWorkflow().GetTasks(), 1)
	require.EqualValues(t, 2, old.GetCurrent().GetRevision())

	for _, m := range []*writv1.GetWorkflowRequest{{Name: "census", Revision: 3}, {Name: "nothing"}} {
		_, err = w.workflows.GetWorkflow(t.Context(), m)
		require.Equal(t, codes.NotFound, status.Code(err))
	}
	for _, m := range []*writv1.GetWorkflowRequest{{Name: "No Name"}, {Name: "census", Revision: -1}} {
		_, err = w.workflows.GetWorkflow(t.Context(), m)
		require.Equal(t, codes.InvalidArgument, status.Code(err))
	}
}

func TestApplyOfABadFileNamesItsLinesAndStoresNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	bad := "name: census\ntasks:\n  list:\n    run: ls\n    needs: [lst]\n    speed: 3\n"
	_, err := w.workflows.ApplyWorkflow(t.Context(), file(bad))
	st := status.Convert(err)
	require.Equal(t, codes.InvalidArgument, st.Code())
	p := st.Details()[0].(*writv1.Problem)
	require.Equal(t, "census.yaml:6", fmt.Sprintf("%s:%d", p.GetFile(), p.GetLine()))
	told, err := w.workflows.ValidateWorkflow(t.Context(), &writv1.ValidateWorkflowRequest{
		Source: &writv1.ValidateWorkflowRequest_File{File: file(bad).GetFile()},
	})
	require.NoError(t, err)
	require.True(t, proto.Equal(p, told.GetProblems()[0]))
	stored, err := w.Get(t.Context(), record.WorkflowKey("census"))
	require.NoError(t, err)
	require.Zero(t, stored.ModRev)

	_, err = w.workflows.ApplyWorkflow(t.Context(), &writv1.ApplyWorkflowRequest{})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = w.workflows.ValidateWorkflow(t.Context(), &writv1.ValidateWorkflowRequest{})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = w.workflows.ApplyWorkflow(t.Context(), &writv1.ApplyWorkflowRequest{
		Source: &writv1.ApplyWorkflowRequest_Workflow{Workflow: census()}, By: strings.Repeat("a", 101),
	})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	good, err := w.workflows.ValidateWorkflow(t.Context(), &writv1.ValidateWorkflowRequest{
		Source: &writv1.ValidateWorkflowRequest_Workflow{Workflow: census()},
	})
	require.NoError(t, err)
	require.True(t, proto.Equal(&writv1.ValidateWorkflowResponse{Name: "census", Tasks: 3}, good))
}

// large is a workflow whose spec takes several chunks.
func large(mark string) *writv1.Workflow {
	m := &writv1.Workflow{Name: "large"}
	for i := range 8 {
		m.Tasks = append(m.Tasks, &writv1.Task{Id: fmt.Sprintf("t%d", i), Run: "echo " + mark + strings.Repeat("x", api.MaxChunk/3)})
	}
	return m
}

func TestLargeWorkflowIsStoredInChunks(t *testing.T) {
	t.Parallel()
	w := setup(t)
	// A chunk that somebody left who is gone: its number is passed over.
	w.Seed(record.ChunkKey("large", 1, 2), record.Blob("of another spec"), 0)
	require.EqualValues(t, 2, w.apply(large("a")).GetRevision())
	head, err := w.Get(t.Context(), record.RevisionKey("large", 2))
	require.NoError(t, err)
	require.Greater(t, head.Value.(record.Revision).Chunks, 1)
	require.Empty(t, head.Value.(record.Revision).Spec)
	now, err := w.workflows.GetWorkflow(t.Context(), &writv1.GetWorkflowRequest{Name: "large"})
	require.NoError(t, err)
	require.True(t, proto.Equal(large("a"), now.GetWorkflow()))
	require.False(t, w.apply(large("a")).GetChanged())
	require.EqualValues(t, 3, w.apply(large("b")).GetRevision())
}

func TestApplyGoesOnWhereAnswersAreLost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Inject(storetest.LostReply, 2)
	require.True(t, w.apply(census()).GetChanged())
	require.False(t, w.apply(census()).GetChanged())
	require.EqualValues(t, 1, w.apply(census()).GetRevision())
}

func TestManyWhoApplyAtOnceMakeOneRevisionEach(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const people = 6
	revisions := make([]int32, people)
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() {
			m := census()
			m.Description = fmt.Sprint("of person ", i)
			answer, err := w.workflows.ApplyWorkflow(t.Context(), &writv1.ApplyWorkflowRequest{Source: &writv1.ApplyWorkflowRequest_Workflow{Workflow: m}})
			if err == nil && answer.GetChanged() {
				revisions[i] = answer.GetRevision()
			}
		})
	}
	all.Wait()
	require.ElementsMatch(t, []int32{1, 2, 3, 4, 5, 6}, revisions)
}

func TestWorkflowsAreListedByNameInPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, name := range []string{"c", "a", "e", "b", "d"} {
		m := census()
		m.Name = name
		w.apply(m)
	}
	var names []string
	m := &writv1.ListWorkflowsRequest{PageSize: 2}
	for pages := 1; ; pages++ {
		page, err := w.workflows.ListWorkflows(t.Context(), m)
		require.NoError(t, err)
		for _, one := range page.GetWorkflows() {
			names = append(names, one.GetName())
			require.EqualValues(t, 3, one.GetTasks())
			require.Equal(t, "counts", one.GetDescription())
		}
		if m.PageToken = page.GetNextPageToken(); m.GetPageToken() == "" {
			require.Equal(t, 3, pages)
			break
		}
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, names)
	for _, m := range []*writv1.ListWorkflowsRequest{{PageSize: -1}, {PageToken: "§"}, {PageToken: "eA"}} {
		_, err := w.workflows.ListWorkflows(t.Context(), m)
		require.Equal(t, codes.InvalidArgument, status.Code(err))
	}
}

func TestSilentStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Down(true)
	defer w.Down(false)
	_, err := w.workflows.GetWorkflow(t.Context(), &writv1.GetWorkflowRequest{Name: "census"})
	require.Equal(t, codes.Unavailable, status.Code(err))
}
