package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// none stands for what is not there.
const none = "-"

// runState is the word for a run's state.
func runState(s writv1.RunState) string { return word(s.String(), "RUN_STATE_") }

// taskState is the word for a task's state; none before its first attempt.
func taskState(s writv1.TaskState) string {
	if s == writv1.TaskState_TASK_STATE_UNSPECIFIED {
		return none
	}
	return word(s.String(), "TASK_STATE_")
}

// word turns the name of an enumeration's value into the word of the manual.
func word(name, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(name, prefix))
}

// stateColour is the colour of a run's or a task's state.
func stateColour(state string) colour {
	switch state {
	case "success":
		return green
	case "failed", "upstream_failed":
		return red
	case "cancelled", "cancelling", "abandoned":
		return yellow
	case "running":
		return blue
	case "skipped", none:
		return dim
	default:
		return plain
	}
}

// terminalTask says that an attempt's state is its last.
func terminalTask(s writv1.TaskState) bool {
	switch s {
	case writv1.TaskState_TASK_STATE_UNSPECIFIED, writv1.TaskState_TASK_STATE_QUEUED, writv1.TaskState_TASK_STATE_RUNNING:
		return false
	default:
		return true
	}
}

// took is a duration for people.
func took(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// span is the time between two instants, or none where the first is not there;
// where the second is not there it has not ended yet.
func span(from, to *timestamppb.Timestamp, now time.Time) string {
	if from == nil {
		return none
	}
	end := now
	if to != nil {
		end = to.AsTime()
	}
	return took(end.Sub(from.AsTime()))
}

// instant is a time for people, in UTC.
func instant(t *timestamppb.Timestamp) string {
	if t == nil {
		return none
	}
	return t.AsTime().UTC().Format("2006-01-02 15:04:05Z")
}

// clock is the time of the day in UTC.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// seconds is a duration field for people.
func seconds(d *durationpb.Duration) string {
	if d == nil {
		return none
	}
	return took(d.AsDuration())
}

// size is a number of bytes for people.
func size(n int64) string {
	const kilo = 1024
	switch {
	case n < kilo:
		return strconv.FormatInt(n, 10) + " B"
	case n < kilo*kilo:
		return fmt.Sprintf("%.1f KiB", float64(n)/kilo)
	case n < kilo*kilo*kilo:
		return fmt.Sprintf("%.1f MiB", float64(n)/kilo/kilo)
	default:
		return fmt.Sprintf("%.1f GiB", float64(n)/kilo/kilo/kilo)
	}
}

// or is s, or none.
func or(s string) string {
	if s == "" {
		return none
	}
	return s
}

// count is a number with its word in the right form.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// some names the first few of a list.
func some(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}
