package executor

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/writ-sched/writ/internal/keeper"
)

const (
	stateName    = "executor.json"
	attemptsName = "attempts"
	recordName   = "attempt.json"
	birthName    = "pid.json"
	endName      = "end.json"
	resultName   = "result"
	inputsName   = "inputs.json"
)

// stateRecord is executor.json.
type stateRecord struct {
	ID     string       `json:"id"`
	Keeper keeper.Birth `json:"keeper,omitzero"` // the last one started
	Boot   string       `json:"boot,omitempty"`  // under which it was
}

// attemptRecord is attempt.json.
type attemptRecord struct {
	Token string `json:"token"`
	Ref   string `json:"ref"`
	Boot  string `json:"boot"`
	Log   string `json:"log,omitempty"`
}

// loadState reads a directory's record, or makes one with a new id.
func loadState(dir string) (stateRecord, keeper.StateID, error) {
	var rec stateRecord
	found, err := keeper.ReadJSON(filepath.Join(dir, stateName), &rec)
	if err != nil {
		return rec, 0, fmt.Errorf("state directory %s: %w", dir, err)
	}
	if found {
		id, err := keeper.ParseStateID(rec.ID)
		if err != nil {
			return rec, 0, fmt.Errorf("state directory %s: %s: %w", dir, stateName, err)
		}
		return rec, id, nil
	}
	if err := os.MkdirAll(filepath.Join(dir, attemptsName), 0o755); err != nil {
		return rec, 0, fmt.Errorf("state directory: %w", err)
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails, see crypto/rand
	id := keeper.StateID(max(1, binary.BigEndian.Uint32(b[:])>>1))
	rec.ID = id.String()
	return rec, id, saveState(dir, rec)
}

// saveState writes the record so that it survives the host.
func saveState(dir string, rec stateRecord) error {
	if err := writeDurably(filepath.Join(dir, stateName), rec); err != nil {
		return fmt.Errorf("state directory %s: %w", dir, err)
	}
	return nil
}

// writeDurably replaces a file by the JSON of v, synced.
func writeDurably(path string, v any) (err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(body, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// AttemptDir is where an attempt of a state directory keeps its files.
func AttemptDir(stateDir, token string) string {
	return filepath.Join(stateDir, attemptsName, token)
}

// ResultPath is the file in which an attempt's task leaves its JSON result.
func ResultPath(stateDir, token string) string {
	return filepath.Join(AttemptDir(stateDir, token), resultName)
}

// InputsPath is the file with the output directories of an attempt's upstream
// tasks.
func InputsPath(stateDir, token string) string {
	return filepath.Join(AttemptDir(stateDir, token), inputsName)
}

// checkToken refuses what could not be the name of one directory.
func checkToken(token string) error {
	if token == "" || len(token) > 128 || strings.ContainsAny(token, "/\x00") || token[0] == '.' {
		return fmt.Errorf("token %.140q: expected up to 128 characters without a slash or a leading dot", token)
	}
	return nil
}

// makeAttempt makes an attempt's directory, once.
func makeAttempt(stateDir string, spec *Spec, boot string) error {
	dir := AttemptDir(stateDir, spec.Token)
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return ErrStartedBefore
		}
		return err
	}
	rec := attemptRecord{Token: spec.Token, Ref: spec.Ref, Boot: boot, Log: spec.Log}
	body, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, recordName), body, 0o644); err != nil {
		return err
	}
	if spec.Inputs == nil {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, inputsName), spec.Inputs, 0o644)
}

// Forget removes the files of an attempt that has ended, its result with them;
// its log is not among them. The agent calls it when the attempt's end was
// answered. It is no error when there is nothing.
func Forget(stateDir, token string) error {
	if err := checkToken(token); err != nil {
		return fmt.Errorf("forget attempt: %w", err)
	}
	if err := os.RemoveAll(AttemptDir(stateDir, token)); err != nil {
		return fmt.Errorf("forget attempt %s: %w", token, err)
	}
	return nil
}
