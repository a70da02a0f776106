package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// birth is what came of one fork.
type birth struct {
	attempt *attempt
	pid     int
	ticks   uint64
	capture *capture // nil where err is set
	err     error
}

// fork starts the attempt's main process. It may hang for as long as the file
// system does that holds the working directory, the command or the log.
func (k *keeper) fork(a *attempt) birth {
	b := birth{attempt: a}
	path, err := command(&a.Start)
	if err != nil {
		b.err = err
		return b
	}
	r, w, err := newPipe()
	if err != nil {
		b.err = fmt.Errorf("make the output pipe: %w", err)
		return b
	}
	defer w.Close() //nolint:errcheck // nothing was written to it here
	c := &capture{r: r, tape: tape{path: a.Log, head: max(a.Head, 1), tail: max(a.Tail, 1)}}
	if err := c.tape.open(); err != nil {
		b.err = errors.Join(fmt.Errorf("open the log: %w", err), r.Close())
		return b
	}
	b.pid, b.err = k.forkExec(a, path, w)
	if b.err != nil {
		b.err = errors.Join(b.err, r.Close())
		c.tape.close("the attempt never started")
		return b
	}
	if p, ok := readProc(b.pid); ok { // a zombie at the latest: nobody reaps while a fork is under way
		b.ticks = p.Ticks
	}
	b.capture = c
	// For a successor, should this process die. Without it the marks remain.
	c.tape.err = writeJSON(filepath.Join(a.Dir, "pid.json"), Birth{Pid: b.pid, Ticks: b.ticks})
	return b
}

// forkExec forks with the attempt's mark and says in words what went wrong.
func (k *keeper) forkExec(a *attempt, path string, out *os.File) (int, error) {
	if k.marks {
		if err := setMark(a.Mark); err != nil {
			return 0, err
		}
		defer setMark(k.state.Mark(0)) //nolint:errcheck // it was set at the start, and lowering is never refused
	}
	if a.Fence != 0 && Now() >= a.fence() {
		return 0, errFenced
	}
	pid, err := syscall.ForkExec(path, a.Argv, &syscall.ProcAttr{
		Dir:   a.Cwd,
		Env:   a.Env,
		Files: []uintptr{k.null.Fd(), out.Fd(), out.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	switch {
	case err == nil:
		return pid, nil
	case errors.Is(err, unix.E2BIG):
		size, longest := argumentBytes(a)
		return 0, fmt.Errorf("start %q: arguments and environment are too long: %d bytes, the longest string %d; "+
			"Linux allows 131071 for one string and a quarter of the stack limit for all", a.Argv[0], size, longest)
	case errors.Is(err, unix.ENOEXEC):
		return 0, fmt.Errorf("start %q: not a program that this system can run; a script begins with #! and its interpreter", path)
	case errors.Is(err, unix.ENOENT):
		return 0, fmt.Errorf("start %q: its interpreter does not exist", path)
	default:
		return 0, fmt.Errorf("start %q: %w", path, err)
	}
}

var (
	errFenced     = errors.New("its fence deadline passed before it could start")
	errEndedEarly = errors.New("it was ended before it could start")
)

// argumentBytes measures what a program is started with.
func argumentBytes(a *attempt) (size, longest int) {
	for _, list := range [][]string{a.Argv, a.Env} {
		for _, s := range list {
			size += len(s) + 1
			longest = max(longest, len(s))
		}
	}
	return size, longest
}

// command checks the working directory and finds the program in the PATH that
// the attempt itself has.
func command(s *Start) (string, error) {
	if s.Cwd != "" {
		switch fi, err := os.Stat(s.Cwd); {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("working directory %q does not exist", s.Cwd)
		case err != nil:
			return "", fmt.Errorf("working directory: %w", err)
		case !fi.IsDir():
			return "", fmt.Errorf("working directory %q is not a directory", s.Cwd)
		}
	}
	name := s.Argv[0]
	if strings.Contains(name, "/") {
		return name, executable(s.Cwd, name)
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, e := range s.Env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // the current directory is never searched by accident
		}
		if full := filepath.Join(dir, name); executable("", full) == nil {
			return full, nil
		}
	}
	return "", fmt.Errorf("command %q not found in PATH (%s)", name, path)
}

// executable says why a file cannot be run, relative to the directory in which
// it would be.
func executable(cwd, name string) error {
	full := name
	if cwd != "" && !filepath.IsAbs(name) {
		full = filepath.Join(cwd, name)
	}
	switch fi, err := os.Stat(full); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("command %q does not exist", full)
	case err != nil:
		return fmt.Errorf("command: %w", err)
	case fi.IsDir():
		return fmt.Errorf("command %q is a directory", full)
	}
	if err := unix.Access(full, unix.X_OK); err != nil {
		return fmt.Errorf("command %q may not be executed: %w", full, err)
	}
	return nil
}
