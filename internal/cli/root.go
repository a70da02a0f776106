package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// The groups of commands in the help text.
const (
	groupRuns      = "runs"
	groupWorkflows = "workflows"
	groupCluster   = "cluster"
	groupProcesses = "processes"
)

// app is what all commands share.
type app struct {
	env     Env
	server  string
	timeout time.Duration
	json    bool
	asked   bool // a server was dialled, so an error may be about it
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "writ",
		Short: "A highly available workflow scheduler on etcd",
		Long: `writ runs workflows: graphs of tasks whose every dispatch is durable in etcd
before a worker hears of it.

Exit codes: 0 done, and the run succeeded · 1 the run failed, the audit found
violations · 2 wrong usage or input · 3 the run was cancelled · 4 the server was
not reached in time · 5 anything else.`,
		Example: `  writ dev workflow.yaml          everything in one process, to try things out
  writ run start hello --follow   start a run and watch it`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          only,
	}
	root.AddGroup(
		&cobra.Group{ID: groupWorkflows, Title: "Workflows:"},
		&cobra.Group{ID: groupRuns, Title: "Runs:"},
		&cobra.Group{ID: groupCluster, Title: "Cluster:"},
		&cobra.Group{ID: groupProcesses, Title: "Processes:"},
	)
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%s: %w (hint: %s --help)", strings.TrimPrefix(c.CommandPath(), "writ "), err, c.CommandPath())
	})
	root.AddCommand(commands(a)...)
	strict(root)
	return root
}

// commands lists them in the order of the help text.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		(&apply{}).command(a), (&validate{}).command(a), (&get{}).command(a), (&list{}).command(a), schemaCommand(a),
		runCommand(a), taskCommand(a), (&logs{}).command(a), (&explain{}).command(a), (&resolve{}).command(a),
		(&statusOf{}).command(a), (&workers{name: "workers"}).command(a), (&auditOf{}).command(a), versionCommand(a),
		(&dev{}).command(a), (&server{}).command(a), (&worker{}).command(a),
	}
}

// only is what a command does that has commands below it and none was named.
func only(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	hint := c.CommandPath() + " --help"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage("unknown command %q (hint: %s)", c.CommandPath()+" "+args[0], hint)
}

// strict makes wrong arguments usage errors, all the way down.
func strict(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usage("%s: %w (hint: %s)", strings.TrimPrefix(c.CommandPath(), "writ "), err, c.UseLine())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}
