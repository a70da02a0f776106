package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// file writes a file into a directory of the test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestApplySendsFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	c := (&cluster{applied: &writv1.ApplyWorkflowResponse{Name: "hello", Revision: 2, Changed: true}}).serve(t)
	path := file(t, "hello.yaml", "name: hello\n")
	require.Equal(t, said{0, "hello revision 2 applied\n", ""}, c.writ(t, "apply", path, "--by", "bob"))
	asked := request[*writv1.ApplyWorkflowRequest](t, c)
	require.Equal(t, "bob", asked.GetBy())
	require.Equal(t, path, asked.GetFile().GetName())
	require.Equal(t, "name: hello\n", string(asked.GetFile().GetContent()))

	c = (&cluster{applied: &writv1.ApplyWorkflowResponse{Name: "hello", Revision: 2}}).serve(t)
	got := run(t, t.Context(), terminal{}, map[string]string{"WRIT_SERVER": c.address}, "name: x\n", "apply", "-")
	require.Equal(t, said{0, "hello revision 2 unchanged\n", ""}, got)
	require.Equal(t, "name: x\n", string(request[*writv1.ApplyWorkflowRequest](t, c).GetFile().GetContent()))
	require.Equal(t, "writ", request[*writv1.ApplyWorkflowRequest](t, c).GetBy())
}

func TestProblemsAreTheServersOneALine(t *testing.T) {
	t.Parallel()
	refusal, err := status.New(codes.InvalidArgument, "2 problems").WithDetails(
		&writv1.Problem{File: "a.yaml", Line: 3, Column: 7, Field: "tasks.a.needs", Text: "unknown task b", Hint: "did you mean c?"},
		&writv1.Problem{File: "a.yaml", Text: "no name"},
	)
	require.NoError(t, err)
	c := (&cluster{err: refusal.Err()}).serve(t)
	path := file(t, "a.yaml", "tasks: {}\n")
	got := c.writ(t, "apply", path, path)
	require.Equal(t, 2, got.code)
	require.Empty(t, got.stdout)
	problems := "a.yaml:3:7: tasks.a.needs: unknown task b\n  hint: did you mean c?\na.yaml: no name\n"
	require.Equal(t, problems+problems+"writ: 2 files were refused, nothing of them is stored\n", got.stderr)
	require.Equal(t, problems, c.writ(t, "run", "start", "a").stderr)
}

func TestValidateNeedsNoServer(t *testing.T) {
	t.Parallel()
	good := file(t, "good.yaml", "name: hello\ntasks:\n  say: {run: echo hello}\n")
	bad := file(t, "bad.yaml", "name: hello\ntasks:\n  say: {run: echo hello, neds: [x]}\n")
	got := run(t, t.Context(), terminal{}, nil, "", "validate", good)
	require.Equal(t, said{0, good + ": workflow hello with 1 task is valid\n", ""}, got)

	got = run(t, t.Context(), terminal{}, nil, "", "validate", bad, good)
	require.Equal(t, 2, got.code)
	require.Equal(t, good+": workflow hello with 1 task is valid\n", got.stdout)
	require.Contains(t, got.stderr, bad+":3:26: tasks.say.neds: unknown field")
	require.Contains(t, got.stderr, "  hint: ")

	got = run(t, t.Context(), terminal{}, nil, "name: [", "validate", "-", "--json")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stdout, `"file":"stdin"`)
	require.Empty(t, got.stderr)
}

func TestTheSchemaIsJSON(t *testing.T) {
	t.Parallel()
	got := run(t, t.Context(), terminal{}, nil, "", "schema")
	require.Zero(t, got.code)
	require.True(t, json.Valid([]byte(got.stdout)))
}

func TestTheExampleIsValid(t *testing.T) {
	t.Parallel()
	got := run(t, t.Context(), terminal{}, nil, "", "validate", "../../examples/census/census.yaml")
	require.Equal(t, said{0, "../../examples/census/census.yaml: workflow census with 14 tasks is valid\n", ""}, got)
}
