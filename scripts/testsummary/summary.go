package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build events, with a variant in brackets
	Test        string
	Output      string
	FailedBuild string // the ImportPath whose build events tell why
}

// tally counts the ends of one test; with -count there are several.
type tally struct{ passed, failed, skipped int }

// unit is one test package and what is known of its tests so far.
type unit struct {
	name    string
	tests   map[string]*tally
	output  map[string]*strings.Builder // by test, "" is the package itself
	running map[string]bool
	reasons map[string]string // why a test was skipped
	broken  bool              // failed without a failed test
	ended   bool
}

// summary is the state of the whole stream.
type summary struct {
	out   io.Writer
	units map[string]*unit
	build map[string]*strings.Builder // by ImportPath
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, units: map[string]*unit{}, build: map[string]*strings.Builder{}}
}

// read takes the whole stream. Lines that are no events are passed through.
func (s *summary) read(in io.Reader) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(s.out, line)
			} else {
				s.add(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}

func (s *summary) add(e event) {
	switch e.Action {
	case "build-output":
		buffer(s.build, e.ImportPath).WriteString(e.Output)
		return
	case "build-fail":
		return
	}
	u := s.unit(e.Package)
	switch e.Action {
	case "run":
		u.running[e.Test] = true
	case "output":
		// What the runner says of its own progress (=== RUN, PAUSE, CONT) tells
		// nothing about a failure.
		if !strings.HasPrefix(e.Output, "=== ") {
			buffer(u.output, e.Test).WriteString(e.Output)
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(u, e)
			return
		}
		s.endTest(u, e)
	}
}

func (s *summary) endTest(u *unit, e event) {
	t := u.tests[e.Test]
	if t == nil {
		t = &tally{}
		u.tests[e.Test] = t
	}
	delete(u.running, e.Test)
	text := buffer(u.output, e.Test).String()
	delete(u.output, e.Test)
	switch e.Action {
	case "pass":
		t.passed++
	case "fail":
		t.failed++
		fmt.Fprint(s.out, text)
	case "skip":
		t.skipped++
		u.reasons[e.Test] = reason(text)
	}
}

func (s *summary) endPackage(u *unit, e event) {
	u.ended = true
	text := buffer(u.output, "").String()
	if e.Action != "fail" {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "? ") {
				fmt.Fprint(s.out, line)
			}
		}
		return
	}
	if b := s.build[e.FailedBuild]; b != nil {
		fmt.Fprint(s.out, b.String())
	}
	for _, test := range sortedKeys(u.running) {
		// The process died under these: each is a failure, and the output of one
		// holds the reason.
		u.tests[test] = &tally{failed: 1}
		fmt.Fprint(s.out, buffer(u.output, test).String())
	}
	fmt.Fprint(s.out, text)
	u.broken = true
	for _, t := range u.tests {
		if t.failed > 0 {
			u.broken = false
		}
	}
}

// close prints the lists and the closing line, and says whether all is well.
func (s *summary) close() bool {
	var total tally
	var failed, skipped []string
	for _, name := range sortedKeys(s.units) {
		u := s.units[name]
		if u.broken || !u.ended {
			total.failed++
			failed = append(failed, u.name)
		}
		for _, test := range sortedKeys(u.tests) {
			t := *u.tests[test]
			if u.isParent(test) {
				t = u.ownFailures(test)
			}
			total.passed += t.passed
			total.failed += t.failed
			total.skipped += t.skipped
			if t.failed > 0 {
				failed = append(failed, u.name+" "+test)
			}
			if t.skipped > 0 {
				skipped = append(skipped, u.name+" "+test+": "+u.reasons[test])
			}
		}
	}
	list(s.out, "skipped", skipped)
	list(s.out, "failed", failed)
	if total == (tally{}) {
		fmt.Fprintln(s.out, "no test ran: nothing matches")
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", total.passed, total.failed, total.skipped)
	return total.failed == 0 && total != (tally{})
}

func (s *summary) unit(name string) *unit {
	u := s.units[name]
	if u == nil {
		u = &unit{
			name: name, tests: map[string]*tally{}, output: map[string]*strings.Builder{},
			running: map[string]bool{}, reasons: map[string]string{},
		}
		s.units[name] = u
	}
	return u
}

// isParent says that test has subtests, which are counted in its place.
func (u *unit) isParent(test string) bool {
	for other := range u.tests {
		if strings.HasPrefix(other, test+"/") {
			return true
		}
	}
	return false
}

// ownFailures is what a parent counts itself: its failure where no subtest
// bears one.
func (u *unit) ownFailures(test string) tally {
	for other, t := range u.tests {
		if strings.HasPrefix(other, test+"/") && t.failed > 0 {
			return tally{}
		}
	}
	return tally{failed: u.tests[test].failed}
}

// reason takes the last message from the output of a skipped test.
func reason(text string) string {
	last := "no reason given"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if _, message, ok := strings.Cut(line, ".go:"); ok {
			if _, message, ok = strings.Cut(message, ": "); ok {
				last = message
			}
		}
	}
	return last
}

func list(out io.Writer, title string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(out, "%s:\n  %s\n", title, strings.Join(names, "\n  "))
	}
}

func buffer(m map[string]*strings.Builder, key string) *strings.Builder {
	if m[key] == nil {
		m[key] = &strings.Builder{}
	}
	return m[key]
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
