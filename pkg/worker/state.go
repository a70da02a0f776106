package worker

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// state is the worker's directory: its lock, its identity, its outbox. Without
// a directory the identity is new each time and the outbox is empty.
//
//	lock            held while the worker lives
//	session.json    the directory's id and how many sessions it has had
//	outbox/<token>  a report that was not answered
type state struct {
	dir     string
	lock    *os.File
	before  identity // with the sessions before this one
	session string   // set by begin
}

// identity is what session.json holds.
type identity struct {
	Directory string `json:"directory"`
	Sessions  int    `json:"sessions"` // how many there have been
	// Processes says that the last of them could run processes, which may have
	// outlived it.
	Processes bool `json:"processes,omitempty"`
}

// name is that of the last session; empty where there was none.
func (i identity) name() string {
	if i.Sessions == 0 {
		return ""
	}
	return i.Directory + "-" + strconv.Itoa(i.Sessions)
}

// openState locks the directory and reads who it is.
func openState(dir string) (*state, error) {
	if dir == "" {
		return &state{before: identity{Directory: random()}}, nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "outbox"), 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("state directory %s: %w (hint: another worker runs on it; each needs its own)", dir, ErrInUse), lock.Close())
	}
	s := &state{dir: dir, lock: lock}
	if s.before, err = readIdentity(s.identityPath()); err != nil {
		return nil, errors.Join(fmt.Errorf("state directory: %w", err), lock.Close())
	}
	return s, nil
}

func (s *state) identityPath() string { return filepath.Join(s.dir, "session.json") }

// readIdentity reads what begin wrote; where nobody did, the directory is new.
func readIdentity(path string) (identity, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return identity{Directory: random()}, nil
	}
	if err != nil {
		return identity{}, err
	}
	var id identity
	if err := json.Unmarshal(text, &id); err != nil || id.Directory == "" || id.Sessions < 1 {
		return identity{}, fmt.Errorf("%s is broken: %q (hint: with a new directory the worker waits until its old session's lease is gone)", path, text)
	}
	return id, nil
}

// begin counts a session. The count is on disk before the session is used, so
// that no two lives of the directory share one.
func (s *state) begin(processes bool) error {
	next := identity{Directory: s.before.Directory, Sessions: s.before.Sessions + 1, Processes: processes}
	s.session = next.name()
	if s.dir == "" {
		return nil
	}
	text, err := json.Marshal(next)
	if err == nil {
		err = writeDurably(s.identityPath(), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return nil
}

func (s *state) close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}

func (s *state) path(token string) string { return filepath.Join(s.dir, "outbox", token) }

// keep puts a report where it survives the process and the machine.
func (s *state) keep(f *writv1.Finished) error {
	if s.dir == "" {
		return nil
	}
	text, err := proto.Marshal(f)
	if err != nil {
		return fmt.Errorf("keep the report of %s: %w", f.GetToken(), err)
	}
	return writeDurably(s.path(f.GetToken()), text)
}

// drop removes a report that was answered.
func (s *state) drop(token string) error {
	if s.dir == "" {
		return nil
	}
	if err := os.Remove(s.path(token)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop the report of %s: %w", token, err)
	}
	return nil
}

// kept reads every report that was not answered. One that cannot be read is an
// error: its session must not be attested before it was delivered.
func (s *state) kept() ([]*writv1.Finished, error) {
	if s.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, "outbox"))
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	var list []*writv1.Finished
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), partSuffix) {
			continue // it was never sent, and its attempt will be found by Prepare
		}
		text, err := os.ReadFile(s.path(e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		f := &writv1.Finished{}
		if err := proto.Unmarshal(text, f); err != nil || f.GetToken() != e.Name() {
			return nil, fmt.Errorf("read the outbox: %s is broken (hint: the report is lost; remove the file to go on)", s.path(e.Name()))
		}
		list = append(list, f)
	}
	return list, nil
}

const partSuffix = ".part"

// writeDurably replaces a file in one step that survives a power cut.
func writeDurably(path string, text []byte) error {
	f, err := os.OpenFile(path+partSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(path+partSuffix, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// random is the id of a directory: 60 bits are enough to tell directories
// apart, and none is ever guessed for gain.
func random() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // it never fails, see crypto/rand
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))[:12]
}
