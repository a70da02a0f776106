package specfile_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/specfile"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run with -update where this is meant")
}

func read(tb testing.TB, path string) []byte {
	tb.Helper()
	src, err := os.ReadFile(path)
	require.NoError(tb, err)
	return src
}

func files(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := map[string][]byte{}
	for _, path := range paths {
		all[path] = read(t, path)
	}
	return all
}

// decode wants a good file.
func decode(t *testing.T, src string) *spec.Workflow {
	t.Helper()
	w, err := specfile.Decode("w.yaml", []byte(src))
	require.NoError(t, err)
	return w
}

// refuse wants a bad one, and returns what was said line by line.
func refuse(t *testing.T, src string) []string {
	t.Helper()
	w, err := specfile.Decode("w.yaml", []byte(src))
	require.Nil(t, w)
	var invalid *specfile.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "w.yaml", invalid.File)
	require.NotEmpty(t, invalid.Problems)
	return strings.Split(err.Error(), "\n")
}

func TestGoodFilesGiveTheirWorkflow(t *testing.T) {
	t.Parallel()
	for path, src := range files(t, "testdata/*.good.yaml") {
		w, err := specfile.Decode(path, src)
		require.NoError(t, err)
		text, err := spec.Encode(w)
		require.NoError(t, err)
		var pretty bytes.Buffer
		require.NoError(t, json.Indent(&pretty, text, "", "  "))
		golden(t, strings.TrimSuffix(path, ".yaml")+".json", pretty.String()+"\n")
		back, err := spec.Parse(text)
		require.NoError(t, err)
		require.Equal(t, w, back)
	}
}

func TestBadFilesAreBlamedAtTheRightLine(t *testing.T) {
	t.Parallel()
	for path, src := range files(t, "testdata/*.bad.yaml") {
		_, err := specfile.Decode(filepath.Base(path), src)
		require.Error(t, err, path)
		golden(t, strings.TrimSuffix(path, ".yaml")+".txt", err.Error()+"\n")
	}
}

func TestExamplesAreWell(t *testing.T) {
	t.Parallel()
	for path, src := range files(t, "../../examples/*/*.yaml") {
		_, err := specfile.Decode(path, src)
		require.NoError(t, err)
	}
}

// manual returns the yaml blocks of the manual's page, by the line that they
// begin at.
func manual(t *testing.T) map[string][]byte {
	t.Helper()
	text := read(t, "../../docs/manual/workflow-file.md")
	blocks, at := map[string][]byte{}, ""
	for i, line := range strings.SplitAfter(string(text), "\n") {
		switch {
		case at == "" && strings.HasPrefix(line, "```yaml"):
			at = fmt.Sprintf("workflow-file.md, block at line %d", i+1)
			blocks[at] = nil
		case at != "" && strings.HasPrefix(line, "```"):
			at = ""
		case at != "":
			blocks[at] = append(blocks[at], line...)
		}
	}
	require.Greater(t, len(blocks), 5)
	return blocks
}

func TestTheManualsExamplesAreWell(t *testing.T) {
	t.Parallel()
	for name, src := range manual(t) {
		_, err := specfile.Decode(name, src)
		require.NoError(t, err)
	}
}

func TestTasksKeepTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	w := decode(t, "name: order\nparams: {z: {default: a}, a: {default: z}}\ntasks:\n  c: {run: x}\n  a: {run: x}\n  b: {run: x}\n")
	require.Equal(t, []string{"z", "a"}, []string{w.Params[0].Name, w.Params[1].Name})
	var ids []string
	for _, task := range w.Tasks {
		ids = append(ids, string(task.ID))
	}
	require.Equal(t, []string{"c", "a", "b"}, ids)
}

func TestDefaultsMayStandBelowTheTasks(t *testing.T) {
	t.Parallel()
	w := decode(t, "name: below\ntasks: {a: {run: x}}\ndefaults: {queue: big, env: {A: b}}\n")
	require.Equal(t, "big", string(w.Tasks[0].Queue))
	require.Equal(t, map[string]string{"A": "b"}, w.Tasks[0].Env)
}

func TestABadDefaultIsBlamedOnceAndWhereItStands(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"w.yaml:2:21: defaults.env.1: \"1\" is not the name of a variable, in task a (hint: letters, digits and _ make a name, and no digit begins it)"},
		refuse(t, "name: bad\ndefaults: {env: {1: b}}\ntasks: {a: {run: x}, b: {run: x}, c: {run: x}}\n"))
}

func TestOnlyTasksThatCanTakeADefaultTakeIt(t *testing.T) {
	t.Parallel()
	w := decode(t, `
name: fits
defaults: {on_lost: fail, env: {A: b}, cwd: /srv, skip_exit_code: 3, no_retry_exit_codes: [4]}
tasks:
  again: {run: x, idempotent: true}
  go: {handler: h}
`)
	require.Empty(t, w.Tasks[0].OnLost)
	require.Equal(t, "fail", string(w.Tasks[1].OnLost))
	require.Nil(t, w.Tasks[1].Env)
	require.Empty(t, w.Tasks[1].Cwd)
	require.Nil(t, w.Tasks[1].SkipExitCode)
	require.Nil(t, w.Tasks[1].NoRetryExitCodes)
}

func TestAProblemIsOneLine(t *testing.T) {
	t.Parallel()
	p := specfile.Problem{File: "a.yaml", Line: 3, Column: 7, Field: "tasks.a.run", Text: "is empty", Hint: "leave it out"}
	require.Equal(t, "a.yaml:3:7: tasks.a.run: is empty (hint: leave it out)", p.String())
	require.Equal(t, "a.yaml: is empty", specfile.Problem{File: "a.yaml", Text: "is empty"}.String())
}

func TestAFileWrongAThousandTimesIsToldAHundred(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("name: many\ntasks:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  t%d: {colour: red}\n", i)
	}
	said := refuse(t, b.String())
	require.Len(t, said, spec.MaxProblems+1)
	require.True(t, strings.HasPrefix(said[99], "w.yaml:102:9: tasks.t99.colour: unknown field"), said[99])
	require.Equal(t, "w.yaml: has more problems than the 100 that are shown", said[100])
}
