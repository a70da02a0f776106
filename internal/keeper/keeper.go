package keeper

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"
)

// Args are the arguments, name included, with which the agent executes the one
// binary as the keeper of a state directory.
func Args(state StateID) []string { return []string{Argv0, state.String()} }

// Invoked says whether a process with these arguments is meant to be a keeper.
// main asks it before anything else.
func Invoked(args []string) bool { return len(args) > 0 && args[0] == Argv0 }

// Main is the whole life of a keeper and returns its exit code: 0 when the
// agent closed its socket and everything has been ended, 2 when the agent (or
// a person who started a keeper by hand) does not speak the protocol. It must
// be called once, from the main goroutine.
func Main(args []string) int {
	runtime.LockOSThread() // forks happen here: the parent death signal follows this thread
	code, err := serve(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "writ keeper: %v\n", err)
	}
	return code
}

func serve(args []string) (int, error) {
	if len(args) != 2 {
		return 2, errors.New("started by hand; a worker's agent starts it")
	}
	state, err := ParseStateID(args[1])
	if err != nil {
		return 2, err
	}
	k := &keeper{
		state:    state,
		frames:   make(chan incoming),
		forkNext: make(chan *attempt, 1),
		forked:   make(chan birth, 1),
		captured: make(chan *attempt, 16),
		child:    make(chan os.Signal, 1),
		rang:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		attempts: make(map[string]*attempt),
	}
	conn, err := k.settle()
	if err != nil {
		return 2, err
	}
	k.out = newOutbox(conn)
	go k.read(conn)
	go k.loop()
	for {
		select {
		case a := <-k.forkNext:
			k.forked <- k.fork(a)
		case <-k.done:
			return k.code, nil
		}
	}
}

// settle makes this process what a keeper has to be, before it speaks.
func (k *keeper) settle() (net.Conn, error) {
	unix.CloseOnExec(SocketFD)
	f := os.NewFile(SocketFD, "agent")
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("file descriptor %d is no socket to an agent: %w", SocketFD, err)
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	// Caught, not ignored: an ignored signal would stay ignored in every task.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGALRM,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	signal.Notify(k.child, unix.SIGCHLD)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the subreaper: %w", err)
	}
	k.marks = setMark(k.state.Mark(0)) == nil
	if k.null, err = os.OpenFile(os.DevNull, os.O_RDONLY, 0); err != nil {
		return nil, err
	}
	if k.alarm, err = newAlarm(k.rang); err != nil {
		return nil, err
	}
	return conn, nil
}

// incoming is what the reader passes on: a frame, or why there are no more.
type incoming struct {
	frame Frame
	err   error
}

// read passes frames on until the socket ends.
func (k *keeper) read(r io.Reader) {
	for {
		f, err := ReadFrame(r)
		select {
		case k.frames <- incoming{f, err}:
		case <-k.done:
			return
		}
		if err != nil {
			return
		}
	}
}
