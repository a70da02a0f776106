package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/writ-sched/writ/internal/specfile"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// validate is `writ validate`.
type validate struct{}

func (v *validate) command(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "validate FILE…",
		Short:   "Check workflow files without a server",
		GroupID: groupWorkflows,
		Args:    cobra.MinimumNArgs(1),
		Long: `Says everything that is wrong with the files, each with its line, what was
expected and a hint. A server checks the same when a file is applied. - is
standard input.`,
		RunE: func(_ *cobra.Command, args []string) error { return v.run(a, args) },
	}
	a.answers(c)
	return c
}

func (v *validate) run(a *app, names []string) error {
	refused := 0
	for _, name := range names {
		file, err := a.read(name)
		if err != nil {
			return err
		}
		answer := check(file)
		if len(answer.GetProblems()) > 0 {
			refused++
		}
		switch {
		case a.json:
			if err := a.line(answer); err != nil {
				return err
			}
		case len(answer.GetProblems()) > 0:
			writeProblems(a.env.Stderr, answer.GetProblems())
		default:
			a.printf("%s: workflow %s with %s is valid\n", file.GetName(), answer.GetName(), count(int(answer.GetTasks()), "task", "tasks"))
		}
	}
	if refused > 0 {
		return verdict(ExitUsage, "%s", count(refused, "file is not valid", "files are not valid"))
	}
	return nil
}

// check is what a server would answer to ValidateWorkflow.
func check(file *writv1.File) *writv1.ValidateWorkflowResponse {
	w, err := specfile.Decode(file.GetName(), file.GetContent())
	if err == nil {
		return &writv1.ValidateWorkflowResponse{Name: string(w.Name), Tasks: int32(len(w.Tasks))}
	}
	answer := &writv1.ValidateWorkflowResponse{}
	var invalid *specfile.InvalidError
	if !errors.As(err, &invalid) {
		answer.Problems = []*writv1.Problem{{File: file.GetName(), Text: err.Error()}}
		return answer
	}
	for _, p := range invalid.Problems {
		answer.Problems = append(answer.Problems, &writv1.Problem{
			File: p.File, Line: int32(p.Line), Column: int32(p.Column), Field: p.Field, Text: p.Text, Hint: p.Hint,
		})
	}
	return answer
}

func schemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of workflow files, for editors",
		GroupID: groupWorkflows,
		Args:    cobra.NoArgs,
		Example: `  writ schema > writ.schema.json
  # first line of a workflow file, for editors with the YAML language server:
  # yaml-language-server: $schema=writ.schema.json`,
		RunE: func(*cobra.Command, []string) error {
			a.printf("%s", specfile.Schema())
			return nil
		},
	}
}
