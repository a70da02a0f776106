package metrics

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// The outcomes of a commit, as [Set.Committed] takes them.
const (
	Committed = "committed"
	Conflict  = "conflict"
	Unknown   = "unknown"
)

// The kinds of passes, as [Set.Passed] takes them.
const (
	Touched = "touched"
	Full    = "full"
)

// Set is the metrics of one replica. A nil Set counts nothing.
type Set struct {
	commits   *prometheus.CounterVec
	prevented *prometheus.CounterVec
	passes    *prometheus.CounterVec
	parked    prometheus.Counter
	relists   prometheus.Counter
	opened    prometheus.Counter
	sessions  prometheus.Gauge

	mu     sync.Mutex       // guards byRule
	byRule map[string]int64 // what prevented counts, for those who ask this process
}

// New registers a Set with reg. It panics where reg has one already.
func New(reg *prometheus.Registry) *Set {
	s := &Set{
		byRule: map[string]int64{},
		commits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_commits_total", Help: "Changes handed to the store, by what became of them.",
		}, []string{"outcome"}),
		prevented: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_prevented_duplicates_total", Help: "Changes that lost their compare, by the rule that asked for them.",
		}, []string{"rule"}),
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_passes_total", Help: "Evaluations of the reconcile rules, over what was touched or over all active runs.",
		}, []string{"kind"}),
		parked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "writ_parked_runs_total", Help: "Runs that this replica left alone because a pass over them broke an invariant.",
		}),
		relists: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "writ_mirror_relists_total", Help: "Times that the mirror listed anew because its watch broke or was compacted.",
		}),
		opened: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "writ_sessions_opened_total", Help: "Streams of worker sessions that this replica accepted.",
		}),
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "writ_sessions", Help: "Worker sessions whose stream this replica holds.",
		}),
	}
	reg.MustRegister(s.commits, s.prevented, s.passes, s.parked, s.relists, s.opened, s.sessions)
	// A counter that is absent until it first counts cannot be alerted on.
	for _, outcome := range []string{Committed, Conflict, Unknown} {
		s.commits.WithLabelValues(outcome)
	}
	for _, kind := range []string{Touched, Full} {
		s.passes.WithLabelValues(kind)
	}
	return s
}

// Committed counts one change by its outcome: Committed, Conflict or Unknown.
func (s *Set) Committed(outcome string) {
	if s != nil {
		s.commits.WithLabelValues(outcome).Inc()
	}
}

// Prevented counts one change of a rule that lost its compare: what it would
// have done a second time was not done.
func (s *Set) Prevented(rule string) {
	if s == nil {
		return
	}
	s.prevented.WithLabelValues(rule).Inc()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byRule[rule]++
}

// PreventedByRule returns what Prevented counted so far, by rule.
func (s *Set) PreventedByRule() map[string]int64 {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.byRule)
}

// Passed counts one pass by its kind: Touched or Full.
func (s *Set) Passed(kind string) {
	if s != nil {
		s.passes.WithLabelValues(kind).Inc()
	}
}

// Parked counts one run that was left alone because a pass over it panicked.
func (s *Set) Parked() {
	if s != nil {
		s.parked.Inc()
	}
}

// Relisted counts one list of the mirror after its first.
func (s *Set) Relisted() {
	if s != nil {
		s.relists.Inc()
	}
}

// SessionOpened counts one stream of a worker session; SessionClosed is called
// once when that stream ends.
func (s *Set) SessionOpened() {
	if s != nil {
		s.opened.Inc()
		s.sessions.Inc()
	}
}

// SessionClosed takes back what SessionOpened added to the sessions held.
func (s *Set) SessionClosed() {
	if s != nil {
		s.sessions.Dec()
	}
}
