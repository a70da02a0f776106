package api_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/api"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/specfile"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// sentinels are the names of the errors that the package declares.
func sentinels(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Err") {
				names = append(names, v.Names[0].Name)
			}
			return true
		})
	}
	return names
}

func TestEveryErrorOfThePackageHasItsCode(t *testing.T) {
	t.Parallel()
	service := api.New(api.Config{}, nil, nil, nil)
	known := map[string]error{
		"ErrAbsent": api.ErrAbsent, "ErrTaken": api.ErrTaken, "ErrEnded": api.ErrEnded, "ErrEarly": api.ErrEarly,
		"ErrContended": api.ErrContended, "ErrUnsettled": api.ErrUnsettled, "ErrSilent": api.ErrSilent, "ErrFull": api.ErrFull,
		"ErrDraining": api.ErrDraining, "ErrNoWorker": api.ErrNoWorker, "ErrNoLog": api.ErrNoLog,
	}
	names := sentinels(t)
	require.Len(t, names, len(known))
	for _, name := range names {
		err, listed := known[name]
		require.True(t, listed, "%s is not walked by this test", name)
		code, mapped := api.Verdicts()[err]
		require.True(t, mapped, "%s stands in no line of the table", name)
		got := service.Refuse(fmt.Errorf("do this: %w", err))
		require.Equal(t, code, status.Code(got), name)
		require.Contains(t, status.Convert(got).Message(), "do this: "+err.Error())
	}
	require.Equal(t, codes.DeadlineExceeded, status.Code(service.Refuse(context.DeadlineExceeded)))
	require.Equal(t, codes.Canceled, status.Code(service.Refuse(context.Canceled)))
	require.Equal(t, codes.Unavailable, status.Code(service.Refuse(fmt.Errorf("%w: %w", api.ErrSilent, context.DeadlineExceeded))))
	require.Equal(t, codes.Internal, status.Code(service.Refuse(errors.New("what is this"))))
	require.Equal(t, codes.DataLoss, status.Code(service.Refuse(status.Error(codes.DataLoss, "a stream broke"))))
}

func TestProblemsOfAnySourceAreDetailsOfTheRefusal(t *testing.T) {
	t.Parallel()
	service := api.New(api.Config{}, nil, nil, nil)
	for name, err := range map[string]error{
		"own":  &api.InvalidError{Problems: []*writv1.Problem{{Field: "a.b", Text: "is wrong", Hint: "right it"}}},
		"spec": &spec.InvalidError{Problems: []spec.Problem{{Path: spec.Path{"a", "b"}, Text: "is wrong", Hint: "right it"}}},
		"file": &specfile.InvalidError{Problems: []specfile.Problem{{File: "f", Line: 2, Column: 3, Field: "a.b", Text: "is wrong", Hint: "right it"}}},
	} {
		st := status.Convert(service.Refuse(fmt.Errorf("apply: %w", err)))
		require.Equal(t, codes.InvalidArgument, st.Code(), name)
		require.Len(t, st.Details(), 1, name)
		p := st.Details()[0].(*writv1.Problem)
		require.Equal(t, "a.b is wrong right it", p.GetField()+" "+p.GetText()+" "+p.GetHint(), name)
		require.Contains(t, st.Message(), "a.b: is wrong (hint: right it)", name)
	}
}

func TestRefusalWithManyProblemsStaysSmall(t *testing.T) {
	t.Parallel()
	var problems []*writv1.Problem
	for i := range 100 {
		problems = append(problems, &writv1.Problem{Field: fmt.Sprintf("tasks.t%d", i), Text: strings.Repeat("wrong ", 20)})
	}
	st := status.Convert(api.New(api.Config{}, nil, nil, nil).Refuse(&api.InvalidError{Problems: problems}))
	require.Less(t, len(st.Message()), 2000)
	require.Less(t, len(st.Details()), 60)
	last := st.Details()[len(st.Details())-1].(*writv1.Problem)
	require.Equal(t, fmt.Sprintf("and %d more", 101-len(st.Details())), last.GetText())
}
