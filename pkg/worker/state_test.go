package worker_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/pkg/worker"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func TestOneStateDirectoryHasOneWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := handlers(func(context.Context, *worker.Task) (any, error) { return nil, nil })
		c.StateDir = t.TempDir()
		attend(t, c)
		require.ErrorIs(t, start(t, c, newServer(t)).end(), worker.ErrInUse)
	})
}

func TestABrokenStateDirectoryIsNotTakenForANewOne(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"session.json": "{", "outbox/aa": "not a report"} {
		synctest.Test(t, func(t *testing.T) {
			c := handlers(func(context.Context, *worker.Task) (any, error) { return nil, nil })
			c.StateDir = t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(c.StateDir, "outbox"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(c.StateDir, name), []byte(text), 0o600))
			err := start(t, c, newServer(t)).end()
			require.ErrorContains(t, err, filepath.Join(c.StateDir, name))
			require.ErrorContains(t, err, "hint")
		})
	}
}

func TestAReportThatWasNotWrittenToItsEndIsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := handlers(func(context.Context, *worker.Task) (any, error) { return nil, nil })
		c.StateDir = t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(c.StateDir, "outbox"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(c.StateDir, "outbox", "aa.part"), []byte("half"), 0o600))
		h := attend(t, c)
		require.Zero(t, h.hello.GetUnsettled())
	})
}

func TestTheOutboxHoldsAReportUntilItsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := handlers(func(context.Context, *worker.Task) (any, error) { return nil, nil })
		c.StateDir = t.TempDir()
		h := attend(t, c)
		h.assign("aa", &writv1.Task{Handler: "h", Idempotent: true})
		h.finished(t)
		path := filepath.Join(c.StateDir, "outbox", "aa")
		require.FileExists(t, path)
		h.accept("aa")
		h.stop()
		require.NoError(t, h.end())
		require.NoFileExists(t, path)
	})
}
