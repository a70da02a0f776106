package keeper

import (
	"maps"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// members is what a walk of /proc has shown of one attempt.
type members struct {
	live     []Proc
	doubtful bool // a zombie that may be its: its children may have been missed
}

const (
	rescanFirst = time.Millisecond
	rescanMost  = 100 * time.Millisecond
)

// walk looks at every descendant once and sends what its attempt's phase asks
// for. It wants to be called again until each attempt that is ending is empty
// beyond doubt.
func (k *keeper) walk(now Instant) {
	k.scan = false
	procs, err := ReadProcs()
	if err != nil { // no file descriptor is left, say: the deadlines stand, so again
		k.wantScan(rescanMost)
		return
	}
	tops := descendants(procs, os.Getpid())
	found := k.attribute(tops)
	killed, doubt := false, false
	for _, a := range k.attempts {
		m := found[a]
		if m == nil {
			m = &members{}
		}
		if a.reaped {
			a.empty = a.empty || len(m.live) == 0 && !m.doubtful
			doubt = doubt || m.doubtful && !a.empty
			k.endStrays(a, m.live, now)
		}
		killed = a.strike(m.live) || killed
	}
	if k.orphaned {
		killed = killEvery(tops) || killed
	}
	cost := Now().Sub(now)
	k.scanRest = Now().Add(cost)
	switch {
	case killed:
		k.scanWait = min(max(2*k.scanWait, rescanFirst), rescanMost)
		k.wantScan(k.scanWait)
	case doubt: // reaping comes first, on the way back here
		k.scanWait = 0
		k.wantScan(rescanFirst)
	default:
		k.scanWait = 0
	}
}

// attribute says which attempt each descendant belongs to.
func (k *keeper) attribute(tops map[int][]Proc) map[*attempt]*members {
	mains := make(map[int]*attempt, len(k.attempts))
	marks := make(map[uint64]*attempt, len(k.attempts))
	for _, a := range k.attempts {
		marks[a.Mark] = a
		if a.pid != 0 && !a.reaped {
			mains[a.pid] = a
		}
	}
	found := make(map[*attempt]*members, len(k.attempts))
	k.dead = k.dead[:0]
	for pid, tree := range tops {
		if tree[0].Zombie && mains[pid] == nil {
			k.dead = append(k.dead, tree[0])
		}
		owners := []*attempt{mains[pid]}
		if owners[0] == nil {
			owners = k.owners(tree[0], marks)
		}
		for _, a := range owners {
			m := found[a]
			if m == nil {
				m = &members{}
				found[a] = m
			}
			for _, p := range tree {
				if !p.Zombie {
					m.live = append(m.live, p)
				}
			}
			m.doubtful = m.doubtful || tree[0].Zombie && mains[pid] == nil
		}
	}
	return found
}

// owners reads the signs of an orphan. Where it shows none, it counts for
// every attempt that may own it; so does a zombie, which has none to show.
func (k *keeper) owners(p Proc, marks map[uint64]*attempt) []*attempt {
	if !p.Zombie {
		if a := marks[p.mark()]; a != nil && k.marks {
			return []*attempt{a}
		}
		if a := k.attempts[p.variable(EnvToken)]; a != nil {
			return []*attempt{a}
		}
	}
	var all []*attempt
	for a := range maps.Values(k.attempts) {
		if a.pid != 0 && (p.Session == a.pid || p.Group == a.pid) && a.mayOwn(p) {
			return []*attempt{a}
		}
		if a.mayOwn(p) {
			all = append(all, a)
		}
	}
	return all
}

// endStrays begins the end of what outlived its main process.
func (k *keeper) endStrays(a *attempt, live []Proc, now Instant) {
	for _, p := range live {
		a.strays[procKey{p.Pid, p.Ticks}] = struct{}{}
	}
	if len(live) > 0 && a.phase == running {
		a.end("", now.Add(a.Grace))
		a.tick(now)
	}
}

// strike sends the signal that the phase asks for, and says whether it was
// KILL and met somebody.
func (a *attempt) strike(live []Proc) bool {
	switch a.phase {
	case ending:
		for _, p := range live {
			key := procKey{p.Pid, p.Ticks}
			if _, had := a.termed[key]; had {
				continue
			}
			a.termed[key] = struct{}{}
			_ = p.signal(unix.SIGTERM) // who may not be signalled shows in the next walk, and stays
			_ = p.signal(unix.SIGCONT) // one that is stopped would not hear TERM
		}
	case killing:
		if a.pid != 0 && !a.reaped {
			_ = unix.Kill(-a.pid, unix.SIGKILL) // the whole group in one step, no fork escapes
		}
		for _, p := range live {
			_ = p.signal(unix.SIGKILL)
		}
		return len(live) > 0
	case running:
	}
	return false
}

// killEvery ends all descendants, whoever's they are.
func killEvery(tops map[int][]Proc) bool {
	met := false
	for _, tree := range tops {
		for _, p := range tree {
			if !p.Zombie {
				met = true
				_ = p.signal(unix.SIGKILL)
			}
		}
	}
	return met
}
