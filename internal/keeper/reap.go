package keeper

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// tickNanos is the unit of start times in /proc: USER_HZ is 100 everywhere
// that Go runs on.
const tickNanos = uint64(10 * time.Millisecond)

// reap collects children that have ended. While a fork is under way, and it
// may hang, only those are taken that cannot be the one being born: its end
// must not be mistaken for an orphan's.
func (k *keeper) reap(now Instant) {
	k.childless = false
	if k.forking != nil {
		k.reapKnown(now)
		return
	}
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD: nobody is left, of any attempt
			k.childless = true
			for _, a := range k.attempts {
				a.empty = a.empty || a.reaped
			}
			return
		case pid == 0:
			return
		default:
			k.buried(pid, ws, now)
		}
	}
}

// reapKnown collects main processes by pid, and orphans that the last walk saw
// dead and that are older than the fork under way or lead no session (what is
// being born leads one).
func (k *keeper) reapKnown(now Instant) {
	var ws unix.WaitStatus
	for _, a := range k.attempts {
		if a.pid == 0 || a.reaped {
			continue
		}
		if pid, err := unix.Wait4(a.pid, &ws, unix.WNOHANG, nil); err == nil && pid == a.pid {
			k.mourn(a, ws, now)
		}
	}
	for _, p := range k.dead {
		if p.Ticks+1 >= k.forkTicks && p.Session == p.Pid {
			continue
		}
		if pid, err := unix.Wait4(p.Pid, &ws, unix.WNOHANG, nil); err == nil && pid == p.Pid {
			k.wantScan(0)
		}
	}
	k.dead = nil
}

// buried takes the end of a child that was reaped.
func (k *keeper) buried(pid int, ws unix.WaitStatus, now Instant) {
	for _, a := range k.attempts {
		if a.pid == pid && !a.reaped {
			k.mourn(a, ws, now)
			return
		}
	}
	k.wantScan(0) // an orphan: its own children are now ours
}

// mourn takes the end of a main process.
func (k *keeper) mourn(a *attempt, ws unix.WaitStatus, now Instant) {
	a.reaped, a.status = true, ws
	a.ended, a.endedAt = now, time.Now().UTC()
	k.wantScan(0)
}
