package keeper

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// capture moves what an attempt writes from its pipe onto its tape, with one
// buffer of chunk bytes whatever the amount.
type capture struct {
	r    *os.File // read end, non-blocking
	tape tape
}

const (
	chunk = 32 << 10
	// lastWords bounds what is drained after the processes are dead. A pipe
	// holds 64 KiB unless it was made larger, up to 1 MiB by default; a
	// process outside the tree that holds the pipe cannot keep us here.
	lastWords = 2 << 20
)

// run copies until every writer has closed the pipe or finish was called, then
// drains what the pipe still holds and closes it.
func (c *capture) run() {
	buf := make([]byte, chunk)
	for {
		n, err := c.r.Read(buf)
		c.tape.write(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.drain(buf)
			break
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.tape.err = errors.Join(c.tape.err, err)
			}
			break
		}
	}
	c.tape.err = errors.Join(c.tape.err, c.r.Close())
}

// finish makes run return soon; it may be called more than once, and after run
// has returned.
func (c *capture) finish() {
	// The error says that run has closed the file already.
	_ = c.r.SetReadDeadline(time.Unix(1, 0))
}

// drain reads without waiting.
func (c *capture) drain(buf []byte) {
	if err := c.r.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	raw, err := c.r.SyscallConn()
	if err != nil {
		return
	}
	left := lastWords
	err = raw.Read(func(fd uintptr) bool {
		for left > 0 {
			n, err := unix.Read(int(fd), buf)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n <= 0 {
				break
			}
			c.tape.write(buf[:n])
			left -= n
		}
		return true
	})
	if err != nil && c.tape.err == nil {
		c.tape.err = err
	}
}

// newPipe returns a pipe of which the read end can be waited for and the write
// end is a plain blocking one, as programs expect of their output. Neither is
// inherited by accident.
func newPipe() (r, w *os.File, err error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fd[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd[0]), unix.Close(fd[1]))
	}
	return os.NewFile(uintptr(fd[0]), "output"), os.NewFile(uintptr(fd[1]), "output"), nil
}
