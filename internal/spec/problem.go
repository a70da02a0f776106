package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// Path names a place in a workflow: the keys from the top, as in the file. An
// element of a list is "[0]", "[1]" and so on, see [Element].
type Path []string

// Element is the part of a path that names the i-th element of a list.
func Element(i int) string { return "[" + strconv.Itoa(i) + "]" }

// At returns the path of something below p. It never changes p.
func (p Path) At(parts ...string) Path {
	return append(append(make(Path, 0, len(p)+len(parts)), p...), parts...)
}

// String joins the parts with dots, `tasks.count.needs[1]`. A key that is not
// plain is quoted.
func (p Path) String() string {
	var b strings.Builder
	for _, part := range p {
		if strings.HasPrefix(part, "[") && strings.HasSuffix(part, "]") {
			b.WriteString(part)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(plainKey(part))
	}
	return b.String()
}

func plainKey(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
	if plain {
		return s
	}
	return strconv.Quote(Clip(s, 70))
}

// Problem is one thing that is wrong with a workflow, or with what a run was
// to be started with.
type Problem struct {
	Path Path
	// Text says what is wrong and what was expected.
	Text string
	// Hint says what to do about it; it may be empty.
	Hint string
}

// String is the problem on one line.
func (p Problem) String() string {
	s := p.Text
	if len(p.Path) > 0 {
		s = p.Path.String() + ": " + s
	}
	if p.Hint != "" {
		s += " (hint: " + p.Hint + ")"
	}
	return s
}

// InvalidError is a workflow or a set of parameters that was refused, with
// every problem found.
type InvalidError struct{ Problems []Problem }

// Error has one line for each problem.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// MaxProblems bounds the problems that one check reports: a generated file
// that is wrong in one way is wrong in it a thousand times.
const MaxProblems = 100

// problems gathers up to MaxProblems of them, and says where it stopped.
type problems struct {
	list []Problem
	more bool
}

func (ps *problems) full() bool { return len(ps.list) >= MaxProblems }

func (ps *problems) add(at Path, hint, format string, args ...any) {
	if ps.full() {
		ps.more = true
		return
	}
	ps.list = append(ps.list, Problem{Path: at, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// done returns what was gathered.
func (ps *problems) done() []Problem {
	if ps.more {
		return append(ps.list, Problem{Text: fmt.Sprintf("has more problems than the %d that are shown", MaxProblems)})
	}
	return ps.list
}

// Clip shortens s to about n bytes for a message, never inside a character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

func quote(s string) string { return strconv.Quote(Clip(s, 70)) }
