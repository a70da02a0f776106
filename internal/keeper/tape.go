package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// tape writes the output of one attempt to disk within a bound. The first
// head bytes go to the file at path. What follows goes to segments of tail
// bytes each, of which the last two are kept, so that at least the last tail
// bytes and at most head + 2*tail are on disk. A segment's name is the log's
// with the offset of its first byte behind it, so every file is plain output
// and `cat` over them in the order of their names is the log with its gap.
//
// A tape that cannot write (a full disk) goes on counting and drops the bytes:
// the task must not block or die for its log. The first error is kept.
type tape struct {
	path       string // empty: count only
	head, tail int64

	f       *os.File
	room    int64    // bytes that the current segment still takes
	kept    []string // tail segments on disk, oldest first
	written int64    // bytes of output so far, kept or not
	err     error
}

// SegmentName is the file that holds a log from the offset on; the first
// segment bears the log's own name.
func SegmentName(log string, offset int64) string {
	if offset == 0 {
		return log
	}
	return fmt.Sprintf("%s.%016d", log, offset)
}

// EndName is the file that says that a log is complete; it holds a [LogEnd].
func EndName(log string) string { return log + ".end" }

// LogEnd closes a log.
type LogEnd struct {
	Bytes int64  `json:"bytes"`          // of output, kept or not
	Note  string `json:"note,omitempty"` // for people: why it ends where it ends
}

// open makes the first segment, so that a log exists from the start on.
func (t *tape) open() error {
	if t.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(t.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	t.f, t.room = f, t.head
	return nil
}

// write appends p.
func (t *tape) write(p []byte) {
	for len(p) > 0 {
		if t.room == 0 && t.f != nil && t.err == nil {
			t.err = t.turn()
		}
		n := len(p)
		if t.f != nil && t.err == nil {
			n = int(min(int64(len(p)), t.room))
			var done int
			done, t.err = t.f.Write(p[:n])
			t.room -= int64(done)
		}
		t.written += int64(n)
		p = p[n:]
	}
}

// turn goes on to the next segment and drops the one before the last.
func (t *tape) turn() error {
	name := SegmentName(t.path, t.written)
	next, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	err = t.f.Close()
	t.f, t.room = next, t.tail
	t.kept = append(t.kept, name)
	if len(t.kept) > 2 {
		err = errors.Join(err, os.Remove(t.kept[0]))
		t.kept = t.kept[1:]
	}
	return err
}

// close ends the log.
func (t *tape) close(note string) {
	if t.f == nil {
		return
	}
	if t.err != nil {
		note += fmt.Sprintf(" (output was lost: %v)", t.err)
	}
	err := t.f.Close()
	t.f = nil
	t.err = errors.Join(t.err, err, CloseLog(t.path, LogEnd{Bytes: t.written, Note: note}))
}

// CloseLog writes the record that a log is complete.
func CloseLog(log string, end LogEnd) error { return writeJSON(EndName(log), end) }

// writeJSON replaces a file in one step. It does not sync: what it writes must
// survive processes, not the host, since after a reboot nothing lives.
func writeJSON(path string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(body, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// ReadJSON reads a file that the keeper wrote; false means that there is none.
func ReadJSON(path string, v any) (bool, error) {
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return false, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return true, nil
}
