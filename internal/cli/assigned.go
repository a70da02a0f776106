package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/writ-sched/writ/internal/executor"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// assignedName is the directory, in a worker's state directory, of the
// attempts that were started and whose end was not answered yet. A worker that
// is started again reads there what the processes were that it finds ended.
const assignedName = "assigned"

func (p place) assignedPath(token string) string {
	return filepath.Join(p.state, assignedName, token)
}

// remember keeps an assignment until forget.
func (p place) remember(as *writv1.Assign) error {
	text, err := proto.Marshal(as)
	if err != nil {
		return fmt.Errorf("remember attempt %s: %w", refText(as.GetAttempt()), err)
	}
	if err := os.MkdirAll(filepath.Join(p.state, assignedName), 0o700); err != nil {
		return fmt.Errorf("remember attempt %s: %w", refText(as.GetAttempt()), err)
	}
	// A half-written file is read as none, and its attempt was not started.
	if err := os.WriteFile(p.assignedPath(as.GetToken()), text, 0o600); err != nil {
		return fmt.Errorf("remember attempt %s: %w", refText(as.GetAttempt()), err)
	}
	return nil
}

// recall returns what remember kept; nil where there is nothing of use.
func (p place) recall(token string) *writv1.Assign {
	text, err := os.ReadFile(p.assignedPath(token))
	as := &writv1.Assign{}
	if err != nil || proto.Unmarshal(text, as) != nil || as.GetToken() != token {
		return nil
	}
	return as
}

// forget removes everything of an attempt but its log and its outputs.
func (p place) forget(token string) error {
	err := executor.Forget(p.state, token)
	if removeErr := os.Remove(p.assignedPath(token)); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}
