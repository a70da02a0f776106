package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Outputs is the directory that all workers of a workflow share. Each attempt
// has one of its own in it: <run>/<task>/<attempt>.
type Outputs struct {
	// Dir is absolute. It is made where it does not exist.
	Dir string
}

// Path is the output directory of an attempt; task is the name with its
// instance. It touches no file.
func (o Outputs) Path(run, task string, attempt int) string {
	return filepath.Join(o.Dir, run, task, strconv.Itoa(attempt))
}

// Make creates the output directory of an attempt and returns its path. A
// directory with something in it is refused: an attempt is started once, so
// what lies there is another cluster's, and would be published as this
// attempt's.
func (o Outputs) Make(run, task string, attempt int) (string, error) {
	rel, err := o.make(run, task, attempt)
	if err != nil {
		return "", fmt.Errorf("output directory of %s/%s/%d: %w", run, task, attempt, err)
	}
	return filepath.Join(o.Dir, rel), nil
}

func (o Outputs) make(run, task string, attempt int) (rel string, err error) {
	for _, part := range []string{run, task} {
		if part == "" || part[0] == '.' || strings.ContainsAny(part, "/\x00") {
			return "", fmt.Errorf("%q is not the name of one directory", part)
		}
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(o.Dir) // a symbolic link out of the directory is refused
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // only read
	rel = filepath.Join(run, task, strconv.Itoa(attempt))
	if err := root.MkdirAll(rel, 0o755); err != nil {
		return "", err
	}
	dir, err := root.Open(rel)
	if err != nil {
		return "", err
	}
	defer dir.Close() //nolint:errcheck // only read
	switch _, err := dir.Readdirnames(1); {
	case errors.Is(err, io.EOF):
		return rel, nil
	case err != nil:
		return "", err
	default:
		return "", fmt.Errorf("%s holds files already, of another cluster or of an earlier data directory; move them away",
			filepath.Join(o.Dir, rel))
	}
}

// MaxResult bounds a task's JSON result in bytes.
const MaxResult = 64 << 10

// ResultError says why a task's result cannot be taken; it is the task's
// fault, not the host's.
type ResultError struct {
	// Reason is a text for people, without the path.
	Reason string
}

// Error is the reason.
func (e *ResultError) Error() string { return "result " + e.Reason }

// ReadResult reads what a task left at WRIT_RESULT: nil where there is nothing
// or only white space. It never waits and follows no link: anything but a
// regular file of at most MaxResult bytes of JSON is a *ResultError. It is
// called after the attempt has ended.
func ReadResult(path string) (json.RawMessage, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, unix.ELOOP):
		return nil, &ResultError{"is a symbolic link, expected a regular file"}
	case errors.Is(err, unix.ENXIO):
		return nil, &ResultError{"is a socket or a device, expected a regular file"}
	case err != nil:
		return nil, fmt.Errorf("read the result: %w", err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() //nolint:errcheck // only read
	fi, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return nil, &ResultError{fmt.Sprintf("is not a regular file (%s)", fi.Mode().Type())}
	}
	if fi.Size() > MaxResult {
		return nil, &ResultError{fmt.Sprintf("has %d bytes, at most %d are allowed; put large things into WRIT_OUTPUT_DIR", fi.Size(), MaxResult)}
	}
	body, err := io.ReadAll(io.LimitReader(f, MaxResult))
	if err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil, nil
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, &ResultError{fmt.Sprintf("is not JSON: %v", err)}
	}
	return body, nil
}
