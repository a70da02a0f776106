package view

import (
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// Debt says why a task whose latest row is terminal is owed a further attempt.
type Debt string

// The debts.
const (
	DebtNone Debt = ""
	// DebtRetry: a failure of the task's own, with retries left.
	DebtRetry Debt = "retry"
	// DebtLoss: the worker was lost, and the loss limit allows another.
	DebtLoss Debt = "loss"
	// DebtStop: the worker was told to stop; that spends nothing.
	DebtStop Debt = "stop"
	// DebtAbandon: the row was abandoned without its next one. The two are
	// written together, so only a broken store shows this.
	DebtAbandon Debt = "abandon"
)

// Owed says which further attempt the latest row of a task is owed. It reads
// the row and the spec alone, so that every replica agrees on it: until the
// next row is there, the task is not terminal for those below it.
func Owed(t *spec.Task, a record.Attempt) Debt {
	switch {
	case a.State == record.Abandoned:
		return DebtAbandon
	case a.State != record.Failed:
		return DebtNone
	case a.Cause.Code == record.CauseWorkerStopped:
		return DebtStop
	case a.Cause.Code == record.CauseLossLimit:
		return DebtNone
	case a.Cause.Code.Loss():
		if a.Losses >= t.Losses() || !mayRepeat(a) {
			return DebtNone
		}
		return DebtLoss
	case a.Cause.Code.UserFailure():
		if a.Failures >= t.Retries.Limit || final(t, a) {
			return DebtNone
		}
		return DebtRetry
	default:
		return DebtNone
	}
}

// mayRepeat says that the author allowed a new attempt after a loss.
func mayRepeat(a record.Attempt) bool { return a.Idempotent || a.OnLost == record.OnLostRetry }

// final says that the process ended with a code that spends no retries.
func final(t *spec.Task, a record.Attempt) bool {
	return a.Cause.Code == record.CauseExitCode && a.Exit != nil && slices.Contains(t.NoRetryExitCodes, a.Exit.Code)
}

// ClassOf returns what a task counts as for the trigger rules of those below
// it, by its latest row: a task that is owed an attempt is open, whatever its
// row says.
func ClassOf(t *spec.Task, a record.Attempt) spec.Class {
	if Owed(t, a) != DebtNone {
		return spec.ClassOpen
	}
	return spec.ClassOf(a.State, t.AllowFailure)
}
