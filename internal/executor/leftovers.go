package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-sched/writ/internal/keeper"
)

// Leftover is one attempt that an earlier agent of the state directory
// started and nobody has forgotten yet.
type Leftover struct {
	Token string
	Ref   string
	// Result is how it ended. Lost means that nobody saw its end: the keeper
	// or the host died too. An end that the keeper saw while or after the
	// agent was gone is here as it was, exit code 0 included.
	Result Result
}

// Leftovers is what EndLeftovers found. Every process of every attempt in it
// is dead.
type Leftovers struct {
	Attempts []Leftover
	Killed   int  // processes that had to be ended here
	Rebooted bool // the host booted since, so nothing could live
}

// ErrInside says that the caller runs inside an attempt of the very state
// directory whose leftovers it wants to end.
var ErrInside = errors.New("this process itself belongs to an attempt of the state directory")

// EndLeftovers ends every process that earlier agents of a state directory
// left, waits until none lives, and says what became of their attempts. Only
// its success makes an attestation of death true. The caller holds the lock of
// the directory and runs no Executor on it. The attempts stay on disk until
// the caller has put their results where they cannot be lost, and calls
// Forget.
func EndLeftovers(ctx context.Context, stateDir string) (Leftovers, error) {
	left, err := endLeftovers(ctx, stateDir)
	if err != nil {
		return Leftovers{}, fmt.Errorf("end the leftovers in %s: %w", stateDir, err)
	}
	return left, nil
}

func endLeftovers(ctx context.Context, dir string) (Leftovers, error) {
	var left Leftovers
	boot, err := keeper.BootID()
	if err != nil {
		return left, err
	}
	rec, id, err := loadState(dir)
	if err != nil {
		return left, err
	}
	if keeper.Inside(id) {
		return left, ErrInside
	}
	left.Rebooted = rec.Boot != "" && rec.Boot != boot
	if !left.Rebooted {
		if err := awaitKeeper(ctx, rec.Keeper); err != nil {
			return left, err
		}
	}
	records, births, err := attemptRecords(dir, boot)
	if err != nil {
		return left, err
	}
	if left.Killed, err = keeper.Sweep(ctx, id, births); err != nil {
		return left, err
	}
	for _, r := range records {
		p := &Process{Token: r.Token, log: r.Log}
		left.Attempts = append(left.Attempts, Leftover{Token: r.Token, Ref: r.Ref, Result: lastWord(dir, p, "ended by writ: its worker died")})
	}
	return left, nil
}

// attemptRecords reads what was started, and the births of this boot.
func attemptRecords(dir, boot string) ([]attemptRecord, []keeper.Birth, error) {
	entries, err := os.ReadDir(filepath.Join(dir, attemptsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	var records []attemptRecord
	var births []keeper.Birth
	for _, e := range entries {
		path := AttemptDir(dir, e.Name())
		rec := attemptRecord{Boot: boot}
		if _, err := keeper.ReadJSON(filepath.Join(path, recordName), &rec); err != nil || rec.Token != e.Name() {
			// The agent died between making the directory and writing into it:
			// nothing was asked of the keeper, but the token may not start again.
			rec.Token = e.Name()
		}
		records = append(records, rec)
		var b keeper.Birth
		if found, err := keeper.ReadJSON(filepath.Join(path, birthName), &b); err == nil && found && rec.Boot == boot {
			births = append(births, b)
		}
	}
	return records, births, nil
}

// awaitKeeper lets an orphaned keeper end its attempts by itself, so that it
// can say how they ended. The sweep ends it where it takes too long.
func awaitKeeper(ctx context.Context, b keeper.Birth) error {
	if b.Pid == 0 || b.Ticks == 0 || keeper.StartTicks(b.Pid) != b.Ticks {
		return nil
	}
	fd, err := unix.PidfdOpen(b.Pid, 0)
	if err != nil {
		return nil // gone, or a kernel without: the sweep decides
	}
	defer unix.Close(fd)
	if keeper.StartTicks(b.Pid) != b.Ticks {
		return nil
	}
	for end := time.Now().Add(keeperLimit); time.Now().Before(end); {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 50)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for the earlier keeper: %w", err)
		}
		if n > 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the earlier keeper: %w", context.Cause(ctx))
		}
	}
	return nil
}

// lastWord is the result of an attempt whose keeper is gone: what it put on
// disk before, or Lost. A log that has no end gets one, with the note.
func lastWord(dir string, p *Process, note string) Result {
	var e keeper.Ended
	found, err := keeper.ReadJSON(filepath.Join(AttemptDir(dir, p.Token), endName), &e)
	if found && err == nil {
		return resultOf(&e)
	}
	r := Result{Lost: true, EndedAt: time.Now().UTC(), Ended: Now()}
	if p.log != "" {
		if err := closeLog(p.log, note); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.LogError = err.Error()
		}
	}
	return r
}
