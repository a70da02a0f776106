package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// full is a cluster that has an answer to everything.
func full() *cluster {
	return &cluster{
		workflow: workflow(),
		workflows: []*writv1.ListWorkflowsResponse{
			{Workflows: []*writv1.WorkflowInfo{{Name: "backup", Revision: 1, UpdatedAt: at(86400), Tasks: 1, Paused: &writv1.Hold{By: "ada"}}}, NextPageToken: "1"},
			{Workflows: []*writv1.WorkflowInfo{{Name: "census", Revision: 12, UpdatedAt: at(60), By: "ada", Tasks: 15, ActiveRuns: 1, Description: "Counts the\nsource tree"}}},
		},
		run: &writv1.GetRunResponse{Run: running(), Tasks: tasks(), Params: map[string]string{"root": "/usr", "pace": "1"}, Revision: 100},
		runs: []*writv1.ListRunsResponse{
			{Runs: []*writv1.Run{running()}, NextPageToken: "1"},
			{Runs: []*writv1.Run{{
				Run: "census.k-0", Revision: 2, State: writv1.RunState_RUN_STATE_FAILED, CreatedAt: at(7200), StartedAt: at(7200), EndedAt: at(3000), Trigger: "manual",
				Tasks: map[string]int32{"success": 3, "failed": 1, "upstream_failed": 2},
			}}},
		},
		cancelled: &writv1.CancelRunResponse{Run: &writv1.Run{Run: "census.k-1", State: writv1.RunState_RUN_STATE_CANCELLING}},
		explained: &writv1.ExplainRunResponse{Run: running(), Revision: 100, Reasons: []*writv1.Reason{
			{Task: "count-1", Code: "not_before", Text: "its second attempt is due at 12:00:02Z", Since: at(1), Record: "active/attempts/census.k-1/count-1/000002", Revision: 98},
			{Code: "tasks", Text: "6 tasks of it are not terminal"},
		}},
		status: clusterStatus(),
		audit:  audit(),
	}
}

// reads are the commands that only read, by the names of their golden files.
func reads() map[string][]string {
	return map[string][]string{
		"list":          {"list"},
		"get":           {"get", "census", "--revision", "3"},
		"run-list":      {"run", "list"},
		"run-show":      {"run", "show", "census.k-1"},
		"run-attempts":  {"run", "show", "census.k-1", "--attempts"},
		"explain":       {"explain", "census.k-1"},
		"status":        {"status"},
		"workers":       {"workers"},
		"audit":         {"audit"},
		"run-cancelled": {"run", "cancel", "census.k-1", "--why", "wrong tree"},
	}
}

func TestReadsAnswerInTables(t *testing.T) {
	t.Parallel()
	c := full().serve(t)
	for name, args := range reads() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.writ(t, args...)
			require.Empty(t, got.stderr)
			require.Zero(t, got.code)
			golden(t, name+".golden", got.stdout)
			for line := range strings.Lines(got.stdout) {
				require.Equal(t, strings.TrimRight(line, " \n")+"\n", line, "no line ends in spaces")
			}
		})
	}
}

func TestReadsAnswerInJSONWithTheFieldNamesOfTheProtocol(t *testing.T) {
	t.Parallel()
	c := full().serve(t)
	for name, args := range reads() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.writ(t, append(args, "--json")...)
			require.Empty(t, got.stderr)
			require.Zero(t, got.code)
			require.True(t, json.Valid([]byte(got.stdout)))
			golden(t, name+".json", got.stdout)
		})
	}
}

func TestListsAreReadToTheirEndOrToTheLimit(t *testing.T) {
	t.Parallel()
	c := full().serve(t)
	got := c.writ(t, "run", "list", "census", "--limit", "1", "--state", "failed,running")
	require.Zero(t, got.code)
	require.NotContains(t, got.stdout, "census.k-0")
	require.Contains(t, got.stderr, "--limit")
	asked := request[*writv1.ListRunsRequest](t, c)
	require.Equal(t, "census", asked.GetWorkflow())
	require.Equal(t, int32(1), asked.GetPageSize())
	require.Equal(t, []writv1.RunState{writv1.RunState_RUN_STATE_FAILED, writv1.RunState_RUN_STATE_RUNNING}, asked.GetStates())
}

func TestNothingToListIsSaidBesideTheAnswer(t *testing.T) {
	t.Parallel()
	c := (&cluster{
		workflows: []*writv1.ListWorkflowsResponse{{}}, runs: []*writv1.ListRunsResponse{{}}, status: &writv1.GetStatusResponse{},
		explained: &writv1.ExplainRunResponse{Run: running()},
	}).serve(t)
	for _, args := range [][]string{{"list"}, {"run", "list"}, {"workers"}} {
		got := c.writ(t, args...)
		require.Zero(t, got.code)
		require.Empty(t, got.stdout)
		require.Contains(t, got.stderr, "no ")
	}
	require.Equal(t, "census.k-1 running: nothing waits\n", c.writ(t, "explain", "census.k-1").stdout)
}

func TestAnAuditWithViolationsEndsWithOne(t *testing.T) {
	t.Parallel()
	c := &cluster{audit: audit()}
	c.audit.Truncated = true
	c.audit.Violations = []*writv1.Violation{{Invariant: "I5", Revision: 77, Record: "active/attempts/a.1/t/000002", Text: "an attempt after a success"}}
	got := c.serve(t).writ(t, "audit", "a.1")
	require.Equal(t, 1, got.code)
	golden(t, "audit-violations.golden", got.stdout)
	require.Contains(t, got.stderr, "before revision 2")
	require.Equal(t, "a.1", request[*writv1.AuditRequest](t, c).GetRun())
}

func TestColoursAreForTerminalsOnly(t *testing.T) {
	t.Parallel()
	c := full().serve(t)
	vars := map[string]string{"WRIT_SERVER": c.address}
	require.Contains(t, run(t, t.Context(), terminal{80, 24}, vars, "", "workers").stdout, "\x1b[1mWORKER\x1b[0m")
	vars = map[string]string{"WRIT_SERVER": c.address, "NO_COLOR": "1"}
	require.NotContains(t, run(t, t.Context(), terminal{80, 24}, vars, "", "workers").stdout, "\x1b")
}

func TestRefusalsOfTheServerBecomeExitCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code]int{
		codes.NotFound: 2, codes.FailedPrecondition: 2, codes.InvalidArgument: 2, codes.Unavailable: 4, codes.Internal: 5, codes.ResourceExhausted: 5,
	} {
		c := (&cluster{err: status.Error(code, "run x.1: not so")}).serve(t)
		got := c.writ(t, "run", "show", "x.1")
		require.Equal(t, want, got.code, code.String())
		require.Contains(t, got.stderr, "run x.1: not so")
		require.NotContains(t, got.stderr, "rpc error")
		require.Empty(t, got.stdout)
	}
}

func TestAServerThatIsNotThereIsNamedWithAHint(t *testing.T) {
	t.Parallel()
	got := run(t, t.Context(), terminal{}, nil, "", "status", "--server", "127.0.0.1:1")
	require.Equal(t, 4, got.code)
	require.Contains(t, got.stderr, "no answer from 127.0.0.1:1")
	require.Contains(t, got.stderr, "hint: is a server running there?")
}

func TestOneOfSeveralServersIsEnough(t *testing.T) {
	t.Parallel()
	c := full().serve(t)
	got := run(t, t.Context(), terminal{}, nil, "", "workers", "--server", "127.0.0.1:1, "+c.address)
	require.Zero(t, got.code, got.stderr)
}

func TestWrongUsageEndsWithTwoAndAHint(t *testing.T) {
	t.Parallel()
	for text, args := range map[string][]string{
		"did you mean status?":               {"stats"},
		"did you mean start?":                {"run", "stat"},
		"unknown flag: --jsn":                {"list", "--jsn"},
		"writ get WORKFLOW":                  {"get"},
		`--param "pace": expected name=va`:   {"run", "start", "x", "--param", "pace"},
		`--state "done": expected queued, r`: {"run", "list", "--state", "done"},
		"--limit 0: expected at least 1":     {"run", "list", "--limit", "0"},
		`--server "x": expected host:port`:   {"list", "--server", "x"},
		"no such file":                       {"apply", "no-such.yaml"},
	} {
		got := run(t, t.Context(), terminal{}, nil, "", args...)
		require.Equal(t, 2, got.code, args)
		require.Contains(t, got.stderr, text)
		require.Empty(t, got.stdout)
	}
}

func TestVersionNamesTheProgram(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `^writ \S.*, go1\S+, \w+/\w+\n$`, run(t, t.Context(), terminal{}, nil, "", "version").stdout)
}
