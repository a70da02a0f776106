package reconcile

import (
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// verdictOf is what the trigger rule says about a task: record.None where it
// is to run. decided is false while the upstreams leave it open.
func verdictOf(t *view.Task) (state record.AttemptState, decided bool) {
	switch t.Spec.Rule().Decide(t.Upstream()) {
	case spec.Undecided:
		return record.None, false
	case spec.Run:
		return record.None, true
	case spec.Skip:
		return record.Skipped, true
	default:
		return record.UpstreamFailed, true
	}
}
