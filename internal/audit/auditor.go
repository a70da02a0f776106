package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// The invariants that a violation can name, beside I1 to I12.
const (
	// Table is the state table of runs: a transition that it does not know, or
	// an outcome that the tasks do not bear out.
	Table = "table"
)

// Violation is one breach of an invariant.
type Violation struct {
	// Invariant is I1 to I12, or Table.
	Invariant string
	// Rev is the revision that broke it; of what is missing at the end, the
	// last one.
	Rev int64
	Key record.Key
	// Text says what was found and what was expected.
	Text string
}

// String is the violation on one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: revision %d: %s: %s", v.Invariant, v.Rev, name(v.Key), v.Text)
}

// Options say what an audit may rely on.
type Options struct {
	// Quiet says that the history ends at a moment at which every pass was
	// made and every commit landed, so that I8 can be asked of its end.
	Quiet bool
}

// revisionRef names one revision of a workflow.
type revisionRef struct {
	workflow record.WorkflowName
	revision int
}

// Auditor reads a history, one revision after another.
type Auditor struct {
	opt     Options
	since   int64 // the revision of the snapshot; 0 where there is none
	partial bool  // what was before since is not known
	begun   bool
	rev     int64

	lines    []line
	runLines []runLine
	flows    map[revisionRef]*flow
	runs     map[record.RunID]*run
	past     map[record.RunID][]*ending
	retained map[record.RunID]bool // ended runs whose document was not deleted
	dated    map[date]record.RunID
	tokens   map[record.Token]issue
	sessions map[sessionRef]*session
	heirs    map[record.SessionID]record.SessionID
	pools    map[record.Pool]*pool
	holders  map[record.Key]record.Holder
	active   map[record.WorkflowName]int
	pages    map[record.RunID]map[int]record.EndedPage
	docs     []document
	heads    bool // the history shows heads of documents
	observed []Observed

	found  []Violation
	checks map[string]int
	sum    Summary
	terms  map[int64]bool
}

// New makes an auditor of a history that begins with an empty store, unless
// Begin says otherwise.
func New(opt Options) *Auditor {
	return &Auditor{
		opt: opt, lines: relation(), runLines: runRelation(), flows: map[revisionRef]*flow{}, runs: map[record.RunID]*run{}, past: map[record.RunID][]*ending{},
		retained: map[record.RunID]bool{}, dated: map[date]record.RunID{}, tokens: map[record.Token]issue{},
		sessions: map[sessionRef]*session{}, heirs: map[record.SessionID]record.SessionID{}, pools: map[record.Pool]*pool{},
		holders: map[record.Key]record.Holder{}, active: map[record.WorkflowName]int{},
		pages: map[record.RunID]map[int]record.EndedPage{}, checks: map[string]int{}, terms: map[int64]bool{},
	}
}

// Spec gives a revision of a workflow. It must come before the events of the
// runs that use it; attempts of runs without one are not judged by I6, and the
// summary counts them.
func (a *Auditor) Spec(name record.WorkflowName, revision int, w *spec.Workflow) {
	a.flows[revisionRef{name, revision}] = newFlow(w)
}

// Begin gives the state of the store at a revision, before the first Feed.
// whole says that nothing happened before it that is not in it: no run had
// ended and no row was deleted. Otherwise some invariants hold only from there
// (see Summary.Partial). What the records of the snapshot say by themselves is
// checked as well.
func (a *Auditor) Begin(rev int64, state []record.Stored, whole bool) error {
	if a.begun {
		return fmt.Errorf("begin an audit at revision %d: it has begun already", rev)
	}
	a.begun, a.since, a.rev, a.partial = true, rev, rev, !whole
	s := &step{rev: rev, begin: true}
	// A head is read with the pages before it.
	pagesFirst := func(x, y record.Stored) int {
		return bit(x.Key.Family != record.FamilyPage) - bit(y.Key.Family != record.FamilyPage)
	}
	for _, kept := range slices.SortedStableFunc(slices.Values(state), pagesFirst) {
		if kept.Value == nil || kept.ModRev > rev {
			return fmt.Errorf("begin an audit at revision %d: %s of revision %d is no part of that state", rev, name(kept.Key), kept.ModRev)
		}
		e := record.Event{Key: kept.Key, Value: kept.Value, CreateRev: kept.CreateRev, ModRev: kept.ModRev}
		if err := a.apply(s, e); err != nil {
			return fmt.Errorf("begin an audit at revision %d: %w", rev, err)
		}
	}
	a.checkSnapshot(s)
	return nil
}

// Feed reads whole revisions, in order. It refuses what is no history: a
// revision that goes back, or a key that was made in a revision that is
// neither in the snapshot nor was fed.
func (a *Auditor) Feed(events record.Events) error {
	a.begun = true
	list := events.Events
	byRev := func(x, y record.Event) int { return cmp.Compare(x.ModRev, y.ModRev) }
	if !slices.IsSortedFunc(list, byRev) {
		list = slices.SortedStableFunc(slices.Values(list), byRev)
	}
	for len(list) > 0 {
		rev := list[0].ModRev
		if rev <= a.rev {
			return fmt.Errorf("audit revision %d: the history stands at %d already, expected a later one", rev, a.rev)
		}
		n := slices.IndexFunc(list, func(e record.Event) bool { return e.ModRev != rev })
		if n < 0 {
			n = len(list)
		}
		if err := a.step(rev, list[:n]); err != nil {
			return fmt.Errorf("audit revision %d: %w", rev, err)
		}
		list = list[n:]
	}
	a.rev = max(a.rev, events.Rev)
	return nil
}

// step reads one revision: what it ends is remembered as it was, then
// everything is applied, then everything is checked against the state after
// it. All compares of a Txn see the state before it, and no two of its changes
// touch what the other does, so the state after is what each of them made.
func (a *Auditor) step(rev int64, events []record.Event) error {
	a.rev = rev
	a.sum.Revisions++
	a.sum.Events += len(events)
	s := &step{rev: rev}
	for _, e := range events {
		if e.Key.Family == record.FamilyRun && e.Value == nil {
			a.remember(s, e.Key.Run)
		}
	}
	for _, e := range events {
		if err := a.apply(s, e); err != nil {
			return err
		}
	}
	for _, c := range s.runs {
		a.checkRun(s, c)
	}
	for _, c := range s.rows {
		a.checkRow(s, c)
	}
	a.checkEndings(s)
	a.checkHolders(s)
	return nil
}

// breach notes a violation.
func (a *Auditor) breach(invariant string, rev int64, key record.Key, format string, args ...any) {
	a.found = append(a.found, Violation{Invariant: invariant, Rev: rev, Key: key, Text: fmt.Sprintf(format, args...)})
}

// checked counts a question that was asked, so that a clean report of a
// history that asked none is seen for what it is.
func (a *Auditor) checked(invariant string) { a.checks[invariant]++ }

// Report lists the violations, by revision, key and invariant. It may be asked
// at any time, and again.
func (a *Auditor) Report() []Violation {
	kept, checks := len(a.found), maps.Clone(a.checks)
	a.checkObserved()
	a.checkDocuments()
	if a.opt.Quiet {
		a.checkRest()
	}
	list := slices.Clone(a.found)
	a.found, a.checks = a.found[:kept], checks
	slices.SortFunc(list, func(x, y Violation) int {
		return cmp.Or(cmp.Compare(x.Rev, y.Rev), cmp.Compare(name(x.Key), name(y.Key)),
			cmp.Compare(x.Invariant, y.Invariant), cmp.Compare(x.Text, y.Text))
	})
	return slices.Compact(list)
}

// name is the key as the manual writes it, below the cluster's prefix.
func name(k record.Key) string {
	ref := record.TaskRef{Run: k.Run, Task: k.Task, Instance: k.Instance}
	switch k.Family {
	case record.FamilyAttempt, record.FamilyUnproven, record.FamilyResult:
		return fmt.Sprintf("%s/%s/%05d", k.Family, ref, k.N)
	case record.FamilyRun, record.FamilyEnded, record.FamilyInput, record.FamilyIndex:
		return fmt.Sprintf("%s/%s", k.Family, k.Run)
	case record.FamilyClear:
		return fmt.Sprintf("%s/%s/%05d", k.Family, k.Run, k.N)
	case record.FamilyPage:
		return fmt.Sprintf("%s/%s/%05d", k.Family, k.Run, k.Part)
	case record.FamilyWorker, record.FamilySession:
		return fmt.Sprintf("%s/%s/%s", k.Family, k.Name, k.Session)
	case record.FamilyHolder:
		return fmt.Sprintf("%s/%s/%05d", k.Family, k.Name, k.N)
	default:
		return fmt.Sprintf("%s/%s", k.Family, cmp.Or(k.Name, string(k.Run)))
	}
}
