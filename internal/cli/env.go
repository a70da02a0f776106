package cli

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Env is what a command sees of the process that it runs in.
type Env struct {
	// Args are the arguments without the program's name.
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Getenv reads one environment variable, Environ all of them: a worker
	// hands a few of them on to its tasks.
	Getenv  func(string) string
	Environ func() []string
	Now     func() time.Time
	// Terminal gives the size of the terminal that Stdout is; false where it is
	// none.
	Terminal func() (width, height int, is bool)
}

// Process returns the Env of this very process.
func Process() Env {
	return Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Environ: os.Environ, Now: time.Now,
		Terminal: func() (int, int, bool) {
			w, h, err := term.GetSize(int(os.Stdout.Fd()))
			return w, h, err == nil && w > 0 && h > 0
		},
	}
}

// Run runs the command that env.Args name, prints its error, and returns the
// exit code of the process.
func Run(ctx context.Context, env Env) int {
	a := &app{env: env}
	root := newRoot(a)
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	a.complain(err)
	return exitCode(err)
}
