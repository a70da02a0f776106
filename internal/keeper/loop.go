package keeper

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// keeper is the state of the process. The loop owns everything below the
// channels.
type keeper struct {
	state StateID
	marks bool // the limit that carries marks can be set
	null  *os.File
	alarm *alarm
	out   *outbox

	frames   chan incoming  // unbuffered: the reader waits
	forkNext chan *attempt  // one: given only while no fork is under way
	forked   chan birth     // one
	captured chan *attempt  // full: the captures wait
	child    chan os.Signal // one
	rang     chan struct{}  // one
	done     chan struct{}  // closed by the loop as its last act
	code     int            // exit code, read after done

	attempts  map[string]*attempt // by token
	queue     []*attempt          // asked for, not yet given to the forker
	forking   *attempt            // with the forker
	orphaned  bool                // the agent is gone: everything dies
	childless bool                // the last reaping found no child at all

	scan      bool          // a walk of /proc is wanted
	scanAt    Instant       // not before
	scanRest  Instant       // end of the pause that keeps walks below half of a core
	scanWait  time.Duration // grows while KILL is sent in vain
	dead      []Proc        // zombies of orphans, as the last walk saw them
	forkTicks uint64        // when the fork under way began, as /proc counts
}

// loop runs until the agent is gone and nothing is left.
func (k *keeper) loop() {
	defer close(k.done)
	k.out.send(Frame{Op: OpHello, Pid: os.Getpid()})
	defer k.out.flush()
	for !k.finished() {
		select {
		case in := <-k.frames:
			k.hear(in)
		case b := <-k.forked:
			k.born(b)
		case a := <-k.captured:
			a.drained = true
		case <-k.child:
		case <-k.rang:
			k.alarm.at = 0 // it went off: set it again even for the same instant
		}
		k.step()
	}
}

func (k *keeper) finished() bool {
	return k.orphaned && len(k.attempts) == 0 && k.forking == nil && k.childless
}

// step brings everything up to the present instant.
func (k *keeper) step() {
	now := Now()
	for _, a := range k.attempts {
		if a.tick(now) {
			k.wantScan(0)
		}
	}
	k.feed()
	k.reap(now)
	if k.scan && Now() >= k.scanAt {
		k.walk(Now())
	}
	needed := k.orphaned
	for _, a := range k.attempts {
		k.settleEnd(a)
		needed = needed || a.phase != running || a.reaped && !a.empty
	}
	k.scan = k.scan && needed
	k.alarm.set(k.wakeAt())
}

// wakeAt is the next instant at which something is due by itself.
func (k *keeper) wakeAt() Instant {
	var at Instant
	earliest := func(t Instant) {
		if t != 0 && (at == 0 || t < at) {
			at = t
		}
	}
	for _, a := range k.attempts {
		if a.phase != killing {
			earliest(a.next())
		}
	}
	if k.scan {
		earliest(max(k.scanAt, 1))
	}
	return at
}

// wantScan asks for a walk of /proc after the delay.
func (k *keeper) wantScan(delay time.Duration) {
	at := max(Now().Add(delay), k.scanRest)
	if !k.scan || at < k.scanAt {
		k.scanAt = at
	}
	k.scan = true
}

// hear acts on one frame of the agent.
func (k *keeper) hear(in incoming) {
	if in.err != nil {
		if !errors.Is(in.err, io.EOF) && errors.Is(in.err, ErrFrame) {
			k.refuse(in.err.Error())
			return
		}
		k.orphan()
		return
	}
	switch f := in.frame; f.Op {
	case OpStart:
		k.start(f.Start)
	case OpKill:
		if a := k.attempts[f.Token]; a != nil {
			k.end(a, CauseKilled, f.Grace)
		}
	case OpKillAll:
		for _, a := range k.attempts {
			k.end(a, CauseKilled, f.Grace)
		}
	case OpExtend:
		for _, a := range k.attempts {
			if a.fence() != 0 && a.phase != killing {
				a.deadline.Store(int64(max(a.fence(), f.Until)))
			}
		}
	case OpPing:
		k.out.send(Frame{Op: OpPong, Seq: f.Seq})
	default:
		k.refuse("unknown operation " + string(f.Op))
	}
}

// refuse gives up an agent that does not speak the protocol.
func (k *keeper) refuse(text string) {
	k.out.send(Frame{Op: OpRefused, Text: text})
	k.code = 2
	k.orphan()
}

// orphan ends everything at once: nobody is there to answer for it.
func (k *keeper) orphan() {
	if k.orphaned {
		return
	}
	k.orphaned = true
	for _, a := range k.attempts {
		k.end(a, CauseAgentGone, 0)
	}
	k.wantScan(0)
}

// start queues an attempt.
func (k *keeper) start(s *Start) {
	if s == nil || s.Token == "" || len(s.Argv) == 0 || s.Dir == "" || k.attempts[s.Token] != nil {
		k.refuse("a start without token, command or directory, or of a token that runs")
		return
	}
	if k.orphaned {
		return
	}
	a := &attempt{Start: *s, termed: make(map[procKey]struct{}), strays: make(map[procKey]struct{})}
	a.deadline.Store(int64(s.Fence))
	k.attempts[s.Token] = a
	k.queue = append(k.queue, a)
}

// end begins the end of an attempt; grace 0 is KILL at once.
func (k *keeper) end(a *attempt, cause Cause, grace time.Duration) {
	a.end(cause, Now().Add(max(0, grace)))
	k.wantScan(0)
}

// feed gives the forker its next attempt. Those that were ended meanwhile, or
// whose fence has passed, are never started.
func (k *keeper) feed() {
	for k.forking == nil && len(k.queue) > 0 {
		a := k.queue[0]
		k.queue = k.queue[1:]
		if a.phase != running {
			k.unborn(a, a.unstarted())
			continue
		}
		k.forking, k.forkTicks = a, uint64(Now())/tickNanos
		k.forkNext <- a
	}
}

// born takes the forker's answer.
func (k *keeper) born(b birth) {
	a := b.attempt
	k.forking = nil
	if b.err != nil {
		if errors.Is(b.err, errFenced) {
			a.end(CauseFenced, Now())
		}
		k.unborn(a, b.err)
		return
	}
	a.pid, a.ticks, a.capture = b.pid, b.ticks, b.capture
	a.started, a.wallAt = Now(), time.Now().UTC()
	go func() {
		a.capture.run()
		k.captured <- a
	}()
	k.out.send(Frame{Op: OpStarted, Token: a.Token, Pid: a.pid})
	if err := unix.Waitid(unix.P_PID, a.pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); errors.Is(err, unix.ECHILD) {
		// It was killed in the instant before it made its session, and taken
		// for an orphan: its status is lost, but known.
		k.mourn(a, unix.WaitStatus(unix.SIGKILL), a.started)
	}
	if a.phase != running {
		k.wantScan(0)
	}
}

// unborn reports an attempt that never ran.
func (k *keeper) unborn(a *attempt, err error) {
	a.endedAt, a.ended = time.Now().UTC(), Now()
	e := a.report()
	e.StartError, e.ExitCode = err.Error(), 0
	k.tell(a, e)
}

// tell closes an attempt: first on disk, for a successor, then to the agent.
func (k *keeper) tell(a *attempt, e *Ended) {
	if err := writeJSON(filepath.Join(a.Dir, "end.json"), e); err != nil && e.LogError == "" {
		e.LogError = err.Error()
	}
	k.out.send(Frame{Op: OpEnded, Ended: e})
	delete(k.attempts, a.Token)
}

// settleEnd takes an attempt whose processes are gone through its last steps.
func (k *keeper) settleEnd(a *attempt) {
	switch {
	case !a.reaped || !a.empty:
	case !a.drained:
		a.capture.finish()
	default:
		a.capture.tape.close(a.note())
		k.tell(a, a.report())
	}
}
