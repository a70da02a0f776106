package etcd

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrTooOld means that an etcd is of a version whose reads may be stale.
var ErrTooOld = errors.New("etcd version is not supported")

// Version is a release of etcd, as its status answer states it.
type Version struct {
	// Major, Minor and Patch are the three numbers.
	Major, Minor, Patch int
	// Pre is what follows a hyphen (rc.0) and is empty for a release.
	Pre string
}

// ParseVersion reads a version such as 3.6.14 or 3.7.0-rc.0.
func ParseVersion(text string) (Version, error) {
	core, _, _ := strings.Cut(text, "+")
	core, pre, hyphen := strings.Cut(core, "-")
	parts := strings.Split(core, ".")
	if len(parts) != 3 || (hyphen && pre == "") {
		return Version{}, fmt.Errorf("etcd version %q: expected three numbers, such as 3.7.3", text)
	}
	var numbers [3]int
	for i, part := range parts {
		number, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return Version{}, fmt.Errorf("etcd version %q: expected three numbers, such as 3.7.3", text)
		}
		numbers[i] = int(number)
	}
	return Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2], Pre: pre}, nil
}

// String writes the version as etcd does.
func (v Version) String() string {
	text := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	if v.Pre != "" {
		text += "-" + v.Pre
	}
	return text
}

// Compare orders versions by age; a pre-release comes before its release.
func (v Version) Compare(w Version) int {
	return cmp.Or(v.compareLine(w), cmp.Compare(v.Patch, w.Patch), comparePre(v.Pre, w.Pre))
}

// compareLine orders the release lines (3.6, 3.7) alone.
func (v Version) compareLine(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor))
}

// comparePre orders pre-releases as semantic versioning does.
func comparePre(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a)) // the empty one is the release, and later
	}
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		if order := compareIdentifier(as[i], bs[i]); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(as), len(bs))
}

// compareIdentifier orders numbers by value, words by text, numbers first.
func compareIdentifier(a, b string) int {
	na, errA := strconv.Atoi(a)
	nb, errB := strconv.Atoi(b)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(na, nb)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	default:
		return strings.Compare(a, b)
	}
}

// releases holds the first good version of each release line, oldest first.
type releases []Version

// reached reports that a version is at or past the list: past the entry of its
// own line, or of a line newer than some line listed. A line older than all
// listed ones never got the good version.
func (r releases) reached(v Version) bool {
	newer := false
	for _, first := range r {
		switch order := v.compareLine(first); {
		case order == 0:
			return v.Compare(first) >= 0
		case order > 0:
			newer = true
		}
	}
	return newer
}

// String lists the versions.
func (r releases) String() string {
	texts := make([]string, len(r))
	for i, v := range r {
		texts[i] = v.String()
	}
	return strings.Join(texts, ", ")
}

// floor lists the first versions without stale linearizable reads.
func floor() releases {
	return releases{{3, 5, 28, ""}, {3, 6, 9, ""}, {3, 7, 0, ""}}
}

// recommended lists the versions that writ is at ease with.
func recommended() releases {
	return releases{{3, 6, 14, ""}, {3, 7, 3, ""}}
}

// Supported returns an error that wraps ErrTooOld for a version on which a
// linearizable read may return stale data, since no guard survives that.
func (v Version) Supported() error {
	if floor().reached(v) {
		return nil
	}
	return fmt.Errorf("%w: %s can answer linearizable reads with stale data (etcd-io/etcd#20418, #21375); fixed in %s (hint: upgrade to %s)", ErrTooOld, v, floor(), recommended())
}
