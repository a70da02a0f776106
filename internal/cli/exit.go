package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// The exit codes of writ; see the package comment.
const (
	ExitDone        = 0
	ExitBad         = 1
	ExitUsage       = 2
	ExitCancelled   = 3
	ExitUnreachable = 4
	ExitFailure     = 5
)

// exitError carries an exit code. With quiet the answer itself has said all.
type exitError struct {
	code  int
	err   error
	quiet bool
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usage is an error about the request.
func usage(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// verdict ends a command whose answer was printed with a code that is not 0.
func verdict(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...), quiet: true}
}

// exitCode is what the process tells of an error.
func exitCode(err error) int {
	var own *exitError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &own):
		return own.code
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return ExitUnreachable
	}
	st, ok := status.FromError(err)
	if !ok {
		return ExitFailure
	}
	switch st.Code() {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange,
		codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return ExitUsage
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted:
		return ExitUnreachable
	default:
		return ExitFailure
	}
}

// complain prints an error, as cause and hint.
func (a *app) complain(err error) {
	var own *exitError
	if err == nil || errors.As(err, &own) && own.quiet {
		return
	}
	if problems := problemsOf(err); len(problems) > 0 {
		writeProblems(a.env.Stderr, problems)
		return
	}
	st, remote := status.FromError(err)
	text := err.Error()
	if remote {
		text = rewrite(text, st)
	}
	if remote && st.Code() == codes.Unavailable && a.asked {
		text = fmt.Sprintf("no answer from %s: %s", a.servers(), text)
	}
	fmt.Fprintf(a.env.Stderr, "writ: %s\n", text)
	if hint := a.hint(st, remote, err); hint != "" {
		fmt.Fprintf(a.env.Stderr, "hint: %s\n", hint)
	}
}

// rewrite takes gRPC's dressing off a message.
func rewrite(text string, st *status.Status) string {
	dressed := fmt.Sprintf("rpc error: code = %s desc = ", st.Code())
	return strings.ReplaceAll(text, dressed, "")
}

// hint is what a person may try next, or empty.
func (a *app) hint(st *status.Status, remote bool, err error) string {
	switch {
	case remote && st.Code() == codes.Unavailable && a.asked:
		return "is a server running there? (writ server and writ dev start one; --server or WRIT_SERVER name another)"
	case remote && st.Code() == codes.Unimplemented && a.asked:
		return fmt.Sprintf("the server at %s does not know this request: it is older, or is not writ", a.servers())
	case exitCode(err) == ExitUnreachable && errors.Is(err, context.DeadlineExceeded):
		return "--timeout sets how long to wait"
	}
	return ""
}

// problemsOf reads the problems that a server attached to a refusal.
func problemsOf(err error) []*writv1.Problem {
	st, ok := status.FromError(err)
	if !ok {
		return nil
	}
	var found []*writv1.Problem
	for _, d := range st.Details() {
		if p, ok := d.(*writv1.Problem); ok {
			found = append(found, p)
		}
	}
	return found
}
