package executor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/writ-sched/writ/internal/keeper"
)

// Instant is a reading of the boot clock; see [keeper.Instant].
type Instant = keeper.Instant

// Now reads the boot clock, on which fence deadlines are given.
func Now() Instant { return keeper.Now() }

// Cause says who ended the main process of an attempt; empty where it ended by
// itself.
type Cause = keeper.Cause

// The causes of an end that the process did not choose.
const (
	CauseTimeout = keeper.CauseTimeout // Spec.Timeout passed
	CauseFenced  = keeper.CauseFenced  // the fence deadline passed
	CauseKilled  = keeper.CauseKilled  // Kill or KillAll
	// CauseAgentGone stands only in leftovers: the keeper saw its agent end.
	CauseAgentGone = keeper.CauseAgentGone
)

const (
	// DefaultHead is how many bytes of output are kept from the beginning
	// where Spec.Head is zero.
	DefaultHead = 4 << 20
	// DefaultTail is how many bytes are kept at least from the end where
	// Spec.Tail is zero.
	DefaultTail = 4 << 20
)

// Spec says what one attempt runs.
type Spec struct {
	Token  string   // at most 128 characters, no slash; never started before
	Ref    string   // run/task/attempt, for people
	Argv   []string // the command; exactly one of Argv and Script
	Script string   // run as sh -euc
	Env    []string // see Environ; WRIT_TOKEN, WRIT_STATE, WRIT_RESULT (and WRIT_INPUTS) are added
	Cwd    string   // absolute; empty: the agent's own
	Inputs []byte   // content of the file WRIT_INPUTS; nil: no file
	Log    string   // absolute path of the output's first segment; empty: discarded
	Head   int64    // bytes of output kept from the beginning
	Tail   int64    // bytes of output kept from the end, at least

	Fence     Instant       // KILL of everything at it; zero: not fenced
	FenceTerm time.Duration // TERM so long before the fence; zero: no TERM
	Timeout   time.Duration // of the attempt, on the boot clock; zero: none
	Grace     time.Duration // TERM to KILL at the timeout and for strays; zero: KILL at once
}

// Result is how an attempt ended, given when none of its processes lives.
type Result struct {
	ExitCode   int       // of the main process; counts where Signal is zero and nothing below says otherwise
	Signal     int       // that ended the main process, or zero
	Cause      Cause     // why it was ended, or empty
	StartError string    // it never ran, for this reason
	Lost       bool      // the keeper died: killed, and proven dead, but nobody knows its exit
	StartedAt  time.Time // wall clock, UTC; zero where it never ran
	EndedAt    time.Time
	Started    Instant // the same on the boot clock
	Ended      Instant
	Strays     int    // processes that outlived the main one and were ended
	LogBytes   int64  // bytes of output, kept or not
	LogError   string // the log is not whole, for this reason
}

// Success says whether the command ran and ended by itself with exit code 0.
func (r Result) Success() bool {
	return r.ExitCode == 0 && r.Signal == 0 && r.StartError == "" && !r.Lost && r.Cause == ""
}

// String tells the end in a few words, for people.
func (r Result) String() string {
	switch {
	case r.StartError != "":
		return "not started: " + r.StartError
	case r.Lost:
		return "lost: its keeper died"
	case r.Cause == CauseTimeout:
		return "ended: timeout"
	case r.Cause == CauseFenced:
		return "ended: fence deadline"
	case r.Cause == CauseKilled:
		return "ended: on request"
	case r.Cause == CauseAgentGone:
		return "ended: its agent was gone"
	case r.Signal != 0:
		return fmt.Sprintf("ended by signal %d", r.Signal)
	default:
		return fmt.Sprintf("exit code %d", r.ExitCode)
	}
}

// resultOf converts what the keeper said.
func resultOf(e *keeper.Ended) Result {
	return Result{
		ExitCode: e.ExitCode, Signal: e.Signal, Cause: e.Cause, StartError: e.StartError,
		StartedAt: e.StartedAt, EndedAt: e.EndedAt, Started: e.Started, Ended: e.Ended,
		Strays: e.Strays, LogBytes: e.LogBytes, LogError: e.LogError,
	}
}

// Process is one attempt that was asked for. Its methods may be called from
// any goroutine.
type Process struct {
	// Token is the attempt's.
	Token string

	ref     string
	log     string
	started chan struct{} // closed with pid set, or when it ended unstarted
	done    chan struct{} // closed with result set
	pid     int
	result  Result
}

// Started is closed when the main process runs, or when it is certain that it
// never will.
func (p *Process) Started() <-chan struct{} { return p.started }

// Pid is the process id of the main process once Started is closed; zero where
// it never ran.
func (p *Process) Pid() int {
	<-p.started
	return p.pid
}

// Done is closed when the attempt has ended and nothing of it lives.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end. Its only error is that of ctx.
func (p *Process) Wait(ctx context.Context) (Result, error) {
	select {
	case <-p.done:
		return p.result, nil
	case <-ctx.Done():
		return Result{}, fmt.Errorf("wait for attempt %s: %w", p.Token, context.Cause(ctx))
	}
}

// setStarted and setEnded are called by the executor's reader only, in order.
func (p *Process) setStarted(pid int) {
	select {
	case <-p.started:
	default:
		p.pid = pid
		close(p.started)
	}
}

func (p *Process) setEnded(r Result) {
	p.setStarted(0)
	p.result = r
	close(p.done)
}

// check says what is wrong with a Spec, apart from what only a start can tell.
func (s *Spec) check() error {
	if err := checkToken(s.Token); err != nil {
		return err
	}
	switch {
	case (len(s.Argv) == 0) == (s.Script == ""):
		return errors.New("expected exactly one of command and script")
	case len(s.Argv) > 0 && s.Argv[0] == "":
		return errors.New("the command is empty")
	case s.Cwd != "" && !filepath.IsAbs(s.Cwd):
		return fmt.Errorf("working directory %q: expected an absolute path", s.Cwd)
	case s.Log != "" && !filepath.IsAbs(s.Log):
		return fmt.Errorf("log %q: expected an absolute path", s.Log)
	}
	for _, list := range [][]string{s.Argv, {s.Script, s.Cwd}, s.Env} {
		for _, v := range list {
			if strings.ContainsRune(v, 0) {
				return errors.New("a zero byte in the command, its environment or its working directory")
			}
		}
	}
	return nil
}

// command is the argument list.
func (s *Spec) command() []string {
	if s.Script != "" {
		return []string{"sh", "-euc", s.Script}
	}
	return s.Argv
}
