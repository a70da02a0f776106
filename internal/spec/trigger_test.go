package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// ending is what the table of DESIGN says of upstreams that have all ended.
func ending(r spec.TriggerRule, t spec.Tally) spec.Decision {
	missed := spec.Skip
	if t.Bad > 0 {
		missed = spec.UpstreamFail
	}
	runs, otherwise := false, missed
	switch r {
	case spec.AllSuccess:
		runs = t.Success == t.Total()
	case spec.AllFailed:
		runs, otherwise = t.Bad == t.Total(), spec.Skip
	case spec.AllDone, spec.Always:
		runs = true
	case spec.OneSuccess:
		runs = t.Success > 0
	case spec.OneFailed:
		runs, otherwise = t.Bad > 0, spec.Skip
	case spec.OneDone:
		runs, otherwise = t.Success+t.Bad > 0, spec.Skip
	case spec.NoneFailed:
		runs, otherwise = t.Bad == 0, spec.UpstreamFail
	case spec.NoneFailedMinOneSuccess:
		runs = t.Bad == 0 && t.Success > 0
	case spec.NoneSkipped:
		runs, otherwise = t.Skipped == 0, spec.Skip
	}
	if runs {
		return spec.Run
	}
	return otherwise
}

// early says that the rule runs its task before every upstream has ended.
func early(r spec.TriggerRule, t spec.Tally) bool {
	switch r {
	case spec.OneSuccess:
		return t.Success > 0
	case spec.OneFailed:
		return t.Bad > 0
	case spec.OneDone:
		return t.Success+t.Bad > 0
	case spec.Always:
		return true
	default:
		return false
	}
}

// oracle tries every end of the open upstreams.
func oracle(r spec.TriggerRule, t spec.Tally) spec.Decision {
	if t.Open == 0 {
		return ending(r, t)
	}
	if early(r, t) {
		return spec.Run
	}
	ends := map[spec.Decision]bool{}
	for good := range t.Open + 1 {
		for bad := range t.Open - good + 1 {
			ends[ending(r, spec.Tally{Success: t.Success + good, Bad: t.Bad + bad, Skipped: t.Skipped + t.Open - good - bad})] = true
		}
	}
	if len(ends) > 1 || ends[spec.Run] {
		return spec.Undecided
	}
	for d := range ends {
		return d
	}
	return spec.Undecided
}

func TestEveryRuleDecidesExactlyWhenNoEndCouldChangeTheOutcome(t *testing.T) {
	t.Parallel()
	const upstreams = 5
	for _, rule := range spec.TriggerRules() {
		for open := range upstreams + 1 {
			for success := range upstreams - open + 1 {
				for bad := range upstreams - open - success + 1 {
					for skipped := range upstreams - open - success - bad + 1 {
						tally := spec.Tally{Open: open, Success: success, Bad: bad, Skipped: skipped}
						if tally.Total() == 0 && rule != spec.AllSuccess && rule != spec.Always {
							continue // Validate refuses such a task
						}
						require.Equal(t, oracle(rule, tally), rule.Decide(tally), "%s %+v", rule, tally)
					}
				}
			}
		}
	}
}

func TestADecisionStandsWhateverEndsLater(t *testing.T) {
	t.Parallel()
	ends := []spec.Class{spec.ClassSuccess, spec.ClassBad, spec.ClassSkipped}
	for _, rule := range spec.TriggerRules() {
		for _, first := range ends {
			for _, second := range ends {
				for _, third := range ends {
					tally := spec.Tally{Open: 3}
					decided := rule.Decide(tally)
					for _, end := range []spec.Class{first, second, third} {
						tally.Remove(spec.ClassOpen)
						tally.Add(end)
						now := rule.Decide(tally)
						if decided != spec.Undecided {
							require.Equal(t, decided, now, "%s %+v", rule, tally)
						}
						decided = now
					}
					require.NotEqual(t, spec.Undecided, decided, "%s %+v", rule, tally)
				}
			}
		}
	}
}

func TestClassOfEveryState(t *testing.T) {
	t.Parallel()
	for state, want := range map[record.AttemptState]spec.Class{
		record.None: spec.ClassOpen, record.Queued: spec.ClassOpen, record.Running: spec.ClassOpen,
		record.Abandoned: spec.ClassOpen, record.Success: spec.ClassSuccess, record.Failed: spec.ClassBad,
		record.UpstreamFailed: spec.ClassBad, record.Cancelled: spec.ClassBad, record.Skipped: spec.ClassSkipped,
	} {
		require.Equal(t, want, spec.ClassOf(state, false), string(state))
		if state == record.Failed {
			want = spec.ClassSuccess
		}
		require.Equal(t, want, spec.ClassOf(state, true), "%s with allow_failure", state)
	}
}

func TestDecisionsHaveWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[spec.Decision]string{
		spec.Undecided: "undecided", spec.Run: "run", spec.Skip: "skip", spec.UpstreamFail: "upstream_fail",
	} {
		require.Equal(t, want, d.String())
	}
}

// step is one task of a played graph.
type step struct {
	id    record.TaskID
	rule  spec.TriggerRule
	needs []record.TaskID
	end   record.AttemptState // what the task ends as when it runs; success by default
}

// play runs a graph to its end and returns the tasks' states and which ran.
func play(t *testing.T, steps ...step) (ends map[record.TaskID]record.AttemptState, ran []record.TaskID) {
	t.Helper()
	w := &spec.Workflow{Name: "play"}
	for _, s := range steps {
		w.Tasks = append(w.Tasks, spec.Task{ID: s.id, Run: "true", Needs: s.needs, TriggerRule: s.rule})
	}
	require.Empty(t, spec.Validate(w))
	g := spec.Compile(w)
	ends = map[record.TaskID]record.AttemptState{}
	for _, i := range g.Order() {
		var up spec.Tally
		for _, above := range g.Up(i) {
			up.Add(spec.ClassOf(ends[g.Task(above).ID], false))
		}
		id := g.Task(i).ID
		switch d := g.Task(i).Rule().Decide(up); d {
		case spec.Run:
			ran = append(ran, id)
			ends[id] = record.Success
			if steps[i].end != "" {
				ends[id] = steps[i].end
			}
		case spec.Skip:
			ends[id] = record.Skipped
		case spec.UpstreamFail:
			ends[id] = record.UpstreamFailed
		default:
			t.Fatalf("%s is %s although every upstream has ended", id, d)
		}
	}
	return ends, ran
}

func TestO08AJoinWhoseUpstreamsWereAllSkipped(t *testing.T) {
	t.Parallel()
	graph := func(join spec.TriggerRule) []step {
		return []step{
			{id: "pick"},
			{id: "l", needs: []record.TaskID{"pick"}},
			{id: "gate", needs: []record.TaskID{"pick"}, end: record.Skipped}, // the branch that was not chosen
			{id: "ip", needs: []record.TaskID{"gate"}},
			{id: "p", needs: []record.TaskID{"ip"}},
			{id: "q", needs: []record.TaskID{"ip"}},
			{id: "j2", needs: []record.TaskID{"p", "q"}, rule: join},
			{id: "r3", needs: []record.TaskID{"j2"}},
			{id: "jo", needs: []record.TaskID{"l", "r3"}, rule: spec.NoneFailedMinOneSuccess},
		}
	}
	ends, ran := play(t, graph(spec.NoneFailedMinOneSuccess)...)
	require.ElementsMatch(t, []record.TaskID{"pick", "gate", "l", "jo"}, ran)
	for _, id := range []record.TaskID{"ip", "p", "q", "j2", "r3"} {
		require.Equal(t, record.Skipped, ends[id], string(id))
	}
	ends, ran = play(t, graph(spec.NoneFailed)...)
	require.ElementsMatch(t, []record.TaskID{"pick", "gate", "l", "j2", "r3", "jo"}, ran)
	for _, id := range []record.TaskID{"ip", "p", "q"} {
		require.Equal(t, record.Skipped, ends[id], string(id))
	}
}

func TestO09AFailureIsNotHiddenBehindASkip(t *testing.T) {
	t.Parallel()
	ends, ran := play(t,
		step{id: "g1", end: record.Failed},
		step{id: "m1", needs: []record.TaskID{"g1"}},
		step{id: "n1", needs: []record.TaskID{"m1"}},
		step{id: "s"},
		step{id: "j1", needs: []record.TaskID{"n1", "s"}, rule: spec.NoneFailedMinOneSuccess},
		step{id: "g2", end: record.Skipped},
		step{id: "m2", needs: []record.TaskID{"g2"}},
		step{id: "n2", needs: []record.TaskID{"m2"}},
		step{id: "j2", needs: []record.TaskID{"n2", "s"}, rule: spec.NoneFailedMinOneSuccess},
		step{id: "o", needs: []record.TaskID{"n1", "n2"}, rule: spec.OneSuccess},
		step{id: "p", needs: []record.TaskID{"m2", "n2"}, rule: spec.OneSuccess},
		step{id: "q", needs: []record.TaskID{"n1"}, rule: spec.AllFailed},
	)
	require.ElementsMatch(t, []record.TaskID{"g1", "g2", "s", "j2", "q"}, ran)
	require.Equal(t, map[record.TaskID]record.AttemptState{
		"g1": record.Failed, "m1": record.UpstreamFailed, "n1": record.UpstreamFailed, "j1": record.UpstreamFailed,
		"g2": record.Skipped, "m2": record.Skipped, "n2": record.Skipped, "j2": record.Success,
		"s": record.Success, "o": record.UpstreamFailed, "p": record.Skipped, "q": record.Success,
	}, ends)
}

func TestO10TheCleanUpRunsWhateverHappened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ a, b, z, wantB record.AttemptState }{
		"all well": {record.Success, record.Success, record.Success, record.Success},
		"b fails":  {record.Success, record.Failed, record.Success, record.Failed},
		"a fails":  {record.Failed, record.Success, record.Success, record.UpstreamFailed},
		"b skips":  {record.Success, record.Skipped, record.Success, record.Skipped},
		"z fails":  {record.Success, record.Success, record.Failed, record.Success},
	} {
		ends, ran := play(t,
			step{id: "a", end: c.a},
			step{id: "b", needs: []record.TaskID{"a"}, end: c.b},
			step{id: "z", needs: []record.TaskID{"b"}, rule: spec.AllDone, end: c.z},
		)
		require.Equal(t, map[record.TaskID]record.AttemptState{"a": c.a, "b": c.wantB, "z": c.z}, ends, name)
		require.Contains(t, ran, record.TaskID("z"), name)
	}
}
