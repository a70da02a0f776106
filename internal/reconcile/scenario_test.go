package reconcile_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

var update = flag.Bool("update", false, "rewrite the expected part of testdata/*.txt")

// TestScenarios reads testdata/*.txt: a state in lines of a verb and key=value
// pairs, a line of dashes, and what a full pass makes of it. Times are counted
// from the world's beginning. With -update the second half is rewritten.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			given, want, ok := strings.Cut(string(text), "\n----\n")
			require.True(t, ok || *update, "a line of four dashes divides the state from what is expected")
			got := tell(play(t, given))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(given+"\n----\n"+got), 0o600))
				return
			}
			require.Equal(t, want, got, "run with -update and read the difference")
		})
	}
}

// stage builds a world from the lines of a scenario.
type stage struct {
	*world
	flowSpec *spec.Workflow
	begin    time.Time
}

// play builds the state and makes one pass over it.
func play(t *testing.T, given string) (reconcile.Result, time.Time) {
	t.Helper()
	s := &stage{world: newWorld(t), flowSpec: flowOf("w")}
	s.begin = s.now
	for _, line := range strings.Split(given, "\n") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		args := map[string]string{}
		for _, field := range strings.Fields(rest) {
			k, v, _ := strings.Cut(field, "=")
			args[k] = v
		}
		s.line(verb, args)
	}
	return reconcile.Pass(s.v, view.Touched{Full: true}, s.turn()), s.begin
}

func (s *stage) line(verb string, args map[string]string) {
	switch verb {
	case "", "#":
	case "task":
		s.task(args)
	case "run":
		s.flow(s.flowSpec)
		s.run(args)
	case "row":
		s.attempt(args)
	case "worker":
		s.enlist(record.WorkerName(args["name"]), record.SessionID(args["session"]), 1)
	case "session":
		s.set(record.Put{Key: record.SessionKey(record.WorkerName(args["name"]), record.SessionID(args["session"])), Value: record.Session{
			Worker: record.WorkerName(args["name"]), Session: record.SessionID(args["session"]), GoneAt: s.at(args["gone"]),
		}})
	case "clear":
		s.rev++
		s.put(record.ClearKey("w.one", 1), record.Clear{Run: "w.one", Seq: 1, Tasks: ids(args["tasks"]), At: s.now})
	case "now":
		s.now = s.at(args["at"])
	default:
		require.Fail(s.t, "unknown verb", verb)
	}
}

func ids(list string) (tasks []record.TaskID) {
	for _, id := range strings.Split(list, ",") {
		if id != "" {
			tasks = append(tasks, record.TaskID(id))
		}
	}
	return tasks
}

func (s *stage) at(offset string) time.Time {
	if offset == "" {
		return time.Time{}
	}
	return s.begin.Add(s.span(offset))
}

func (s *stage) span(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	require.NoError(s.t, err)
	return d
}

func (s *stage) number(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return n
}

func (s *stage) task(args map[string]string) {
	t := task(args["id"])
	t.Needs, t.TriggerRule = ids(args["needs"]), spec.TriggerRule(args["rule"])
	t.Idempotent, t.OnLost = args["idempotent"] == "yes", record.OnLost(args["on_lost"])
	t.Retries = spec.Retry{Limit: s.number(args["retries"]), Delay: record.Duration(s.span(args["delay"])), Backoff: 2}
	t.QueueTimeout, t.AllowFailure = record.Duration(s.span(args["queue_timeout"])), args["allow_failure"] == "yes"
	s.flowSpec.Tasks = append(s.flowSpec.Tasks, t)
}

func (s *stage) run(args map[string]string) {
	r := s.running("w.one")
	r.State, r.Deadline = record.RunState(args["state"]), s.at(args["deadline"])
	if args["paused"] == "yes" {
		r.Paused = &record.Hold{By: "ann", At: s.begin}
	}
	s.start(r)
}

func (s *stage) attempt(args map[string]string) {
	i := 0
	for s.flowSpec.Tasks[i].ID != record.TaskID(args["task"]) {
		i++
	}
	t := s.flowSpec.Tasks[i]
	a := record.Attempt{
		Run: "w.one", Task: t.ID, Attempt: s.number(args["n"]), Kind: record.KindExec, State: record.AttemptState(args["state"]),
		EnteredAt: s.begin.Add(s.span(args["at"])), NotBefore: s.at(args["not_before"]), Idempotent: t.Idempotent, OnLost: t.Lost(),
		Failures: s.number(args["failures"]), Losses: s.number(args["losses"]), Cause: record.Because(record.CauseCode(args["cause"]), ""),
		TTL: record.Duration(15 * time.Second),
	}
	if args["session"] != "" {
		a.Token, a.Worker, a.Session = "token", "w1", record.SessionID(args["session"])
	}
	for _, state := range []record.AttemptState{record.Queued, a.State} {
		a.Transitions = append(a.Transitions, record.Transition{State: string(state), At: a.EnteredAt, By: "replica/r1", Write: "set"})
	}
	s.set(record.Put{Key: record.AttemptKey(a.Ref()), Value: a})
}

// tell writes a result for people.
func tell(res reconcile.Result, begin time.Time) string {
	var b strings.Builder
	since := func(at time.Time) string { return at.Sub(begin).String() }
	for _, c := range res.Changes {
		fmt.Fprintf(&b, "change %s\n", c.Rule)
		for _, e := range c.Expect {
			fmt.Fprintf(&b, "  expect %s\n", expectation(e))
		}
		for _, p := range c.Put {
			fmt.Fprintf(&b, "  put %s %s\n", name(p.Key), value(p.Value, since))
		}
		for _, d := range c.Delete {
			fmt.Fprintf(&b, "  delete %s\n", name(d.Key))
		}
	}
	for _, r := range res.Ready {
		fmt.Fprintf(&b, "ready %s since %s\n", r.Ref, since(r.Since))
	}
	for _, w := range res.Waits {
		fmt.Fprintf(&b, "wait %s %s since %s by %s", w.Task, w.Reason, since(w.Since), name(w.Key))
		if !w.Until.IsZero() {
			fmt.Fprintf(&b, " until %s", since(w.Until))
		}
		b.WriteString("\n")
	}
	if !res.Wake.IsZero() {
		fmt.Fprintf(&b, "wake %s\n", since(res.Wake))
	}
	for _, err := range res.Faults {
		fmt.Fprintf(&b, "fault %v\n", err)
	}
	return b.String()
}

func name(k record.Key) string {
	text := string(k.Family)
	for _, part := range []string{string(k.Run), string(k.Task), k.Name, string(k.Session)} {
		if part != "" {
			text += "/" + part
		}
	}
	if k.N != 0 {
		text += "/" + strconv.FormatInt(k.N, 10)
	}
	return text
}

func expectation(e record.Expect) string {
	if e.Ranged() {
		return fmt.Sprintf("%s %s of %s", e.Range.Family, e.Want, e.Range.Run)
	}
	return name(e.Key) + " " + string(e.Want)
}

func value(v record.Value, since func(time.Time) string) string {
	switch v := v.(type) {
	case record.Attempt:
		text := string(v.State)
		if v.Cause.Code != "" {
			text += " (" + string(v.Cause.Code) + ")"
		}
		if !v.NotBefore.IsZero() {
			text += " not before " + since(v.NotBefore)
		}
		return text + fmt.Sprintf(", %d failures, %d losses, %d abandons", v.Failures, v.Losses, v.Abandons)
	case record.Run:
		return fmt.Sprintf("%s %s (%s: %s)", v.State, v.Phase, v.Cause.Code, v.Cause.Text)
	case record.Session:
		return "gone at " + since(v.GoneAt)
	default:
		return ""
	}
}
