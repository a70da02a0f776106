package record_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/record"
)

var update = flag.Bool("update", false, "rewrite the golden files and the table of the manual")

func at(sec int) time.Time { return time.Date(2026, 12, 1, 2, 30, sec, 0, time.UTC) }

func kinds() []record.Kind {
	return []record.Kind{record.KindExec, record.KindWait, record.KindChild}
}

// rowIn is a row of the kind that stands in a stage.
func rowIn(kind record.Kind, stage record.Stage) record.Attempt {
	a := record.Attempt{
		Schema: record.Schema, Run: "etl.20261201t023000z", Task: "load", Attempt: 1, Kind: kind,
		Transitions: []record.Transition{{State: "queued", At: at(0), Rule: record.RuleStart, Write: "w0"}},
	}
	switch stage {
	case record.StageNone:
		a.Transitions = nil
	case record.StageWaiting:
		a.State = record.Queued
	case record.StageIntent:
		a.State, a.Token, a.Worker, a.Session = record.Queued, "t1", "w", "s-1"
	default:
		a.State, a.Token, a.Worker, a.Session = record.AttemptState(stage), "t1", "w", "s-1"
	}
	return a
}

// stepTo is the step that asks for a stage.
func stepTo(a record.Attempt, stage record.Stage, by record.Actor) record.Step {
	s := record.Step{To: record.AttemptState(stage), By: by, Who: "replica/r1", At: at(1), Rule: record.RuleRepair, Write: "w1"}
	switch stage {
	case record.StageNone:
		s.To = record.None
	case record.StageWaiting:
		s.To = record.Queued
	case record.StageIntent:
		s.To = record.Queued
		if a.Token == "" {
			s.Token, s.Worker, s.Session = "t1", "w", "s-1"
		}
	default:
	}
	return s
}

// initials marks in one cell of the golden file who may make a transition.
func initials(actors []record.Actor) string {
	if len(actors) == 0 {
		return "."
	}
	s := ""
	for _, a := range actors {
		s += strings.ToUpper(string(a[:1]))
	}
	return s
}

// matrix renders who may move a row of a kind from each stage to each other.
func matrix(kind record.Kind) string {
	var b strings.Builder
	fmt.Fprintf(&b, "attempts of kind %s: from, and by whom to\n%-16s", kind, "")
	for _, to := range record.Stages() {
		fmt.Fprintf(&b, "%-16s", to)
	}
	trimmed := strings.TrimRight(b.String(), " ")
	b.Reset()
	b.WriteString(trimmed + "\n")
	for _, from := range record.Stages() {
		line := fmt.Sprintf("%-16s", from)
		for _, to := range record.Stages() {
			var may []record.Actor
			for _, by := range record.Actors() {
				a := rowIn(kind, from)
				next, err := a.Move(stepTo(a, to, by))
				// A row with a token cannot be asked to wait: that step is
				// another intent.
				if err == nil && next.Stage() == to {
					may = append(may, by)
				}
			}
			line += fmt.Sprintf("%-16s", initials(may))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func phases() []record.Phase {
	return []record.Phase{record.PhaseNone, record.PhaseEnding, record.PhaseReopening}
}

func runStages() []record.Run {
	var all []record.Run
	for _, s := range append([]record.RunState{record.RunNone}, record.RunStates()...) {
		for _, p := range phases() {
			all = append(all, record.Run{Run: "etl.a", State: s, Phase: p})
		}
	}
	return all
}

func stageName(r record.Run) string {
	name := "none"
	if r.State != record.RunNone {
		name = string(r.State)
	}
	if r.Phase != record.PhaseNone {
		name += " (" + string(r.Phase) + ")"
	}
	return name
}

// moves renders the legal transitions of a run out of all that can be asked.
func moves() string {
	var b strings.Builder
	tried := 0
	for _, from := range runStages() {
		for _, to := range runStages() {
			var may []record.Actor
			for _, by := range record.Actors() {
				tried++
				if _, err := from.Move(record.RunMove{To: to.State, Phase: to.Phase, By: by, At: at(1)}); err == nil {
					may = append(may, by)
				}
			}
			if len(may) > 0 {
				fmt.Fprintf(&b, "%-24s%-24s%s\n", stageName(from), stageName(to), initials(may))
			}
		}
	}
	return fmt.Sprintf("runs: from, to and by whom, of %d asked for\n%s", tried, b.String())
}

func guards() string {
	var b strings.Builder
	b.WriteString("guards of attempts\n")
	for _, s := range record.AttemptTable() {
		fmt.Fprintf(&b, "%s -> %s by %s (%v): %q\n", s.From, s.To, s.By, s.Kinds, s.Guards)
	}
	return b.String()
}

func TestMovesAreThoseOfTheGoldenTable(t *testing.T) {
	t.Parallel()
	got := "L leader, G gateway, A api, O operator, . nobody\n\n"
	for _, k := range kinds() {
		got += matrix(k) + "\n"
	}
	got += moves() + "\n" + guards()
	golden(t, filepath.Join("testdata", "transitions.golden"), got)
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run the test with -update where the change is meant")
}

func TestTerminalRowsNeverMove(t *testing.T) {
	t.Parallel()
	terminal := 0
	for _, state := range record.AttemptStates() {
		if !state.Terminal() {
			continue
		}
		terminal++
		for _, to := range record.Stages() {
			for _, by := range record.Actors() {
				a := rowIn(record.KindExec, record.Stage(state))
				_, err := a.Move(stepTo(a, to, by))
				require.ErrorContains(t, err, "move etl.20261201t023000z/load/1: ")
			}
		}
	}
	require.Equal(t, 6, terminal)
}

func TestMoveLeavesTheRowItWasAskedOf(t *testing.T) {
	t.Parallel()
	a := rowIn(record.KindExec, record.StageIntent)
	a.Transitions = append(make([]record.Transition, 0, 8), a.Transitions...)
	one, err := a.Move(record.Step{To: record.Running, By: record.Gateway, Who: "session/s-1", At: at(1), Rule: record.RuleClaim, Write: "w1"})
	require.NoError(t, err)
	two, err := a.Move(record.Step{To: record.Success, By: record.Gateway, Who: "session/s-1", At: at(2), Rule: record.RuleFinish, Write: "w2"})
	require.NoError(t, err)
	require.Len(t, a.Transitions, 1)
	require.Equal(t, record.WriteID("w1"), one.Wrote())
	require.Equal(t, record.WriteID("w2"), two.Wrote())
	require.Equal(t, at(2), two.EnteredAt)
	require.True(t, one.Claimed())
	require.False(t, two.Claimed())
}

func TestARowIsDispatchedOnce(t *testing.T) {
	t.Parallel()
	a := rowIn(record.KindExec, record.StageIntent)
	_, err := a.Move(record.Step{To: record.Queued, By: record.Leader, Token: "t2"})
	require.ErrorContains(t, err, "a row is dispatched once")
}

func TestARefusedRowIsMarkedAndNeverStarts(t *testing.T) {
	t.Parallel()
	a := rowIn(record.KindExec, record.StageIntent)
	a.EnteredAt = at(0)
	refused, err := a.Move(record.Step{To: record.Queued, By: record.Gateway, Who: "session/s-1", At: at(5), Rule: record.RuleProbe, Write: "w1"})
	require.NoError(t, err)
	require.Equal(t, &record.Mark{By: "session/s-1", At: at(5)}, refused.Refused)
	require.Equal(t, at(0), refused.EnteredAt, "the wait for a confirmation goes on")
	_, err = refused.Move(record.Step{To: record.Running, By: record.Gateway})
	require.ErrorContains(t, err, "nothing may start it")
	_, err = refused.Move(record.Step{To: record.Abandoned, By: record.Leader})
	require.NoError(t, err)
}

// guarded is a change that carries everything a row's move can be asked for.
func guarded(a record.Attempt, fresh bool) record.Change {
	row := record.At(record.AttemptKey(a.Ref()), 7)
	if fresh {
		row = record.Absent(record.AttemptKey(a.Ref()))
	}
	return record.Change{Expect: []record.Expect{
		row, record.At(record.AttemptKey(a.TaskRef().At(a.Attempt-1)), 5), record.Absent(record.AttemptKey(a.TaskRef().At(a.Attempt + 1))),
		record.At(record.RunKey(a.Run), 6), record.Empty(record.UnprovenOf(a.TaskRef())), record.Present(record.SignalKey(a.Run, "go")),
		record.At(record.SessionKey(a.Worker, a.Session), 4),
	}}
}

// guardsOf are those of all lines for the same step: one of them is enough.
func guardsOf(s record.AttemptStep) []record.Guard {
	var all []record.Guard
	for _, line := range record.AttemptTable() {
		if line.From == s.From && line.To == s.To && line.By == s.By {
			all = append(all, line.Guards...)
		}
	}
	return all
}

func TestLackingNamesEveryGuardThatWasLeftOut(t *testing.T) {
	t.Parallel()
	for _, s := range record.AttemptTable() {
		for _, kind := range s.Kinds {
			before, after := rowIn(kind, s.From), rowIn(kind, s.To)
			before.Attempt, after.Attempt = 2, 2
			after.Worker, after.Session = "w", "s-1"
			key := record.WorkerKey("w", "s-1")
			alive, gone := guarded(after, s.From == record.StageNone), guarded(after, s.From == record.StageNone)
			alive.Expect = append(alive.Expect, record.Present(key))
			gone.Expect = append(gone.Expect, record.Absent(key))
			whole := alive
			if slices.Contains(s.Guards, record.GuardSessionGone) {
				whole = gone
			}
			require.Nil(t, record.Lacking(whole, before, after, s.By), "%s -> %s by %s", s.From, s.To, s.By)
			for i := range whole.Expect {
				part := record.Change{Expect: slices.Delete(slices.Clone(whole.Expect), i, i+1)}
				require.Subset(t, guardsOf(s), record.Lacking(part, before, after, s.By))
			}
			require.NotEmpty(t, record.Lacking(record.Change{}, before, after, s.By))
		}
	}
	none := record.Lacking(record.Change{}, rowIn(record.KindExec, "success"), rowIn(record.KindExec, "failed"), record.Leader)
	require.Equal(t, []record.Guard{"no such transition"}, none)
}

func TestARunKeepsItsFirstTransitionAndTheLatest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3*record.MaxTransitions).Draw(t, "operator actions")
		r, err := record.Run{Run: "etl.a"}.Move(record.RunMove{To: record.RunRunning, By: record.API, At: at(0), Write: "w0"})
		require.NoError(t, err)
		require.Equal(t, at(0), r.CreatedAt)
		require.Equal(t, at(0), r.StartedAt)
		for i := range n {
			r, err = r.Move(record.RunMove{To: record.RunRunning, By: record.Operator, At: at(i + 1), Write: record.WriteID(fmt.Sprint("w", i+1))})
			require.NoError(t, err)
		}
		require.Len(t, r.Transitions, min(n+1, record.MaxTransitions))
		require.Equal(t, record.WriteID("w0"), r.Transitions[0].Write)
		for i, kept := range r.Transitions[1:] {
			require.Equal(t, record.WriteID(fmt.Sprint("w", n-len(r.Transitions)+2+i)), kept.Write)
		}
		require.Equal(t, at(0), r.EnteredAt, "a hold is no new state")
	})
}

func TestARunIsTimedByItsStates(t *testing.T) {
	t.Parallel()
	r, err := record.Run{Run: "etl.a"}.Move(record.RunMove{To: record.RunQueued, By: record.API, At: at(0)})
	require.NoError(t, err)
	require.True(t, r.StartedAt.IsZero())
	for i, m := range []record.RunMove{
		{To: record.RunRunning, By: record.Leader},
		{To: record.RunFailed, Phase: record.PhaseEnding, By: record.Leader, Cause: record.Because(record.CauseTasksFailed, "load")},
		{To: record.RunRunning, Phase: record.PhaseReopening, By: record.Operator},
		{To: record.RunRunning, By: record.Leader},
	} {
		m.At = at(i + 1)
		before := r
		r, err = r.Move(m)
		require.NoError(t, err)
		require.Len(t, before.Transitions, i+1)
		require.Equal(t, m.To.Terminal(), !r.EndedAt.IsZero())
		require.Equal(t, at(1), r.StartedAt)
		require.Equal(t, at(0), r.CreatedAt)
	}
	require.Equal(t, at(3), r.EnteredAt)
	require.True(t, r.Startable())
}
