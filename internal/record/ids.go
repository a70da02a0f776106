package record

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// WorkflowName names a workflow: at most [MaxWorkflowName] characters of the
// alphabet that [CheckName] describes.
type WorkflowName string

// RunID names a run: `<workflow>.<suffix>`. The dot is writ's own, so the two
// halves can always be told apart.
type RunID string

// TaskID names a node of a workflow's graph.
type TaskID string

// Instance numbers one instance of a fan-out task with five digits; it is
// empty for a task that is not fanned out.
type Instance string

// WorkerName names a worker over all its restarts.
type WorkerName string

// SessionID names one process life of a worker: the random id of its state
// directory, a dash, and a counter kept in that directory.
type SessionID string

// ReplicaID names a scheduler process.
type ReplicaID string

// Queue names a queue of attempts; workers say which queues they serve.
type Queue string

// Pool names a limit shared by tasks of several workflows.
type Pool string

// Token is the dispatch token of one attempt: 128 random bits in lower-case
// base32 without padding. It is the right to report on that attempt.
type Token string

// WriteID marks one write. A re-send of the same write carries the same id, so
// that its author can tell its own earlier try from somebody else's write.
type WriteID string

const (
	// MaxName is the longest name of a task, worker, queue or pool, in bytes.
	// The bound is DESIGN's `[a-z0-9][a-z0-9_-]{0,62}`.
	MaxName = 63
	// MaxWorkflowName is the longest name of a workflow, in bytes. It is
	// shorter than MaxName so that every run id stays below 104 bytes.
	MaxWorkflowName = 40
	// MaxInstances bounds the width of one fan-out task: five digits.
	MaxInstances = 100_000
)

// NamePattern is the pattern of every name, as documentation and schemas
// print it.
const NamePattern = `[a-z0-9][a-z0-9_-]{0,62}`

// CheckName reports why s is not a name, in words that can follow "name: ".
// It returns nil for a good one. limit is the longest length in bytes.
func CheckName(s string, limit int) error {
	if s == "" {
		return fmt.Errorf("is empty, expected %s", NamePattern)
	}
	if len(s) > limit {
		return fmt.Errorf("%q is %d characters long, at most %d are allowed", clip(s, 70), len(s), limit)
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '_' || c == '-') {
			continue
		}
		return fmt.Errorf("%q does not match %s", s, NamePattern)
	}
	return nil
}

// clip shortens s for a message, never inside a UTF-8 sequence.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// MakeRunID joins a workflow and a suffix.
func MakeRunID(w WorkflowName, suffix string) RunID { return RunID(string(w) + "." + suffix) }

// Workflow returns the part of the id before the dot.
func (r RunID) Workflow() WorkflowName {
	w, _, _ := strings.Cut(string(r), ".")
	return WorkflowName(w)
}

// Suffix returns the part of the id after the first dot.
func (r RunID) Suffix() string {
	_, s, _ := strings.Cut(string(r), ".")
	return s
}

// Check reports why r is not a run id, or nil. It accepts every id that writ
// itself makes, rounds included.
func (r RunID) Check() error {
	w, s, ok := strings.Cut(string(r), ".")
	if !ok {
		return fmt.Errorf("run id %q has no dot, expected <workflow>.<suffix>", clip(string(r), 120))
	}
	if err := CheckName(w, MaxWorkflowName); err != nil {
		return fmt.Errorf("run id: workflow %w", err)
	}
	base, round, hasRound := strings.Cut(s, ".")
	if err := CheckName(base, MaxName); err != nil {
		return fmt.Errorf("run id: suffix %w", err)
	}
	if !hasRound {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(round, "r"))
	if err != nil || n < 2 || round != "r"+strconv.Itoa(n) {
		return fmt.Errorf("run id: round %q, expected .r2, .r3 …", clip(round, 40))
	}
	return nil
}

// dateLayout is the suffix of a run of a logical date, in UTC.
const dateLayout = "20060102t150405z"

// DateSuffix is the suffix of the run of a logical date and round; rounds
// count from 1, and the first is not written.
func DateSuffix(at time.Time, round int) string {
	s := at.UTC().Format(dateLayout)
	if round > 1 {
		s += ".r" + strconv.Itoa(round)
	}
	return s
}

// KeyPrefix begins the suffix of a run that was started with an idempotency
// key; the rest is a hash of the key.
const KeyPrefix = "k-"

// CheckSuffix reports why a person may not give s as the suffix of a run
// (`--id`): it must be a name and may look neither like a date nor like an
// idempotency key, since those suffixes are writ's own.
func CheckSuffix(s string) error {
	if err := CheckName(s, MaxName); err != nil {
		return err
	}
	if strings.HasPrefix(s, KeyPrefix) {
		return fmt.Errorf("%q begins with %q, which is kept for idempotency keys", s, KeyPrefix)
	}
	if looksLikeDate(s) {
		return fmt.Errorf("%q looks like a logical date, which is kept for scheduled runs", s)
	}
	return nil
}

// looksLikeDate is wider than dateLayout on purpose: eight digits, a t and a
// digit are refused even where the rest would not parse.
func looksLikeDate(s string) bool {
	if len(s) < 10 || s[8] != 't' {
		return false
	}
	for i, c := range []byte(s[:10]) {
		if i != 8 && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// MakeInstance names the i-th instance of a fan-out task, counted from 0.
func MakeInstance(i int) Instance { return Instance(fmt.Sprintf("%05d", i)) }

// TaskRef names one task, or one instance of a fan-out task, of one run: the
// thing that has attempts.
type TaskRef struct {
	Run      RunID    `json:"run"`
	Task     TaskID   `json:"task"`
	Instance Instance `json:"instance,omitempty"`
}

// Ref names one attempt; N counts from 1.
type Ref struct {
	TaskRef
	N int `json:"attempt"`
}

// Name is the task as people write it: `count`, or `count.00003`.
func (t TaskRef) Name() string {
	if t.Instance == "" {
		return string(t.Task)
	}
	return string(t.Task) + "." + string(t.Instance)
}

// String is `run/task` or `run/task.00003`.
func (t TaskRef) String() string { return string(t.Run) + "/" + t.Name() }

// At names the n-th attempt of t.
func (t TaskRef) At(n int) Ref { return Ref{TaskRef: t, N: n} }

// String is `run/task/n`.
func (r Ref) String() string { return r.TaskRef.String() + "/" + strconv.Itoa(r.N) }

// ParseTaskName splits what TaskRef.Name made.
func ParseTaskName(s string) (TaskID, Instance, error) {
	t, i, has := strings.Cut(s, ".")
	if err := CheckName(t, MaxName); err != nil {
		return "", "", fmt.Errorf("task %w", err)
	}
	if !has {
		return TaskID(t), "", nil
	}
	n, err := strconv.Atoi(i)
	if err != nil || n < 0 || n >= MaxInstances || string(MakeInstance(n)) != i {
		return "", "", fmt.Errorf("task %q: instance %q, expected five digits", clip(s, 80), clip(i, 20))
	}
	return TaskID(t), Instance(i), nil
}
