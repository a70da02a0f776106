package arch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's directory, as a test of this package sees it.
const root = "../.."

// none fails with the findings, one on a line.
func none(t *testing.T, found []string) {
	t.Helper()
	slices.Sort(found)
	if len(found) > 0 {
		require.Fail(t, fmt.Sprintf("%d findings", len(found)), strings.Join(found, "\n"))
	}
}

// pkg is what `go list -json` tells of one package.
type pkg struct {
	ImportPath   string
	Name         string
	Dir          string
	Standard     bool
	Imports      []string
	Deps         []string
	TestGoFiles  []string
	XTestGoFiles []string
	Error        *struct{ Err string }
}

// short is the path below the module.
func (p pkg) short() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// below says that path is tree or lies under it.
func below(path, tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }

// std says that path is of the standard library: its first element has no dot
// (what the library itself vendors is listed below vendor/).
func std(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// list asks the Go tool for packages of the module.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e",
		"-json=ImportPath,Name,Dir,Standard,Imports,Deps,TestGoFiles,XTestGoFiles,Error", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		require.NoError(t, err, "go list: %s", exit.Stderr)
	}
	require.NoError(t, err)
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		require.NoError(t, err)
		if p.Error != nil {
			require.Fail(t, "go list "+p.ImportPath, p.Error.Err)
		}
		pkgs = append(pkgs, p)
	}
}

// expand replaces group names by their members and completes paths of ours.
func expand(may []string) []string {
	var out []string
	for _, m := range may {
		members, isGroup := groups()[m]
		if !isGroup {
			members = []string{m}
		}
		for _, path := range members {
			if ours := strings.HasPrefix(path, "internal/") || strings.HasPrefix(path, "pkg/"); ours {
				path = module + "/" + path
			}
			out = append(out, path)
		}
	}
	return out
}

// permits says that the room's list covers an import. Packages of ours are
// covered one by one, other modules with all below.
func (r room) permits(path string) bool {
	for _, m := range expand(r.may) {
		if m == "ANY" || m == path || !strings.HasPrefix(m, module) && below(path, m) {
			return true
		}
	}
	return false
}

// checkRoom compares the imports of one package with its entry.
func checkRoom(p pkg, table map[string]room) []string {
	r, known := table[p.short()]
	if !known {
		return []string{fmt.Sprintf("%s is not in the table of packages; a new one needs an entry with its reason (internal/arch/tables_test.go)", p.short())}
	}
	var found []string
	for _, path := range p.Imports {
		switch {
		case std(path):
			if !r.core || slices.Contains(pureStd(), path) || r.extraStd[path] != "" {
				continue
			}
			found = append(found, fmt.Sprintf("%s imports %s: CORE computes from its arguments alone and uses of the standard library %v", p.short(), path, pureStd()))
		case !r.permits(path):
			found = append(found, fmt.Sprintf("%s imports %s, it may import %v: %s", p.short(), strings.TrimPrefix(path, module+"/"), r.may, r.why))
		case !r.support && table[strings.TrimPrefix(path, module+"/")].support:
			found = append(found, fmt.Sprintf("%s imports %s: what exists for tests is linked by no production package", p.short(), path))
		}
	}
	return found
}

// checkFences applies the standing rules to one production package.
func checkFences(p pkg, all []fence) []string {
	var found []string
	for _, path := range p.Imports {
		for _, f := range all {
			if !below(path, f.path) || below(p.ImportPath, f.path) || slices.Contains(f.only, p.short()) || slices.Contains(f.but[p.short()], path) {
				continue
			}
			found = append(found, fmt.Sprintf("%s imports %s, only %v may: %s", p.short(), path, f.only, f.why))
		}
		if slices.Contains(engine(), p.short()) && slices.Contains(engine(), strings.TrimPrefix(path, module+"/")) {
			found = append(found, fmt.Sprintf("%s imports %s: the engine row knows each other through replica only", p.short(), path))
		}
	}
	return found
}

// checkReach applies the rules over everything that a package links.
func checkReach(p pkg, all []reach) []string {
	var found []string
	for _, r := range all {
		if !slices.ContainsFunc(r.from, func(from string) bool {
			return p.short() == from || strings.HasSuffix(from, "/") && strings.HasPrefix(p.short(), from)
		}) {
			continue
		}
		for _, dep := range p.Deps {
			within := func(tree string) bool { return below(dep, tree) }
			if slices.ContainsFunc(r.never, within) {
				found = append(found, fmt.Sprintf("%s links %s: %s", p.short(), dep, r.why))
			}
			if len(r.only) > 0 && !std(dep) && !slices.ContainsFunc(r.only, within) {
				found = append(found, fmt.Sprintf("%s links %s: %s", p.short(), dep, r.why))
			}
		}
	}
	return found
}

func TestEveryPackageImportsOnlyWhatItsRoomAllows(t *testing.T) {
	t.Parallel()
	table := rooms()
	var found []string
	for _, p := range list(t) {
		found = append(found, checkRoom(p, table)...)
	}
	none(t, found)
}

func TestStandingFencesHoldWhateverTheTableSays(t *testing.T) {
	t.Parallel()
	var found []string
	for _, p := range list(t) {
		if !rooms()[p.short()].support {
			found = append(found, checkFences(p, fences())...)
		}
	}
	none(t, found)
}

func TestNoPackageLinksWhatItsUsersMustNotCompile(t *testing.T) {
	t.Parallel()
	var found []string
	for _, p := range list(t) {
		found = append(found, checkReach(p, reaches())...)
	}
	none(t, found)
}

func TestTableHasNoCycleAndNamesOnlyRoomsOfItsOwn(t *testing.T) {
	t.Parallel()
	none(t, checkTable(rooms()))
}

// checkTable finds entries that name unknown rooms, and arrows in a circle.
func checkTable(table map[string]room) []string {
	var found []string
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(name string)
	visit = func(name string) {
		state[name] = visiting
		for _, path := range expand(table[name].may) {
			to, ours := strings.CutPrefix(path, module+"/")
			// A group may hold the package itself (explain is of CORE).
			if !ours || to == name {
				continue
			}
			if _, known := table[to]; !known {
				found = append(found, fmt.Sprintf("%s may import %s, which is no room", name, to))
				continue
			}
			if state[to] == visiting {
				found = append(found, fmt.Sprintf("%s and %s may import each other", name, to))
			}
			if state[to] == 0 {
				visit(to)
			}
		}
		state[name] = done
	}
	for name, r := range table {
		if r.why == "" {
			found = append(found, name+" has no reason")
		}
		if state[name] == 0 {
			visit(name)
		}
	}
	return found
}

func TestImportCheckersFindWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	imports := func(short string, paths ...string) pkg {
		for i, p := range paths {
			if strings.HasPrefix(p, "internal/") {
				paths[i] = module + "/" + p
			}
		}
		return pkg{ImportPath: module + "/" + short, Imports: paths, Deps: paths}
	}
	room := func(p pkg) []string { return checkRoom(p, rooms()) }
	fenced := func(p pkg) []string { return checkFences(p, fences()) }
	reached := func(p pkg) []string { return checkReach(p, reaches()) }

	for _, c := range []struct {
		check func(pkg) []string
		bad   pkg
		says  string
	}{
		{room, imports("internal/novel"), "not in the table"},
		{room, imports("internal/view", "sync"), "CORE computes from its arguments alone"},
		{room, imports("internal/view", "encoding/json"), "CORE computes from its arguments alone"},
		{room, imports("internal/leader", "internal/store"), "leader turns passes into commits"},
		{room, imports("internal/audit", "internal/reconcile"), "audit shares no rule code"},
		{room, imports("internal/spec", "internal/recordings"), "spec names records"},
		{room, imports("internal/keyspace", "github.com/stretchr/testify/require"), "keyspace names keys"},
		{fenced, imports("internal/api", "go.etcd.io/etcd/client/v3/concurrency"), "no guard stands on"},
		{fenced, imports("internal/replica", "go.etcd.io/etcd/server/v3/embed"), "second place that starts a member"},
		{fenced, imports("internal/leader", "google.golang.org/grpc"), "the wire belongs to its edges"},
		{fenced, imports("internal/store", "google.golang.org/grpc"), "the wire belongs to its edges"},
		{fenced, imports("internal/mirror", "internal/keyspace"), "could build one"},
		{fenced, imports("internal/api", "internal/gateway"), "the engine row"},
		{fenced, imports("internal/store", "github.com/stretchr/testify/require"), "reaches the users' binaries"},
		{reached, imports("pkg/worker", "go.uber.org/zap/zapcore"), "compile neither etcd nor zap"},
		{reached, imports("internal/keeper", "go.uber.org/zap"), "nothing else can hold it up"},
		{reached, imports("integration/checker", "internal/record"), "shares no code"},
	} {
		found := c.check(c.bad)
		require.Len(t, found, 1, "%s imports %v", c.bad.short(), c.bad.Imports)
		require.Contains(t, found[0], c.says)
	}

	for _, good := range []pkg{
		imports("internal/view", "slices", "internal/record"),
		imports("internal/record", "encoding/json"),
		imports("internal/store", "google.golang.org/grpc/codes", "go.etcd.io/etcd/client/v3"),
		imports("internal/keeper", "os", "golang.org/x/sys/unix"),
		imports("pkg/client", "google.golang.org/grpc/credentials"),
	} {
		require.Empty(t, slices.Concat(room(good), fenced(good), reached(good)), good.short())
	}
}

func TestTableCheckerFindsCyclesStrangersAndMissingReasons(t *testing.T) {
	t.Parallel()
	found := checkTable(map[string]room{
		"internal/view":   {may: []string{"internal/record"}, why: "x"},
		"internal/record": {may: []string{"internal/view", "internal/nowhere"}, why: "x"},
		"internal/spec":   {},
	})
	require.Len(t, found, 3)
	all := strings.Join(found, "\n")
	require.Contains(t, all, "may import each other")
	require.Contains(t, all, "internal/nowhere, which is no room")
	require.Contains(t, all, "internal/spec has no reason")
}
