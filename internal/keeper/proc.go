package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Proc is one process as one walk of /proc saw it.
type Proc struct {
	Pid     int
	Parent  int
	Group   int
	Session int
	Ticks   uint64 // start time; with Pid it names a process for ever
	Zombie  bool
}

// ReadProcs walks /proc once, in ascending order of pid. Processes that end
// meanwhile may be missing.
func ReadProcs() ([]Proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	err = errors.Join(err, dir.Close())
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	procs := make([]Proc, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok {
			procs = append(procs, p)
		}
	}
	slices.SortFunc(procs, func(a, b Proc) int { return a.Pid - b.Pid })
	return procs, nil
}

// readProc reads /proc/<pid>/stat; false means that the process is gone.
func readProc(pid int) (Proc, bool) {
	line, err := readSmall("/proc/"+strconv.Itoa(pid)+"/stat", 1024)
	if err != nil {
		return Proc{}, false
	}
	// The name in parentheses may hold anything, parentheses too.
	_, rest, ok := bytes.Cut(line[max(0, bytes.LastIndexByte(line, ')')):], []byte(") "))
	f := strings.Fields(string(rest))
	if !ok || len(f) < 20 {
		return Proc{}, false
	}
	p := Proc{Pid: pid, Zombie: f[0] == "Z" || f[0] == "X"}
	p.Parent, _ = strconv.Atoi(f[1])
	p.Group, _ = strconv.Atoi(f[2])
	p.Session, _ = strconv.Atoi(f[3])
	p.Ticks, err = strconv.ParseUint(f[19], 10, 64)
	return p, err == nil
}

// readSmall reads at most limit bytes of a file of /proc in few system calls.
func readSmall(path string, limit int) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 0, min(limit, 4096))
	for len(buf) < limit {
		buf = slices.Grow(buf, 1)
		n, err := unix.Read(fd, buf[len(buf):min(cap(buf), limit)])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		buf = buf[:len(buf)+n]
	}
	return buf, nil
}

// Alive says whether the very process that p describes still runs.
func (p Proc) Alive() bool {
	now, ok := readProc(p.Pid)
	return ok && now.Ticks == p.Ticks && !now.Zombie
}

// signal sends sig to p and to nobody who may have got its pid since. It is no
// error when p is gone.
func (p Proc) signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.Pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil
	case errors.Is(err, unix.ENOSYS): // before Linux 5.3: the check and the signal are two steps
		if !p.Alive() {
			return nil
		}
		err = unix.Kill(p.Pid, sig)
	case err == nil:
		defer unix.Close(fd)
		// The descriptor holds one process; the start time says whether it is
		// the one that was seen.
		if now, ok := readProc(p.Pid); !ok || now.Ticks != p.Ticks {
			return nil
		}
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %d to process %d: %w", sig, p.Pid, err)
	}
	return nil
}

// mark reads the mark of a process; zero means that it has none.
func (p Proc) mark() uint64 {
	limits, err := readSmall("/proc/"+strconv.Itoa(p.Pid)+"/limits", 8192)
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(limits, []byte("Max file locks"))
	if !ok {
		return 0
	}
	f := bytes.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	m, err := strconv.ParseUint(string(f[0]), 10, 64)
	if err != nil { // "unlimited"
		return 0
	}
	return m
}

// variable returns the value of an environment variable with which p was
// started, or "".
func (p Proc) variable(name string) string {
	const most = 4 << 20 // above what Linux lets a process have
	env, err := readSmall("/proc/"+strconv.Itoa(p.Pid)+"/environ", most)
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if v, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(v)
		}
	}
	return ""
}

// descendants returns those of procs that descend from the ancestor, each with
// the child of the ancestor through which it does. A child is its own.
func descendants(procs []Proc, ancestor int) map[int][]Proc {
	children := make(map[int][]Proc)
	for _, p := range procs {
		children[p.Parent] = append(children[p.Parent], p)
	}
	tops := make(map[int][]Proc)
	// A walk is no snapshot: after a reuse of pids it may show a loop.
	seen := map[int]bool{ancestor: true}
	for _, top := range children[ancestor] {
		if seen[top.Pid] {
			continue
		}
		members := []Proc{top}
		seen[top.Pid] = true
		for i := 0; i < len(members); i++ {
			for _, c := range children[members[i].Pid] {
				if !seen[c.Pid] {
					seen[c.Pid] = true
					members = append(members, c)
				}
			}
		}
		tops[top.Pid] = members
	}
	return tops
}

// setMark puts the mark into this process's soft limit, for its next fork to
// inherit. It fails where the hard limit was lowered below the mark.
func setMark(mark uint64) error {
	var lim unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &lim); err != nil {
		return fmt.Errorf("read the limit that carries the mark: %w", err)
	}
	lim.Cur = mark
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, &lim, nil); err != nil {
		return fmt.Errorf("set the limit that carries the mark: %w", err)
	}
	return nil
}

// StartTicks is the start time of a process as /proc counts it; zero where it
// is gone.
func StartTicks(pid int) uint64 {
	p, _ := readProc(pid)
	return p.Ticks
}
