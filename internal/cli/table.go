package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cell is one field of a table. Its colour never takes room.
type cell struct {
	text   string
	colour colour
}

// colour is an ANSI attribute, or empty.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	blue   colour = "34"
)

// table lays rows out in aligned columns.
type table struct {
	head  []string
	right []int // columns that are aligned right, such as numbers
	rows  [][]cell
}

// row adds a row of plain texts.
func (t *table) row(texts ...string) {
	cells := make([]cell, len(texts))
	for i, s := range texts {
		cells[i] = cell{text: s}
	}
	t.rows = append(t.rows, cells)
}

// gap stands between two columns.
const gap = 2

// lines lays the table out. A width above 0 cuts the lines, and the last
// column with them; colours are used only where painted.
func (t *table) lines(width int, painted bool) []string {
	head := make([]cell, len(t.head))
	for i, s := range t.head {
		head[i] = cell{text: s, colour: bold}
	}
	rows := append([][]cell{head}, t.rows...)
	widths := make([]int, len(t.head))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		lines = append(lines, line(row, widths, t.right, width, painted))
	}
	return lines
}

// line lays one row out. A column narrower than its text is as wide as that.
func line(row []cell, widths, right []int, width int, painted bool) string {
	var b strings.Builder
	used, owed := 0, 0 // owed are spaces that come only before further text
	for i, c := range row {
		n := utf8.RuneCountInString(c.text)
		pad := max(0, widths[i]-n)
		if slices.Contains(right, i) {
			owed, pad = owed+pad, 0
		}
		if n > 0 {
			text := c.text
			if width > 0 {
				text = clip(text, width-used-owed)
			}
			if text == "" {
				break
			}
			b.WriteString(strings.Repeat(" ", owed))
			b.WriteString(paint(text, c.colour, painted))
			used, owed = used+owed+utf8.RuneCountInString(text), 0
		}
		owed += pad + gap
	}
	return b.String()
}

// write prints the table in full.
func (t *table) write(w io.Writer, painted bool) {
	for _, l := range t.lines(0, painted) {
		fmt.Fprintln(w, l)
	}
}

// paint puts a colour around a text.
func paint(text string, c colour, painted bool) string {
	if !painted || c == plain {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// clip shortens a text to a number of characters.
func clip(s string, limit int) string {
	if limit <= 0 {
		return ""
	}
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	return string(runes[:limit-1]) + "…"
}

// oneLine makes a text from elsewhere safe for one line of a table.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)), " ")
}
