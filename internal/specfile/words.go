package specfile

import (
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/writ-sched/writ/internal/spec"
)

// words knows how YAML readers take a plain word: 1.1 and 1.2 alike, since the
// author's editor and other tools may follow either.
type words struct {
	whole, number, sixty, date *regexp.Regexp
	json                       *regexp.Regexp
}

func newWords() *words {
	return &words{
		// The spelling of a whole number of up to 15 digits survives every
		// reader, those that make it a float too.
		whole: regexp.MustCompile(`^(0|-?[1-9][0-9]{0,14})$`),
		number: regexp.MustCompile(`^[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|` +
			`\.[0-9][0-9_]*([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$`),
		sixty: regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`),
		date:  regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?$`),
		json:  regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`),
	}
}

// plain says that a scalar stands without quotes and is no block.
func plain(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

// readAs says what a reader of YAML may take a scalar for if not for the text
// as it is spelled, or "".
func (w *words) readAs(n *yaml.Node) string {
	if !plain(n) {
		return ""
	}
	s := n.Value
	switch s {
	case "", "~", "null", "Null", "NULL":
		return "null"
	case "y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "true", "True", "TRUE",
		"false", "False", "FALSE", "on", "On", "ON", "off", "Off", "OFF":
		return "a boolean"
	case "<<", "=":
		return "a merge or value key"
	}
	if c := s[0]; c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') {
		return ""
	}
	switch {
	case w.whole.MatchString(s):
		return ""
	case w.number.MatchString(s):
		return "a number"
	case w.sixty.MatchString(s):
		return "a number to the base of 60"
	case w.date.MatchString(s):
		return "a date"
	default:
		return ""
	}
}

// shown is a plain word in a message; nothing at all is shown as such.
func shown(n *yaml.Node) string {
	if n.Value == "" {
		return "without a value"
	}
	return spec.Clip(n.Value, 60)
}

func quoteIt(n *yaml.Node) string { return "quote it: " + strconv.Quote(spec.Clip(n.Value, 60)) }
