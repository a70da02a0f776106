package cli

import (
	"fmt"
	"io"
	"strings"
)

// screen redraws a few lines of a terminal in place.
type screen struct {
	w     io.Writer
	drawn int // lines that the frame before took
}

// draw replaces the frame before by this one, in one write, so that it does
// not flicker. Lines are already cut to the terminal's width.
func (s *screen) draw(lines []string) {
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	for _, l := range lines {
		b.WriteString("\r" + l + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines)
	_, _ = io.WriteString(s.w, b.String())
}
