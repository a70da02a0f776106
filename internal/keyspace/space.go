package keyspace

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/writ-sched/writ/internal/record"
)

// DefaultCluster is the name of a cluster that has none.
const DefaultCluster = "default"

// root is what the keys of all clusters begin with.
const root = "/writ/"

// maxHour turns hours around, so that the newest stand first: seven digits
// last until the year 3110.
const maxHour = 9_999_999

// Space is the keys of one cluster. The zero Space has none; make one with New.
type Space struct {
	prefix string
}

// New returns the space of a cluster; an empty name means DefaultCluster.
func New(cluster string) (Space, error) {
	if cluster == "" {
		cluster = DefaultCluster
	}
	if err := record.CheckName(cluster, record.MaxName); err != nil {
		return Space{}, fmt.Errorf("cluster %w", err)
	}
	return Space{prefix: root + cluster + "/"}, nil
}

// Prefix is what every key of the space begins with, ending in a slash.
func (s Space) Prefix() string { return s.prefix }

// ElectionPrefix is what the keys of all candidates begin with, ending in a
// slash.
func (s Space) ElectionPrefix() string { return s.prefix + folder(record.FamilyElection) }

// Everything is the interval of all keys of the space.
func (s Space) Everything() (from, to string) { return s.prefix, end(s.prefix) }

// Active is the interval of the watched keys.
func (s Space) Active() (from, to string) { return s.prefix + active, end(s.prefix + active) }

// active is what the keys of all watched families begin with.
const active = "active/"

// folder is what the keys of a family begin with. Heads of revisions share it
// with their chunks, and heads of ended runs with their pages.
func folder(f record.Family) string {
	switch f {
	case record.FamilyChunk:
		return folder(record.FamilyRevision)
	case record.FamilyEnded, record.FamilyPage:
		return "ended/runs/"
	case record.FamilyIndex:
		return "ended/index/"
	case record.FamilyMeta, record.FamilyCompact:
		return string(f)
	default:
		if f.Active() {
			return active + string(f) + "/"
		}
		return string(f) + "/"
	}
}

// end is the first key behind all that begin with prefix.
func end(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string(prefix[last]+1)
}

// Key is the key string of a record.
func (s Space) Key(k record.Key) string {
	return s.prefix + folder(k.Family) + strings.Join(parts(k), "/")
}

// parts are the segments of a key behind the folder of its family.
func parts(k record.Key) []string {
	run, name := escape(string(k.Run)), escape(k.Name)
	switch k.Family {
	case record.FamilyMeta, record.FamilyCompact:
		return nil
	case record.FamilyElection:
		return []string{strconv.FormatInt(k.N, 16)}
	case record.FamilyRun, record.FamilyInput, record.FamilyEnded:
		return []string{run}
	case record.FamilyClear:
		return []string{run, number(k.N)}
	case record.FamilyAttempt, record.FamilyUnproven, record.FamilyResult:
		return []string{run, task(k.Task, k.Instance), number(k.N)}
	case record.FamilyWorker, record.FamilySession:
		return []string{name, escape(string(k.Session))}
	case record.FamilyHolder, record.FamilyRevision:
		return []string{name, number(k.N)}
	case record.FamilyChunk:
		return []string{name, number(k.N), number(int64(k.Part))}
	case record.FamilySignal:
		if k.Run == "" {
			return []string{name}
		}
		return []string{run, name}
	case record.FamilyPage:
		return []string{run, number(int64(k.Part))}
	case record.FamilyIndex:
		return []string{fmt.Sprintf("%07d", maxHour-k.Hour), run}
	default: // replicas, workflows, pools, backfills
		return []string{name}
	}
}

// number writes n so that key order is the order of numbers.
func number(n int64) string { return fmt.Sprintf("%05d", n) }

// task writes a task as record.TaskRef.Name does.
func task(t record.TaskID, i record.Instance) string {
	if i == "" {
		return escape(string(t))
	}
	return escape(string(t)) + "." + escape(string(i))
}

// Range is the interval of key strings that holds the keys of r: those from
// from on, to excluded. Where r is not Exact, others lie in it too, which a
// reader tells by record.Range.Has.
func (s Space) Range(r record.Range) (from, to string) {
	parts, whole, _ := lead(r)
	path := s.prefix + folder(r.Family) + strings.Join(parts, "/")
	if whole {
		return path, path + "\x00"
	}
	if len(parts) > 0 {
		path += "/"
	}
	return path, end(path)
}

// Exact says that the interval of r holds the keys of r and no others. Only
// such a range may stand in a change.
func (s Space) Exact(r record.Range) bool {
	_, _, exact := lead(r)
	return exact
}

// lead returns the segments that all keys of r begin with, whether they are a
// whole key, and whether no other keys begin with them.
func lead(r record.Range) (parts []string, whole, exact bool) {
	run, name := r.Run != "", r.Name != ""
	runOnly := !name && r.Task == "" && r.N == 0
	nameOnly := !run && r.Task == "" && r.N == 0
	switch r.Family {
	case record.FamilyMeta, record.FamilyCompact:
		return nil, true, runOnly && !run
	case record.FamilyRun, record.FamilyInput, record.FamilyEnded:
		if run {
			return []string{escape(string(r.Run))}, true, runOnly
		}
		return nil, false, runOnly && r.Family != record.FamilyEnded
	case record.FamilyClear, record.FamilyPage, record.FamilySignal:
		if run {
			return []string{escape(string(r.Run))}, false, runOnly
		}
		return nil, false, runOnly && r.Family != record.FamilyPage
	case record.FamilyAttempt, record.FamilyUnproven, record.FamilyResult:
		if run && r.Task != "" {
			return []string{escape(string(r.Run)), task(r.Task, r.Instance)}, false, !name && r.N == 0
		}
		if run {
			return []string{escape(string(r.Run))}, false, runOnly
		}
		return nil, false, runOnly
	case record.FamilyWorker, record.FamilySession, record.FamilyHolder:
		if name {
			return []string{escape(r.Name)}, false, nameOnly
		}
		return nil, false, nameOnly
	case record.FamilyRevision, record.FamilyChunk:
		return leadRevision(r)
	case record.FamilyElection, record.FamilyIndex:
		return nil, false, runOnly && !run
	default: // replicas, workflows, pools, backfills
		if name {
			return []string{escape(r.Name)}, true, nameOnly
		}
		return nil, false, nameOnly
	}
}

func leadRevision(r record.Range) (parts []string, whole, exact bool) {
	switch {
	case r.Name == "":
		return nil, false, false
	case r.N == 0:
		return []string{escape(r.Name)}, false, false
	default:
		return []string{escape(r.Name), number(r.N)}, r.Family == record.FamilyRevision, r.Run == "" && r.Task == ""
	}
}

// escape writes every byte but letters, digits, `_`, `.` and `-` as % and two
// hexadecimal digits.
func escape(s string) string {
	plain := true
	for i := range len(s) {
		plain = plain && bare(s[i])
	}
	if plain {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if bare(s[i]) {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}
	return b.String()
}

func bare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}
