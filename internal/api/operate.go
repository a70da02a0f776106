package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// errSettling means that a run is between two states, and soon in the second.
var errSettling = errors.New("its records are being moved")

// operation is one action of a person on a run: what it is decided on, and the
// change that comes of it.
type operation struct {
	service *Service
	word    record.Hold

	// Shown to decide alone, under the mirror's lock.
	view *view.Active
	run  *view.Run
	// The run record as it was shown.
	seen    record.Run
	seenRev int64

	// Of an ended run, its document.
	ended bool
	head  record.Ended
	rev   int64 // of the head

	rule   record.Rule
	write  record.WriteID
	next   record.Run // the run record, where it is rewritten
	expect []record.Expect
	put    []record.Put
	del    []record.Delete
}

// word is who asks, and why.
func word(by, why string) (record.Hold, error) {
	who, err := person(by)
	if err != nil {
		return record.Hold{}, err
	}
	if len(why) > record.MaxCauseText {
		return record.Hold{}, invalid("why", "", "is %d bytes long, at most %d are allowed", len(why), record.MaxCauseText)
	}
	return record.Hold{By: who, At: time.Now().UTC(), Why: why}, nil
}

// operate has decide make the change of an action, again when others were
// quicker, and returns what was done, with the run record's revision. An
// operation without puts and deletes leaves everything as it is.
func (s *Service) operate(ctx context.Context, id record.RunID, w record.Hold, decide func(*operation) error) (*operation, int64, error) {
	for range races {
		o := &operation{service: s, word: w, write: writeID()}
		err := s.decide(ctx, id, o, decide)
		switch {
		case errors.Is(err, errSettling):
			if !rest(ctx, againTime) {
				return nil, 0, fmt.Errorf("%w: %w", err, ErrContended)
			}
			continue
		case err != nil:
			return nil, 0, err
		case len(o.put)+len(o.del) == 0:
			o.next = o.seen
			return o, o.seenRev, nil
		}
		c, err := record.NewChange(o.rule, o.write, o.expect, o.put, o.del...)
		if err != nil {
			return nil, 0, err
		}
		outcome, err := s.commit(ctx, c)
		if err != nil {
			return nil, 0, err
		}
		if outcome.Verdict == record.Committed {
			return o, outcome.Rev, nil
		}
		if err := s.catchUp(ctx, outcome); err != nil {
			return nil, 0, err
		}
	}
	return nil, 0, ErrContended
}

// decide shows the run to an operation. The document of an ended run is read
// whole before its head is read again for its revision, and both must be of the
// same end.
func (s *Service) decide(ctx context.Context, id record.RunID, o *operation, decide func(*operation) error) error {
	var err error
	var rev int64
	showErr := s.find(ctx, id, func(v *view.Active, r *view.Run, ended bool) {
		o.view, o.run, o.ended, rev = v, r, ended, v.Rev()
		o.seen, o.seenRev = r.Record, r.ModRev
		if !ended {
			err = decide(o)
		}
	})
	if showErr != nil || !o.ended {
		return errors.Join(showErr, err)
	}
	stored, err := s.get(ctx, record.EndedKey(id))
	if err != nil {
		return err
	}
	head, ok := stored.Value.(record.Ended)
	if !ok || head.RunRev != rev {
		return errSettling
	}
	o.head, o.rev = head, stored.ModRev
	return decide(o)
}

// catchUp waits for the mirror to show what a lost compare saw.
func (s *Service) catchUp(ctx context.Context, lost record.Outcome) error {
	var rev int64
	for _, seen := range lost.Seen {
		if seen.Key.Family.Active() {
			rev = max(rev, seen.ModRev)
		}
	}
	s.reach(ctx, rev)
	// What was deleted names no revision to wait for.
	if !rest(ctx, againTime/10) {
		return fmt.Errorf("%w: %w", context.Cause(ctx), ErrContended)
	}
	return nil
}

// rewrite makes a step of the run record, which stays in its state; edit sets
// what the step is about.
func (o *operation) rewrite(rule record.Rule, edit func(*record.Run)) error {
	run := o.run.Record
	switch {
	case o.ended || run.State.Terminal() && run.Phase == record.PhaseNone:
		return fmt.Errorf("it is %s since %s: %w", run.State, run.EndedAt.UTC().Format(time.RFC3339), ErrEnded)
	case run.State == record.RunCancelling:
		return fmt.Errorf("it is being cancelled: %w (hint: wait for its end)", ErrEarly)
	case run.Phase != record.PhaseNone:
		return errSettling
	}
	next, err := run.Move(record.RunMove{
		To: run.State, By: record.Operator, Who: o.word.By, At: o.word.At, Rule: rule, Write: o.write,
	})
	if err != nil {
		return err
	}
	edit(&next)
	key := record.RunKey(run.Run)
	o.rule, o.next = rule, next
	o.guard(record.At(key, o.run.ModRev))
	o.put = append(o.put, record.Put{Key: key, Value: next})
	return nil
}

func (o *operation) guard(list ...record.Expect) { o.expect = append(o.expect, list...) }

// task finds a task by the name that a person gave it.
func (o *operation) task(name string) (*view.Task, error) {
	task, instance, err := record.ParseTaskName(name)
	if err != nil {
		return nil, invalid("task", "", "%v", err)
	}
	t, ok := o.run.Task(record.TaskRef{Run: o.run.ID(), Task: task, Instance: instance})
	if !ok {
		return nil, missing("task %s of run %s", name, o.run.ID())
	}
	return t, nil
}
