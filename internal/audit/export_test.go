package audit

import (
	"fmt"
	"slices"

	"github.com/writ-sched/writ/internal/spec"
)

// Relation is the audit's own relation of attempts, line by line.
func Relation() []string {
	var all []string
	for _, l := range relation() {
		for _, k := range l.kinds {
			all = append(all, fmt.Sprintf("%s -> %s by %s of %s", l.from, l.to, l.by, k))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// RunRelation is that of runs.
func RunRelation() []string {
	var all []string
	for _, l := range runRelation() {
		all = append(all, fmt.Sprintf("%q %q -> %q %q by %s", l.from, l.in, l.to, l.into, l.by))
	}
	slices.Sort(all)
	return all
}

// Judge is what a trigger rule says of the ends that there are.
func Judge(r spec.TriggerRule, good, bad, skip bool, open int) string {
	return string(judge(r, ends{good: good, bad: bad, skip: skip}, open))
}
