package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// board is a run as it is followed: what the stream has told so far.
type board struct {
	run    *writv1.Run
	order  []string // names of tasks, as the workflow has them
	tasks  map[string]*writv1.TaskStatus
	states map[string]writv1.TaskState
	told   map[string]int // transitions of an attempt that changes has told
	toldOf int            // and of the run
}

func newBoard() *board {
	return &board{
		tasks: make(map[string]*writv1.TaskStatus), states: make(map[string]writv1.TaskState),
		told: make(map[string]int),
	}
}

// merge takes one message of the stream.
func (b *board) merge(m *writv1.WatchRunResponse) {
	if m.GetRun() != nil {
		b.run = m.GetRun()
	}
	for _, t := range m.GetTasks() {
		name := taskName(t.GetTask(), t.GetInstance())
		if _, known := b.tasks[name]; !known {
			b.order = append(b.order, name)
		}
		b.tasks[name], b.states[name] = t, t.GetState()
	}
}

// news is one line for people, with the time that it is about.
type news struct {
	at   time.Time
	text string
}

// changes are the lines for what a message tells that no message before it
// told. It is called with every message, after merge.
func (b *board) changes(m *writv1.WatchRunResponse) []string {
	var all []news
	if ts := b.run.GetTransitions(); len(ts) > b.toldOf {
		for _, t := range ts[b.toldOf:] {
			all = append(all, news{t.GetAt().AsTime(), fmt.Sprintf("run %s %s", b.run.GetRun(), t.GetState())})
		}
		b.toldOf = len(ts)
	}
	for _, t := range m.GetTasks() {
		for _, at := range t.GetAttempts() {
			name := fmt.Sprintf("%s attempt %d", taskName(t.GetTask(), t.GetInstance()), at.GetAttempt())
			for i := b.told[name]; i < len(at.GetTransitions()); i++ {
				all = append(all, news{at.GetTransitions()[i].GetAt().AsTime(), change(name, at, i)})
			}
			b.told[name] = max(b.told[name], len(at.GetTransitions()))
		}
	}
	slices.SortStableFunc(all, func(x, y news) int { return x.at.Compare(y.at) })
	lines := make([]string, len(all))
	for i, n := range all {
		lines[i] = clock(n.at) + " " + n.text
	}
	return lines
}

// change is the line for one transition of an attempt.
func change(name string, at *writv1.Attempt, i int) string {
	t := at.GetTransitions()[i]
	line := name + " " + t.GetState()
	last := i == len(at.GetTransitions())-1
	switch {
	case t.GetState() == "running":
		line += " on " + at.GetWorker()
	case t.GetState() == "queued" && (t.GetRule() == "start" || t.GetRule() == "dispatch") && at.GetWorker() != "":
		line += " for " + at.GetWorker()
	case last && terminalTask(at.GetState()) && at.GetWorker() != "":
		line += " after " + attemptSpan(at, t.GetAt().AsTime())
	}
	if last && t.GetState() != "success" && because(at) != "" {
		line += ": " + because(at)
	}
	return line
}

// summary is the run in one line; a width above 0 cuts it.
func (b *board) summary(now time.Time, width int, painted bool) string {
	r := b.run
	state := runState(r.GetState())
	rest := span(r.GetStartedAt(), r.GetEndedAt(), now)
	if t := tallies(r.GetTasks()); t != "" {
		rest += "  " + t
	}
	if r.GetCause().GetText() != "" && r.GetState() != writv1.RunState_RUN_STATE_SUCCESS {
		rest += "  " + oneLine(r.GetCause().GetText())
	}
	cells := []cell{{r.GetRun(), bold}, {state, stateColour(state)}, {rest, plain}}
	return line(cells, make([]int, len(cells)), nil, width, painted)
}

// tallies are the numbers of tasks by state.
func tallies(tasks map[string]int32) string {
	words := []string{
		"success", "running", "queued", "failed", "upstream_failed", "skipped", "cancelled", "abandoned", "none",
	}
	var parts []string
	for _, w := range words {
		if n := tasks[w]; n > 0 {
			name := w
			if w == "none" {
				name = "to come"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	return strings.Join(parts, ", ")
}

// lines is the board as a table that fits a terminal; a height of 0 has no
// bound.
func (b *board) lines(now time.Time, width, height int, painted bool) []string {
	if b.run == nil {
		return nil
	}
	shown := b.order
	const around = 3 // head, summary, and the line that counts the rest
	if height > 0 && len(shown) > max(1, height-around) {
		shown = b.busiest(max(1, height-around))
	}
	t := taskTable()
	for _, name := range shown {
		addTask(t, b.tasks[name], b.states, now)
	}
	lines := t.lines(width, painted)
	if rest := len(b.order) - len(shown); rest > 0 {
		lines = append(lines, paint(fmt.Sprintf("and %s more", count(rest, "task", "tasks")), dim, painted))
	}
	return append(lines, b.summary(now, width, painted))
}

// busiest picks the tasks that a person would look for first, and keeps their
// order: what runs, what failed, what is queued, then the rest.
func (b *board) busiest(limit int) []string {
	rank := func(name string) int {
		switch b.states[name] {
		case writv1.TaskState_TASK_STATE_RUNNING:
			return 0
		case writv1.TaskState_TASK_STATE_FAILED:
			return 1
		case writv1.TaskState_TASK_STATE_QUEUED:
			return 2
		case writv1.TaskState_TASK_STATE_UNSPECIFIED:
			return 3
		default:
			return 4
		}
	}
	picked := slices.Clone(b.order)
	slices.SortStableFunc(picked, func(x, y string) int { return rank(x) - rank(y) })
	picked = picked[:min(limit, len(picked))]
	keep := make(map[string]bool, len(picked))
	for _, name := range picked {
		keep[name] = true
	}
	return slices.DeleteFunc(slices.Clone(b.order), func(name string) bool { return !keep[name] })
}
