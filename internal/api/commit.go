package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

const (
	// requestTime bounds a request whose caller named no deadline.
	requestTime = 30 * time.Second
	// marginShare of what is left until the caller's deadline, at most
	// maxMargin, is kept for the answer: a caller that gave up hears nothing.
	marginShare = 10
	maxMargin   = 500 * time.Millisecond
	// reachTime is how long an answer waits for the mirror to show the write.
	reachTime = 2 * time.Second
	// againTime is the pause before a change of unknown outcome is sent again.
	againTime = 100 * time.Millisecond
	// races is how many lost compares a request survives.
	races = 20
)

// bound gives a request its deadline.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithTimeout(ctx, requestTime)
	}
	margin := min(time.Until(deadline)/marginShare, maxMargin)
	return context.WithDeadline(ctx, deadline.Add(-margin))
}

// commit makes a change and waits until the mirror shows it. A conflict is the
// caller's to settle.
func (s *Service) commit(ctx context.Context, c record.Change) (record.Outcome, error) {
	o, err := s.commitUnseen(ctx, c)
	if err == nil && o.Verdict == record.Committed {
		s.reach(ctx, o.Rev)
	}
	return o, err
}

// commitUnseen makes a change, again and again while nobody knows what became
// of it: a change outside active/, or one whose author waits for nothing.
func (s *Service) commitUnseen(ctx context.Context, c record.Change) (record.Outcome, error) {
	for {
		o, err := s.store.Commit(ctx, c)
		if err != nil {
			return o, fmt.Errorf("write by rule %s: %w", c.Rule, err)
		}
		if o.Verdict != record.Unknown {
			return o, nil
		}
		if !rest(ctx, againTime) {
			return o, fmt.Errorf("write by rule %s: %w", c.Rule, ErrUnsettled)
		}
	}
}

// reach waits a while for the mirror to show a revision, so that who wrote reads
// what it wrote. The write is durable either way.
func (s *Service) reach(ctx context.Context, rev int64) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	_ = s.mirror.Await(ctx, rev) // late is no failure
}

// rest waits for d, and says whether ctx lasted as long.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// get reads one record.
func (s *Service) get(ctx context.Context, k record.Key) (record.Stored, error) {
	stored, err := s.store.Get(ctx, k)
	if err != nil {
		return record.Stored{}, unread(ctx, err)
	}
	return stored, nil
}

// unread is a failed read in a word of the table: the end of the caller's
// patience, or a store that does not answer.
func unread(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return fmt.Errorf("%w: %w", ErrSilent, err)
}

// writeID is the id of one write.
func writeID() record.WriteID { return record.WriteID(strings.ToLower(rand.Text())) }

const (
	// maxBy is the longest name of a person, in bytes: it stands in guarded
	// records, which stay small.
	maxBy = 100
	// nobody is who asks where the request does not say.
	nobody = "unknown"
)

// person is who asks, as records name people.
func person(by string) (string, error) {
	if by == "" {
		by = nobody
	}
	if len(by) > maxBy {
		return "", invalid("by", "", "is %d bytes long, at most %d are allowed", len(by), maxBy)
	}
	return "person/" + strings.TrimPrefix(by, "person/"), nil
}

// runID checks the id of a run in a request.
func runID(text string) (record.RunID, error) {
	id := record.RunID(text)
	if err := id.Check(); err != nil {
		return "", invalid("run", "", "%v", err)
	}
	return id, nil
}

// workflowName checks the name of a workflow in a request.
func workflowName(field, text string) (record.WorkflowName, error) {
	if err := record.CheckName(text, record.MaxWorkflowName); err != nil {
		return "", invalid(field, "", "%v", err)
	}
	return record.WorkflowName(text), nil
}

// missing says that a thing of that name is not there.
func missing(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrAbsent)
}

// invalidSpec refuses problems that spec found.
func invalidSpec(list []spec.Problem) error { return &spec.InvalidError{Problems: list} }
