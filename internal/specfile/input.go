package specfile

import (
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/writ-sched/writ/internal/spec"
)

// input writes any value as JSON text, in the order of the file and with every
// number as it is spelled. The depth was bounded by checkTree.
func (d *decoder) input(b *strings.Builder, at spec.Path, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			key := n.Content[i].Value
			writeString(b, key)
			b.WriteByte(':')
			// Siblings share the array of their path: blame copies what it needs.
			d.input(b, append(at, key), n.Content[i+1])
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, child := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			d.input(b, append(at, spec.Element(i)), child)
		}
		b.WriteByte(']')
	default:
		d.inputScalar(b, at, n)
	}
}

func (d *decoder) inputScalar(b *strings.Builder, at spec.Path, n *yaml.Node) {
	switch s := n.Value; {
	case plain(n) && (s == "" || s == "~" || s == "null"):
		b.WriteString("null")
	case plain(n) && (s == "true" || s == "false" || d.words.json.MatchString(s)):
		b.WriteString(s)
	default:
		if what := d.words.readAs(n); what != "" {
			d.blame.add(markOf(n), at, "write it as JSON has it, or "+quoteIt(n), "%s is read as %s by some YAML, expected a value of JSON", shown(n), what)
		}
		writeString(b, s)
	}
}

// writeString writes s as a JSON string, with <, > and & as they are.
func writeString(b *strings.Builder, s string) {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	// A string can always be encoded.
	_ = enc.Encode(s)
	b.WriteString(strings.TrimSuffix(text.String(), "\n"))
}
