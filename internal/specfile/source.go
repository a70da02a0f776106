package specfile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/writ-sched/writ/internal/spec"
)

const (
	// MaxBytes is the largest file that is read.
	MaxBytes = spec.MaxBytes
	// MaxDepth is how deep the values of a file may nest.
	MaxDepth = 100
)

// load reads the one document of src and returns its top value.
func load(b *blame, src []byte) *yaml.Node {
	if len(src) > MaxBytes {
		b.add(mark{}, nil, "split it into several workflows", "is %d bytes long, at most %d are allowed", len(src), MaxBytes)
		return nil
	}
	if !checkBytes(b, src) {
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(src))
	if err != nil {
		b.add(mark{}, nil, "", "cannot be read: %v", err)
		return nil
	}
	var doc, second yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		b.add(mark{1, 1}, nil, "a workflow has at least name and tasks", "the file is empty, expected a workflow")
		return nil
	case err != nil:
		syntax(b, src, err)
		return nil
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		syntax(b, src, err)
		return nil
	default:
		b.add(mark{second.Line, second.Column}, nil, "put each workflow into a file of its own", "a second document begins here, expected one")
		return nil
	}
	return doc.Content[0]
}

// checkBytes refuses what is not text, with its place; YAML's own reader does
// not know the place.
func checkBytes(b *blame, src []byte) bool {
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.add(place(src, i), nil, "save the file as UTF-8", "byte 0x%02X is not valid UTF-8", src[i])
			return false
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7F && r < 0xA0 && r != 0x85, r == 0xFFFE, r == 0xFFFF:
			b.add(place(src, i), nil, `write it as an escape in double quotes, such as "\x1b"`, "the control character U+%04X is not allowed", r)
			return false
		}
		i += size
	}
	return true
}

// place is the line and column of a byte.
func place(src []byte, at int) mark {
	before := src[:at]
	line := bytes.Count(before, []byte("\n"))
	start := bytes.LastIndexByte(before, '\n') + 1
	return mark{line + 1, utf8.RuneCount(before[start:]) + 1}
}

// syntax turns an error of the YAML parser into a problem.
func syntax(b *blame, src []byte, err error) {
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		b.add(mark{}, nil, "", "is not YAML: %v", err)
		return
	}
	at := mark{load.Mark.Line, load.Mark.Column}
	text := load.Message
	if load.ContextMsg != "" {
		text += " " + load.ContextMsg
	}
	hint := ""
	switch {
	case tabbed(src, at.line):
		hint = "indent with spaces, YAML takes no tabs"
	case strings.Contains(text, "mapping values are not allowed"):
		hint = "quote a text that holds a colon and a space, and look at the indent"
	case strings.Contains(text, "cannot start any token"):
		hint = "quote a text that begins with @, ` or %"
	case strings.Contains(text, "unknown anchor"):
		hint = "quote a text that begins with *"
	case strings.Contains(text, "exceeded max depth"):
		text = "is nested too deep"
	case load.ContextMark.Line > 0 && load.ContextMark.Line != at.line:
		b.add(at, nil, hint, "is not YAML: %s that began at line %d", text, load.ContextMark.Line)
		return
	}
	b.add(at, nil, hint, "is not YAML: %s", text)
}

// tabbed says that a line is indented with a tab.
func tabbed(src []byte, line int) bool {
	for n := 1; ; n++ {
		text, rest, more := bytes.Cut(src, []byte("\n"))
		if n == line {
			indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
			return bytes.IndexByte(indent, '\t') >= 0
		}
		if !more {
			return false
		}
		src = rest
	}
}
