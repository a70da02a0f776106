package api

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// The conversions, as the tests call them.
func ToWorkflow(w *spec.Workflow) *writv1.Workflow { return toWorkflow(w) }

func ReadWorkflow(m *writv1.Workflow) (*spec.Workflow, []spec.Problem) { return readWorkflow(m) }
func ToRunState(s record.RunState) writv1.RunState                     { return toRunState(s) }
func ToTaskState(s record.AttemptState) writv1.TaskState               { return toTaskState(s) }
func ToKind(k record.Kind) writv1.AttemptKind                          { return toKind(k) }
func MakeSuffix(now time.Time) string                                  { return makeSuffix(now) }

func TriggerRules() []spec.TriggerRule { return triggerRules() }

func LostPolicies() []record.OnLost       { return lostPolicies() }
func (s *Service) Refuse(err error) error { return s.refuse(err) }

// MaxChunk is the largest part of a spec that is one value.
const MaxChunk = maxChunk

// Verdicts is the table of errors by their text.
func Verdicts() map[error]codes.Code {
	all := map[error]codes.Code{}
	for _, v := range verdicts() {
		all[v.err] = v.code
	}
	return all
}
