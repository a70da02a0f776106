package etcd

import (
	"fmt"
	"runtime"

	"go.uber.org/zap/zapcore"
)

// fatalHook stands where etcd's logger would call os.Exit or panic: it ends the
// calling goroutine, which never comes back from the call, as etcd expects, and
// hands the reason to Run. The first reason counts.
type fatalHook struct {
	reason chan error
}

func newFatalHook() *fatalHook {
	return &fatalHook{reason: make(chan error, 1)}
}

// OnWrite is called by zap after the entry was logged.
func (h *fatalHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := fmt.Errorf("%w: %s", ErrFatal, entry.Message)
	for _, field := range fields {
		if cause, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			err = fmt.Errorf("%w: %w", err, cause)
			break
		}
	}
	select {
	case h.reason <- err:
	default:
	}
	runtime.Goexit()
}
