package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-sched/writ/internal/keeper"
)

// Chunk is a piece of a log. A log is the bytes that an attempt wrote to its
// standard output and error, in the order in which it wrote them, unchanged;
// of a long one the middle is left out.
type Chunk struct {
	Offset   int64  // of the first byte of Data in the output
	LeftOut  int64  // bytes between the offset that was asked for and Offset that are not kept
	Data     []byte // may be empty
	Next     int64  // the offset to ask for next
	Complete bool   // nothing follows Next, ever
	Note     string // with Complete: why the log ends there, or empty
}

// LeftOutLine is the line that stands for bytes left out, for people.
func LeftOutLine(n int64) string { return fmt.Sprintf("\n[writ: %d bytes left out]\n", n) }

// ReadLog reads at most limit bytes of a log from the offset on, while it is
// written or after. The error wraps fs.ErrNotExist where there is no such log.
// The log's directory is listed each time, so it should hold the logs of one
// run or task, not all.
func ReadLog(path string, offset int64, limit int) (Chunk, error) {
	const tries = 8 // a segment may be dropped between the listing and the reading
	for range tries {
		c, err := readLog(path, max(0, offset), limit)
		if !errors.Is(err, errDropped) {
			if err != nil {
				return c, fmt.Errorf("read log: %w", err)
			}
			return c, nil
		}
	}
	return Chunk{}, fmt.Errorf("read log: %w", errDropped)
}

var errDropped = errors.New("its segments are dropped faster than they can be read")

func readLog(path string, offset int64, limit int) (Chunk, error) {
	var end keeper.LogEnd
	// First: what is complete now is complete in the listing that follows.
	complete, err := keeper.ReadJSON(keeper.EndName(path), &end)
	if err != nil {
		return Chunk{}, err
	}
	starts, err := segments(path)
	if err != nil {
		return Chunk{}, err
	}
	c := Chunk{Offset: offset}
	for i, start := range starts {
		last := i == len(starts)-1
		if !last && starts[i+1] <= offset {
			continue
		}
		if start > c.Offset {
			c.LeftOut, c.Offset = start-c.Offset, start
		}
		data, err := readSegment(keeper.SegmentName(path, start), c.Offset-start, limit)
		if errors.Is(err, fs.ErrNotExist) && start != 0 {
			return Chunk{}, errDropped
		}
		if err != nil {
			return Chunk{}, err
		}
		if len(data) > 0 || last {
			c.Data = data
			break
		}
	}
	c.Next = c.Offset + int64(len(c.Data))
	if complete && (c.Next >= end.Bytes || len(c.Data) == 0 && limit > 0) {
		c.Complete, c.Note = true, end.Note
		c.LeftOut += max(0, end.Bytes-c.Next) // a full disk ended the log early
	}
	return c, nil
}

// segments returns the offsets at which the segments on disk begin, ascending.
func segments(path string) ([]int64, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var starts []int64
	name := filepath.Base(path)
	for _, e := range entries {
		if e.Name() == name {
			starts = append(starts, 0)
			continue
		}
		digits, ok := strings.CutPrefix(e.Name(), name+".")
		if !ok || len(digits) < 16 {
			continue
		}
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n > 0 {
			starts = append(starts, n)
		}
	}
	if len(starts) == 0 {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	slices.Sort(starts)
	return starts, nil
}

func readSegment(name string, at int64, limit int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.NewSectionReader(f, at, int64(max(0, limit))))
	if err != nil {
		return nil, err
	}
	return data, nil
}

const (
	// FollowChunk is how many bytes FollowLog reads at a time.
	FollowChunk = 64 << 10
	followEvery = 100 * time.Millisecond
)

// FollowLog calls emit with each piece of a log from the offset on, as it is
// written, until emit was given the one that is Complete, emit returns an
// error, or ctx ends; it returns that error. It looks ten times a second.
func FollowLog(ctx context.Context, path string, offset int64, emit func(Chunk) error) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		c, err := ReadLog(path, offset, FollowChunk)
		if err != nil {
			return err
		}
		if len(c.Data) > 0 || c.LeftOut > 0 || c.Complete {
			if err := emit(c); err != nil {
				return err
			}
		}
		offset = c.Next
		if c.Complete {
			return nil
		}
		if len(c.Data) == FollowChunk {
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("follow log: %w", context.Cause(ctx))
		}
	}
}

// closeLog ends a log whose keeper did not.
func closeLog(path, note string) error {
	starts, err := segments(path)
	if err != nil {
		return err
	}
	last := starts[len(starts)-1]
	fi, err := os.Stat(keeper.SegmentName(path, last))
	if err != nil {
		return err
	}
	return keeper.CloseLog(path, keeper.LogEnd{Bytes: last + fi.Size(), Note: note})
}

// RemoveLog removes a log with all of its files; it is no error when there is
// none.
func RemoveLog(path string) error {
	starts, err := segments(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove log: %w", err)
	}
	names := []string{keeper.EndName(path)}
	for _, s := range starts {
		names = append(names, keeper.SegmentName(path, s))
	}
	for _, n := range names {
		if err := os.Remove(n); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove log: %w", err)
		}
	}
	return nil
}
