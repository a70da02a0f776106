package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/specfile"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

var (
	// ErrAbsent means that there is no such workflow, revision, run or attempt.
	ErrAbsent = errors.New("there is no such thing")
	// ErrTaken means that an id or an idempotency key was used for another
	// request.
	ErrTaken = errors.New("it was used for another request")
	// ErrEnded means that a run has ended, and what was asked for is too late.
	ErrEnded = errors.New("the run has ended")
	// ErrEarly means that what was asked for is not there yet.
	ErrEarly = errors.New("it is too early for that")
	// ErrContended means that others wrote the same records again and again.
	ErrContended = errors.New("others were quicker, again and again (hint: ask again)")
	// ErrUnsettled means that nobody knows what became of a write.
	ErrUnsettled = errors.New("the store did not answer in time: the write may or may not have happened (hint: ask again)")
	// ErrSilent means that the store could not be read.
	ErrSilent = errors.New("the store does not answer")
	// ErrFull means that the store has no room for new runs.
	ErrFull = errors.New("the store is close to its quota, no new runs are admitted")
	// ErrDraining means that this replica is about to stop.
	ErrDraining = errors.New("this replica stops; another one serves")
	// ErrNoWorker means that a worker cannot be asked for a log.
	ErrNoWorker = errors.New("the worker that captured the log cannot be reached")
	// ErrNoLog means that a worker has no log of the attempt.
	ErrNoLog = errors.New("there is no such log")
)

// InvalidError is a request that was refused, with every problem found.
type InvalidError struct{ Problems []*writv1.Problem }

// Error has one line for each problem.
func (e *InvalidError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, sentence(p))
	}
	return strings.Join(lines, "\n")
}

// sentence is a problem on one line: `file:line:col: field: text (hint: …)`.
func sentence(p *writv1.Problem) string {
	var b strings.Builder
	if p.GetFile() != "" {
		fmt.Fprintf(&b, "%s:%d:%d: ", p.GetFile(), p.GetLine(), p.GetColumn())
	}
	if p.GetField() != "" {
		b.WriteString(p.GetField() + ": ")
	}
	b.WriteString(p.GetText())
	if p.GetHint() != "" {
		b.WriteString(" (hint: " + p.GetHint() + ")")
	}
	return b.String()
}

// invalid refuses a request for one field of it.
func invalid(field, hint, format string, args ...any) error {
	return &InvalidError{Problems: []*writv1.Problem{{Field: field, Text: fmt.Sprintf(format, args...), Hint: hint}}}
}

// verdict is one line of the table of errors.
type verdict struct {
	err  error
	code codes.Code
}

// verdicts is the table from sentinels to codes; the first that an error wraps
// counts. Errors with problems are INVALID_ARGUMENT, and what stands nowhere is
// INTERNAL.
func verdicts() []verdict {
	return []verdict{
		{ErrAbsent, codes.NotFound},
		{ErrNoLog, codes.NotFound},
		{ErrTaken, codes.AlreadyExists},
		{ErrEnded, codes.FailedPrecondition},
		{ErrEarly, codes.FailedPrecondition},
		{ErrContended, codes.Aborted},
		{ErrFull, codes.ResourceExhausted},
		{ErrUnsettled, codes.Unavailable},
		{ErrSilent, codes.Unavailable},
		{ErrDraining, codes.Unavailable},
		{ErrNoWorker, codes.Unavailable},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{context.Canceled, codes.Canceled},
	}
}

// problemsIn finds the problems that an error carries, whoever made it.
func problemsIn(err error) []*writv1.Problem {
	var own *InvalidError
	var file *specfile.InvalidError
	var workflow *spec.InvalidError
	switch {
	case errors.As(err, &own):
		return own.Problems
	case errors.As(err, &file):
		return fromFile(file.Problems)
	case errors.As(err, &workflow):
		return fromSpec(workflow.Problems)
	default:
		return nil
	}
}

// refuse turns an error into a status. An error that is one already, as those
// of a stream are, is passed on.
func (s *Service) refuse(err error) error {
	if problems := problemsIn(err); len(problems) > 0 {
		return refusal(problems)
	}
	for _, v := range verdicts() {
		if errors.Is(err, v.err) {
			return status.Error(v.code, err.Error())
		}
	}
	if st, ok := status.FromError(err); ok {
		return st.Err()
	}
	s.config.Logger.Error("a request failed for a reason that has no code", zap.Error(err))
	return status.Error(codes.Internal, err.Error())
}

const (
	// maxRefusal bounds the text of a refusal: it travels in a header, and the
	// problems are attached as details besides.
	maxRefusal = 1000
	// maxDetails bounds the details of a refusal. They travel in one header, of
	// which some clients of gRPC take no more than 8 KiB (base64 included).
	maxDetails = 6 << 10
)

func refusal(problems []*writv1.Problem) error {
	text := spec.Clip((&InvalidError{Problems: problems}).Error(), maxRefusal)
	details := make([]protoadapt.MessageV1, 0, len(problems))
	size := len(text)
	for i, p := range problems {
		if size += len(sentence(p)); size > maxDetails && i > 0 {
			rest := &writv1.Problem{File: p.GetFile(), Text: fmt.Sprintf("and %d more", len(problems)-i), Hint: "writ validate lists all"}
			details = append(details, protoadapt.MessageV1Of(rest))
			break
		}
		details = append(details, protoadapt.MessageV1Of(p))
	}
	st, err := status.New(codes.InvalidArgument, text).WithDetails(details...)
	if err != nil {
		return status.Error(codes.InvalidArgument, text)
	}
	return st.Err()
}
