package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is one parsed Go file of the module.
type source struct {
	path string // below the module, with slashes
	text string
	fset *token.FileSet
	file *ast.File
}

func (s source) dir() string     { return filepath.ToSlash(filepath.Dir(s.path)) }
func (s source) base() string    { return filepath.Base(s.path) }
func (s source) test() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) generated() bool { return ast.IsGenerated(s.file) }

// at names a place for a finding.
func (s source) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.fset.Position(n.Pos()).Line, fmt.Sprintf(format, args...))
}

// parse makes a source of text; tests of the checkers use it too.
func parse(path, text string) (source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{path: path, text: text, fset: fset, file: file}, err
}

// walk calls visit for every file of the repository that is no product: not
// for .git, bin, dist and the local state directories.
func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if slices.Contains([]string{".git", ".writ", "bin", "dist"}, rel) {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() {
			visit(rel)
		}
		return nil
	}))
}

// sources parses every Go file of the module. Files below testdata are data.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata/") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		s, err := parse(path, string(text))
		require.NoError(t, err)
		all = append(all, s)
	})
	require.NotEmpty(t, all)
	return all
}

// each runs a checker of single files over those that it is meant for.
func each(t *testing.T, meant func(source) bool, check func(source) []string) {
	t.Helper()
	var found []string
	for _, s := range sources(t) {
		if meant(s) {
			found = append(found, check(s)...)
		}
	}
	none(t, found)
}

// imported returns the path that the identifier x names in this file, or "".
func (s source) imported(x ast.Expr) string {
	id, ok := x.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == id.Name {
			return path
		}
	}
	return ""
}

// checkPure finds what makes a package of CORE depend on more than its
// arguments.
func checkPure(s source) []string {
	var found []string
	for _, spec := range s.file.Imports {
		if spec.Name != nil && spec.Name.Name == "." {
			found = append(found, s.at(spec, "a dot import hides what CORE calls"))
		}
	}
	for _, d := range s.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.Name != "_" {
					found = append(found, s.at(name, "package-level variable %s: CORE has no state; a constant, or a function that returns the value", name.Name))
				}
			}
		}
	}
	clock := []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker", "Local"}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, s.at(n, "go statement: CORE starts no goroutine"))
		case *ast.SelectorExpr:
			if s.imported(n.X) == "time" && slices.Contains(clock, n.Sel.Name) {
				found = append(found, s.at(n, "time.%s: CORE is handed the clock's reading", n.Sel.Name))
			}
		}
		return true
	})
	return found
}

// checkKeys finds string literals that begin as a key does.
func checkKeys(s source) []string {
	prefixes := []string{"active/", "ended/", "revisions/", "inputs/", "results/", "election/", "/writ/"}
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if err == nil && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) }) {
			found = append(found, s.at(lit, "%s is built here: only keyspace names keys", lit.Value))
		}
		return true
	})
	return found
}

// checkSleep finds tests that wait for luck.
func checkSleep(s source) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" && s.imported(sel.X) == "time" {
			found = append(found, s.at(sel, "time.Sleep in a test: wait for the event itself, or use synctest"))
		}
		return true
	})
	return found
}

// checkNames finds files and packages named after nothing.
func checkNames(s source) []string {
	var found []string
	words := []string{"manager", "helper", "util", "common", "base", "data", "info", "misc", "object"}
	for _, w := range words {
		if name := strings.TrimSuffix(s.file.Name.Name, "_test"); name == w || name == w+"s" {
			found = append(found, s.path+": package "+name+" says nothing; name what it does")
		}
		if name := strings.TrimSuffix(strings.TrimSuffix(s.base(), ".go"), "_test"); name == w || name == w+"s" {
			found = append(found, s.path+": a file is named by its idea")
		}
	}
	if slices.Contains([]string{"types.go", "interfaces.go", "interface.go", "constants.go"}, s.base()) {
		found = append(found, s.path+": a file is named by its idea, not by the kind of its declarations")
	}
	return found
}

// maxLines is the longest file that a person reads in one sitting (HOUSE 4.12).
const maxLines = 500

func checkLength(s source) []string {
	if n := strings.Count(s.text, "\n"); n > maxLines {
		return []string{fmt.Sprintf("%s: %d lines, at most %d: two ideas, two files", s.path, n, maxLines)}
	}
	return nil
}

// checkLeaks finds directories that start goroutines and never look whether
// they ended. files are those of one directory.
func checkLeaks(files []source) []string {
	var starts ast.Node
	var where source
	looks := false
	for _, s := range files {
		if s.test() {
			looks = looks || strings.Contains(s.text, `"go.uber.org/goleak"`) ||
				strings.Contains(s.text, "etcdtest.Main(") || strings.Contains(s.text, "cluster.Main(")
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok && starts == nil {
				starts, where = g, s
			}
			return true
		})
	}
	if starts == nil || looks {
		return nil
	}
	return []string{where.at(starts, "a goroutine is started, and no test of the package checks with goleak that it ended")}
}

func production(s source) bool {
	return !s.test() && !s.generated() && !rooms()[s.dir()].support
}

func TestCoreReadsNoClockAndKeepsNoState(t *testing.T) {
	t.Parallel()
	each(t, func(s source) bool { return rooms()[s.dir()].core && !s.test() }, checkPure)
}

func TestOnlyKeyspaceNamesKeys(t *testing.T) {
	t.Parallel()
	each(t, func(s source) bool { return production(s) && s.dir() != "internal/keyspace" }, checkKeys)
}

func TestNoTestSleeps(t *testing.T) {
	t.Parallel()
	each(t, func(s source) bool { return s.test() || rooms()[s.dir()].support }, checkSleep)
}

func TestFilesAndPackagesAreNamedByTheirIdea(t *testing.T) {
	t.Parallel()
	each(t, func(source) bool { return true }, checkNames)
}

func TestNoFileIsLongerThanOneReading(t *testing.T) {
	t.Parallel()
	each(t, func(s source) bool { return !s.generated() }, checkLength)
}

func TestPackagesThatStartGoroutinesLookForLeaks(t *testing.T) {
	t.Parallel()
	var found []string
	for _, files := range byDir(sources(t)) {
		if files[0].file.Name.Name != "main" { // a program's goroutines end with it
			found = append(found, checkLeaks(files)...)
		}
	}
	none(t, found)
}

// byDir groups sources by their directory.
func byDir(all []source) map[string][]source {
	dirs := map[string][]source{}
	for _, s := range all {
		dirs[s.dir()] = append(dirs[s.dir()], s)
	}
	return dirs
}
