package record_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
)

// stageWord is a stage as the manual writes it.
func stageWord(s record.Stage) string {
	switch s {
	case record.StageNone:
		return "∅"
	case record.StageWaiting:
		return "`queued` (waiting)"
	case record.StageIntent:
		return "`queued` (token)"
	default:
		return "`" + string(s) + "`"
	}
}

func attemptRows() string {
	var b strings.Builder
	b.WriteString("| from | to | who | kinds | guard, in the same transaction | why |\n|---|---|---|---|---|---|\n")
	for _, s := range record.AttemptTable() {
		var kinds, guards []string
		for _, k := range s.Kinds {
			kinds = append(kinds, string(k))
		}
		for _, g := range s.Guards {
			guards = append(guards, string(g))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", stageWord(s.From), stageWord(s.To), s.By,
			strings.Join(kinds, ", "), strings.Join(guards, "; "), s.Why)
	}
	return b.String()
}

func runWord(s record.RunState, p record.Phase) string {
	switch {
	case s == record.RunNone:
		return "∅"
	case p == record.PhaseNone:
		return "`" + string(s) + "`"
	default:
		return fmt.Sprintf("`%s`, phase `%s`", s, p)
	}
}

func runRows() string {
	var b strings.Builder
	b.WriteString("| from | to | who | why |\n|---|---|---|---|\n")
	for _, s := range record.RunTable() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", runWord(s.From, s.FromPhase), runWord(s.To, s.ToPhase), s.By, s.Why)
	}
	return b.String()
}

// causeRows lists the causes with the comments of their constants: the code is
// the only list of them.
func causeRows(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "state.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString("| cause | meaning | counts as |\n|---|---|---|\n")
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if typ, named := spec.Type.(*ast.Ident); !named || typ.Name != "CauseCode" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		code := record.CauseCode(text)
		if code == record.CauseNone {
			return true
		}
		counts := ""
		switch {
		case code.UserFailure():
			counts = "a failure, spends a retry"
		case code.Loss():
			counts = "a loss"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", code, strings.TrimSpace(spec.Comment.Text()), counts)
		return true
	})
	return b.String()
}

// between returns what stands between the marks of a generated part.
func between(page, part string) (before, body, after string, ok bool) {
	begin, end := "<!-- table: "+part+" -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(page, begin)
	if !ok {
		return "", "", "", false
	}
	body, after, ok = strings.Cut(rest, end)
	return before + begin, body, end + after, ok
}

func TestTheManualShowsTheTablesAsTheyAre(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "manual", "states.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	page := string(text)
	for _, part := range []struct{ name, rows string }{
		{"attempts", attemptRows()},
		{"runs", runRows()},
		{"causes", causeRows(t)},
	} {
		before, body, after, ok := between(page, part.name)
		require.True(t, ok, "docs/manual/states.md has no table %s", part.name)
		if *update {
			page = before + "\n" + part.rows + "\n" + after
			continue
		}
		require.Equal(t, "\n"+part.rows+"\n", body, "run the test with -update where the change is meant")
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
	}
}

func TestTheManualNamesEveryState(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "manual", "states.md"))
	require.NoError(t, err)
	for _, s := range record.AttemptStates() {
		require.Contains(t, string(text), "| `"+string(s)+"` |", "the table of states")
	}
	for _, s := range record.RunStates() {
		require.Contains(t, string(text), "| `"+string(s)+"` |", "the table of states")
	}
}
