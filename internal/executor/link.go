package executor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-sched/writ/internal/keeper"
)

// link is the connection to one keeper, for its life.
type link struct {
	conn net.Conn
	out  chan []byte   // 64 frames; full: the sender waits, while its context allows
	gone chan struct{} // closed when the keeper is given up
}

// send queues a frame; false means that it was not.
func (l *link) send(ctx context.Context, frame []byte) bool {
	select {
	case l.out <- frame:
		return true
	case <-l.gone:
		return false
	case <-ctx.Done():
		return false
	}
}

// write sends what is queued until the link is given up.
func (l *link) write() {
	for {
		select {
		case frame := <-l.out:
			if _, err := l.conn.Write(frame); err != nil {
				return // the reader sees the same end
			}
		case <-l.gone:
			return
		}
	}
}

// runKeeper starts a keeper and serves it until it ends or ctx does. When it
// returns, the keeper is gone. hello says whether it ever spoke.
func (x *Executor) runKeeper(ctx context.Context, state *stateRecord, id keeper.StateID) (hello bool, err error) {
	cmd, conn, err := x.spawn(id)
	if err != nil {
		return false, err
	}
	l := &link{conn: conn, out: make(chan []byte, 64), gone: make(chan struct{})}
	events := make(chan keeper.Frame)
	readErr := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(l.write)
	wg.Go(func() { readErr <- read(conn, events, l.gone) })
	state.Keeper = keeper.Birth{Pid: cmd.Process.Pid, Ticks: keeper.StartTicks(cmd.Process.Pid)}
	if err = saveState(x.cfg.StateDir, *state); err == nil {
		hello, err = x.serve(ctx, l, events, readErr)
	}
	x.setLink(nil)
	close(l.gone)
	// The end of the socket is what ends everything; a keeper that cannot see
	// it is killed, and its children with it.
	err = errors.Join(err, conn.Close())
	wg.Wait()
	limit := keeperLimit
	if errors.Is(err, errSilent) || errors.Is(err, errSpeech) {
		limit = 0
	}
	return hello, errors.Join(err, bury(cmd, limit))
}

// keeperLimit is what a keeper gets to end everything and itself.
const keeperLimit = 10 * time.Second

// bury waits for the keeper, and kills it where it takes too long.
func bury(cmd *exec.Cmd, limit time.Duration) error {
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	return nil
}

// spawn executes the program as a keeper, with a socket between.
func (x *Executor) spawn(id keeper.StateID) (*exec.Cmd, net.Conn, error) {
	fd, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make the socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fd[0]), "keeper"), os.NewFile(uintptr(fd[1]), "agent")
	defer ours.Close()   //nolint:errcheck // net.FileConn holds a copy
	defer theirs.Close() //nolint:errcheck // the keeper holds a copy
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, fmt.Errorf("make the socket: %w", err)
	}
	cmd := &exec.Cmd{
		Path: x.cfg.Executable, Args: keeper.Args(id), Env: Environ(os.Environ(), nil, nil),
		Stderr: os.Stderr, ExtraFiles: []*os.File{theirs}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return cmd, conn, nil
}

// read passes the keeper's frames on.
func read(conn net.Conn, events chan<- keeper.Frame, gone <-chan struct{}) error {
	for {
		f, err := keeper.ReadFrame(conn)
		if err != nil {
			return err
		}
		select {
		case events <- f:
		case <-gone:
			return nil
		}
	}
}

var (
	errSilent = errors.New("the keeper does not answer")
	errSpeech = errors.New("the keeper said what it may not")
)

// serve acts on what the keeper says, and asks it whether it lives.
func (x *Executor) serve(ctx context.Context, l *link, events <-chan keeper.Frame, readErr <-chan error) (hello bool, err error) {
	tick := time.NewTicker(x.cfg.PingEvery)
	defer tick.Stop()
	var asked, answered uint64
	for {
		select {
		case <-ctx.Done():
			return hello, nil
		case err := <-readErr:
			if errors.Is(err, keeper.ErrFrame) {
				err = errors.Join(errSpeech, err)
			}
			return hello, fmt.Errorf("the keeper's socket ended: %w", err)
		case f := <-events:
			switch {
			case f.Op == keeper.OpHello && !hello:
				hello = true
				x.setLink(l)
			case f.Op == keeper.OpPong:
				answered = f.Seq
			default:
				if err := x.heard(f); err != nil {
					return hello, err
				}
			}
		case <-tick.C:
			if asked-answered >= uint64(x.cfg.PingsMissed) {
				return hello, errSilent
			}
			asked++
			ping, err := keeper.EncodeFrame(keeper.Frame{Op: keeper.OpPing, Seq: asked})
			if err != nil {
				return hello, err
			}
			select {
			case l.out <- ping:
			default: // the keeper does not read; the ping counts as unanswered
			}
		}
	}
}

// heard acts on one frame about an attempt.
func (x *Executor) heard(f keeper.Frame) error {
	switch {
	case f.Op == keeper.OpStarted:
		if p := x.process(f.Token); p != nil {
			p.setStarted(f.Pid)
		}
	case f.Op == keeper.OpEnded && f.Ended != nil:
		if p := x.process(f.Ended.Token); p != nil {
			x.drop(p, resultOf(f.Ended))
		}
	case f.Op == keeper.OpRefused:
		return fmt.Errorf("the keeper refused: %s", f.Text)
	default:
		return fmt.Errorf("%w: %q", errSpeech, f.Op)
	}
	return nil
}
