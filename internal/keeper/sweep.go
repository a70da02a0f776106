package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sweepProof is how many walks in a row must find nobody. A sweeper is not
	// the parent of what it looks for: a process that forks and exits while a
	// walk passes can be missed by one walk.
	sweepProof = 3
	sweepPause = 5 * time.Millisecond
)

// Sweep ends every process of a state directory, of any keeper: those with its
// mark, with its id in their environment, and those in the session or group of
// a recorded birth. It returns how many distinct processes it met, once none
// is left, or an error that names those that would not die before ctx ended.
// The caller must not itself run inside an attempt of that directory, and must
// have no living keeper on it, or it kills that too.
func Sweep(ctx context.Context, state StateID, births []Birth) (int, error) {
	met := make(map[procKey]struct{})
	for clean := 0; clean < sweepProof; {
		procs, err := ReadProcs()
		if err != nil {
			return len(met), err
		}
		left := kin(procs, state, births)
		clean++
		var refused error
		for _, p := range left {
			clean = 0
			met[procKey{p.Pid, p.Ticks}] = struct{}{}
			refused = errors.Join(refused, p.signal(unix.SIGKILL))
			if p.Parent == os.Getpid() {
				// As pid 1 of a container the agent inherits orphans.
				_, _ = unix.Wait4(p.Pid, nil, unix.WNOHANG, nil)
			}
		}
		select {
		case <-ctx.Done():
			if clean == 0 {
				return len(met), errors.Join(fmt.Errorf("end the processes %v of state directory %s: %w",
					pids(left), state, context.Cause(ctx)), refused)
			}
		case <-time.After(sweepPause):
		}
	}
	return len(met), reapOrphans(births)
}

// reapOrphans collects what this process inherited from a dead keeper, as the
// first process of a container does. Its other children are not touched.
func reapOrphans(births []Birth) error {
	procs, err := ReadProcs()
	if err != nil {
		return err
	}
	for _, p := range procs {
		if !p.Zombie || p.Parent != os.Getpid() || !p.bornOf(births) {
			continue
		}
		if _, err := unix.Wait4(p.Pid, nil, unix.WNOHANG, nil); err != nil && !errors.Is(err, unix.ECHILD) {
			return fmt.Errorf("reap process %d: %w", p.Pid, err)
		}
	}
	return nil
}

// bornOf says whether p is in the session or group of one of the births.
func (p Proc) bornOf(births []Birth) bool {
	return slices.ContainsFunc(births, func(b Birth) bool {
		return b.Pid != 0 && (p.Session == b.Pid || p.Group == b.Pid) && p.Ticks >= b.Ticks
	})
}

// kin returns the living processes that belong to the state directory.
func kin(procs []Proc, state StateID, births []Birth) []Proc {
	var found []Proc
	for _, p := range procs {
		if p.Zombie || p.Pid == os.Getpid() {
			continue
		}
		if p.bornOf(births) || state.Owns(p.mark()) || p.variable(EnvState) == state.String() {
			found = append(found, p)
		}
	}
	return found
}

func pids(procs []Proc) []int {
	list := make([]int, 0, len(procs))
	for _, p := range procs {
		list = append(list, p.Pid)
	}
	return list
}

// Inside says whether this very process belongs to an attempt of the state
// directory; then a sweep of it would have to kill its caller.
func Inside(state StateID) bool {
	self := Proc{Pid: os.Getpid()}
	return state.Owns(self.mark()) || os.Getenv(EnvState) == state.String()
}
