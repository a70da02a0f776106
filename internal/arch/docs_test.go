package arch_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkPackageDoc wants exactly one package comment in a directory, in doc.go
// (a main package may have it in main.go). files are those of one directory.
func checkPackageDoc(files []source) []string {
	var found []string
	with := 0
	for _, s := range files {
		if s.file.Doc == nil {
			continue
		}
		allowed := s.base() == "doc.go" || s.file.Name.Name == "main" && s.base() == "main.go"
		if !allowed {
			found = append(found, s.path+": the package comment stands in doc.go, and only there")
			continue
		}
		with++
		text := s.file.Doc.Text()
		begins := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			begins = "Command "
		}
		if !strings.HasPrefix(text, begins) {
			found = append(found, s.path+": the package comment begins with "+begins)
		}
	}
	if with != 1 {
		found = append(found, files[0].dir()+": exactly one package comment, in doc.go: what it owns, what can never happen, who calls it, what it does on failure")
	}
	return found
}

// checkExported wants a comment on every exported name that a reader of the
// package's documentation meets.
func checkExported(s source) []string {
	var found []string
	missing := func(n ast.Node, name string) {
		found = append(found, s.at(n, "%s has no comment", name))
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				missing(d, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() && spec.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
						missing(spec, spec.Name.Name)
					}
				case *ast.ValueSpec:
					if exportedValue(spec) && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
						missing(spec, spec.Names[0].Name)
					}
				}
			}
		}
	}
	return found
}

// exportedReceiver says that a function is none of a type, or of one that is
// exported itself.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch x := typ.(type) {
	case *ast.IndexExpr:
		typ = x.X
	case *ast.IndexListExpr:
		typ = x.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

func exportedValue(spec *ast.ValueSpec) bool {
	return slices.ContainsFunc(spec.Names, func(n *ast.Ident) bool { return n.IsExported() })
}

func TestEveryDirectoryHasOnePackageCommentInDocGo(t *testing.T) {
	t.Parallel()
	var found []string
	for _, files := range byDir(sources(t)) {
		found = append(found, checkPackageDoc(files)...)
	}
	none(t, found)
}

func TestEveryExportedNameHasAComment(t *testing.T) {
	t.Parallel()
	each(t, func(s source) bool { return !s.test() && !s.generated() }, checkExported)
}

func TestSourceCheckersFindWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check func(source) []string
		path  string
		text  string
		says  []string // one finding each; none for a source that is well
	}{
		"clock": {
			checkPure, "internal/view/a.go",
			"package view\nimport clock \"time\"\nfunc f() { _ = clock.Now(); _ = clock.Since }",
			[]string{"a.go:3: time.Now", "a.go:3: time.Since"},
		},
		"pure time": {
			checkPure, "internal/view/a.go",
			"package view\nimport \"time\"\nfunc f(now time.Time) time.Time { return now.Local().Add(time.Second) }", nil,
		},
		"goroutine": {checkPure, "internal/view/a.go", "package view\nfunc f() { go f() }", []string{"go statement"}},
		"variable":  {checkPure, "internal/view/a.go", "package view\nvar a, b = 1, 2", []string{"variable a", "variable b"}},
		"assertion": {checkPure, "internal/view/a.go", "package view\nvar _ I = T{}\nconst c = 1", nil},
		"dot":       {checkPure, "internal/view/a.go", "package view\nimport . \"time\"", []string{"dot import"}},
		"key":       {checkKeys, "internal/store/a.go", "package store\nfunc f(x string) string { return \"active/runs/\" + x }", []string{"only keyspace"}},
		"raw key":   {checkKeys, "internal/store/a.go", "package store\nconst p = `/writ/default/`", []string{"only keyspace"}},
		"no key":    {checkKeys, "internal/store/a.go", "package store\n// active/ is watched\nconst p = \"inactive/\"", nil},
		"sleep":     {checkSleep, "internal/store/a_test.go", "package store\nimport \"time\"\nfunc f() { time.Sleep(1) }", []string{"a_test.go:3: time.Sleep"}},
		"no sleep":  {checkSleep, "internal/store/a_test.go", "package store\nfunc f(t clock) { t.Sleep(1) }", nil},
		"util":      {checkNames, "internal/utils/a.go", "package utils", []string{"package utils says nothing"}},
		"helpers":   {checkNames, "internal/store/helpers_test.go", "package store_test", []string{"named by its idea"}},
		"types":     {checkNames, "internal/store/types.go", "package store", []string{"not by the kind"}},
		"long":      {checkLength, "a.go", "package a\n" + strings.Repeat("\n", 500), []string{"501 lines"}},
		"not long":  {checkLength, "a.go", "package a\n" + strings.Repeat("\n", 499), nil},
		"exported": {
			checkExported, "a.go",
			"package a\nfunc F() {}\ntype T int\nfunc (t *T) M() {}\nconst C = 1\nvar (\n\tV = 1\n)\ntype (\n\tG[P any] int\n)\nfunc (g G[P]) M() {}",
			[]string{"F has", "T has", "M has", "C has", "V has", "G has", "M has"},
		},
		"documented": {
			checkExported, "a.go",
			"package a\n// F is.\nfunc F() {}\nfunc f() {}\ntype t int\nfunc (t) M() {}\n// The states.\nconst (\n\tA = 1\n\tB = 2\n)\nvar (\n\tV = 1 // V is.\n)", nil,
		},
	} {
		s, err := parse(c.path, c.text)
		require.NoError(t, err, name)
		found := c.check(s)
		require.Len(t, found, len(c.says), "%s: %v", name, found)
		for i, says := range c.says {
			require.Contains(t, found[i], says, name)
		}
	}
}

func TestDirectoryCheckersFindWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	const leak = `package a
func f() { go f() }`
	for name, c := range map[string]struct {
		check func([]source) []string
		files map[string]string
		says  string // empty for a directory that is well
	}{
		"no comment":    {checkPackageDoc, map[string]string{"a/a.go": "package a"}, "exactly one"},
		"wrong file":    {checkPackageDoc, map[string]string{"a/a.go": "// Package a is.\npackage a", "a/doc.go": "// Package a is.\npackage a"}, "and only there"},
		"wrong opening": {checkPackageDoc, map[string]string{"a/doc.go": "// This is a.\npackage a"}, "begins with Package a"},
		"one comment":   {checkPackageDoc, map[string]string{"a/doc.go": "// Package a is.\npackage a", "a/a.go": "package a"}, ""},
		"command":       {checkPackageDoc, map[string]string{"a/main.go": "// Command a is.\npackage main"}, ""},
		"detached":      {checkPackageDoc, map[string]string{"a/doc.go": "// Package a is.\npackage a", "a/a.pb.go": "// Code generated\n\npackage a"}, ""},
		"leak":          {checkLeaks, map[string]string{"a/a.go": leak, "a/a_test.go": "package a_test"}, "a.go:2: a goroutine is started"},
		"no leak":       {checkLeaks, map[string]string{"a/a.go": leak, "a/a_test.go": "package a_test\nimport \"go.uber.org/goleak\""}, ""},
		"test leak":     {checkLeaks, map[string]string{"a/a_test.go": leak}, ""},
	} {
		var files []source
		for path, text := range c.files {
			s, err := parse(path, text)
			require.NoError(t, err, name)
			files = append(files, s)
		}
		found := c.check(files)
		if c.says == "" {
			require.Empty(t, found, name)
			continue
		}
		require.Len(t, found, 1, name)
		require.Contains(t, found[0], c.says, name)
	}
}

func TestGeneratedFilesAreKnownByTheirMark(t *testing.T) {
	t.Parallel()
	s, err := parse("a.pb.go", "// Code generated by protoc-gen-go. DO NOT EDIT.\n\npackage a\n")
	require.NoError(t, err)
	require.True(t, s.generated())
	require.NotEqual(t, token.NoPos, s.file.Package)
}
