package etcd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockName is the file in the data directory that a running member holds. etcd
// itself would wait for its own lock without end and without a word.
const lockName = "writ.lock"

// dirLock holds a data directory for as long as it is open; the kernel releases
// it with the process, however the process ends.
type dirLock struct {
	file *os.File
}

// lockDir makes the directory where it is missing and locks it.
func lockDir(dir string) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory %s: %w (hint: choose a directory that this user may write)", dir, err)
	}
	path := filepath.Join(dir, lockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock in data directory %s: %w (hint: choose a directory that this user may write)", dir, err)
	}
	if err := flock(file); err != nil {
		holder := holderOf(file)
		return nil, errors.Join(lockError(dir, holder, err), file.Close())
	}
	if err := probeForeign(dir); err != nil {
		return nil, errors.Join(lockError(dir, "an etcd that writ did not start", err), file.Close())
	}
	if err := writeHolder(file); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock in data directory %s: %w (hint: is the disk full?)", dir, err), file.Close())
	}
	return &dirLock{file: file}, nil
}

// lockError tells a directory in use from every other failure to lock it.
func lockError(dir, holder string, err error) error {
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("data directory %s: %w by %s (hint: stop that server, or give this one a directory of its own)", dir, ErrDirInUse, holder)
	}
	return fmt.Errorf("lock data directory %s: %w", dir, err)
}

// release gives the directory up. The file stays: removing it would let two
// later processes lock two different files of one name.
func (l *dirLock) release() error {
	return l.file.Close()
}

// probeForeign refuses a directory whose database a plain etcd holds open.
func probeForeign(dir string) error {
	db, err := os.OpenFile(filepath.Join(dir, "member", "snap", "db"), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(flock(db), db.Close())
}

// flock takes the exclusive lock of an open file, or fails at once.
func flock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// holderOf names the process that wrote the lock file.
func holderOf(file *os.File) string {
	text, err := io.ReadAll(io.LimitReader(file, 32))
	pid, numErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || numErr != nil {
		return "another process"
	}
	return fmt.Sprintf("process %d", pid)
}

// writeHolder leaves this process's number in the lock file.
func writeHolder(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}
