package specfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-sched/writ/internal/spec"
)

// Problem is one thing wrong with a workflow file.
type Problem struct {
	File string
	// Line and Column count from 1; 0 where the problem has no place.
	Line, Column int
	// Field is the path from the top, such as tasks.count.retries.limit; it
	// may be empty.
	Field string
	// Text says what is wrong and what was expected.
	Text string
	// Hint says what to do about it; it may be empty.
	Hint string
}

// String is the problem on one line: `file:line:col: field: text (hint: …)`.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Text)
	if p.Hint != "" {
		b.WriteString(" (hint: " + p.Hint + ")")
	}
	return b.String()
}

// InvalidError is a file that was refused, with every problem found.
type InvalidError struct {
	File     string
	Problems []Problem
}

// Error has one line for each problem.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// mark is a place in the file.
type mark struct{ line, column int }

// blame gathers the problems of one stage.
type blame struct {
	file string
	list []Problem
	more bool
}

func (b *blame) add(at mark, path spec.Path, hint, format string, args ...any) {
	if len(b.list) >= spec.MaxProblems {
		b.more = true
		return
	}
	b.list = append(b.list, Problem{
		File: b.file, Line: at.line, Column: at.column, Field: path.String(), Text: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// err returns what was gathered, in the order of the file; nil where nothing
// was.
func (b *blame) err() error {
	if len(b.list) == 0 {
		return nil
	}
	slices.SortStableFunc(b.list, func(p, q Problem) int {
		return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
	})
	list := b.list
	if b.more {
		list = append(list, Problem{File: b.file, Text: fmt.Sprintf("has more problems than the %d that are shown", spec.MaxProblems)})
	}
	return &InvalidError{File: b.file, Problems: list}
}
