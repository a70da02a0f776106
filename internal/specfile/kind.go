package specfile

import (
	"maps"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// kind is a kind of value: how the schema describes it, and how it is read.
// What read finds at its target is the default, and stays for what is not
// given.
type kind[T any] struct {
	schema map[string]any
	read   func(d *decoder, at spec.Path, n *yaml.Node, into *T)
}

// field is one field of a mapping that is read into an S.
type field[S any] struct {
	name, text string
	schema     map[string]any
	required   bool
	// shared fields of a task may stand in defaults too.
	shared bool
	read   func(d *decoder, at spec.Path, n *yaml.Node, into *S)
}

// of makes a field of a kind; ref finds its place in an S.
func of[S, T any](name, text string, k kind[T], ref func(*S) *T) field[S] {
	return field[S]{name: name, text: text, schema: k.schema, read: func(d *decoder, at spec.Path, n *yaml.Node, into *S) {
		k.read(d, at, n, ref(into))
	}}
}

func (f field[S]) must() field[S] {
	f.required = true
	return f
}

func (f field[S]) share() field[S] {
	f.shared = true
	return f
}

// with returns a schema with more said.
func with(schema map[string]any, key string, value any) map[string]any {
	more := maps.Clone(schema)
	more[key] = value
	return more
}

// text is any text. A whole number is taken as it is spelled.
func text[T ~string]() kind[T] {
	return kind[T]{
		schema: map[string]any{"type": []string{"string", "integer"}},
		read: func(d *decoder, at spec.Path, n *yaml.Node, into *T) {
			if s, ok := d.text(at, n); ok {
				*into = T(s)
			}
		},
	}
}

// script is a text that is no number.
func script[T ~string]() kind[T] {
	return kind[T]{schema: map[string]any{"type": "string", "minLength": 1}, read: filled(text[T]())}
}

// filled reads a text that may not be empty: an empty one would pass for a
// field that was not given.
func filled[T ~string](k kind[T]) func(d *decoder, at spec.Path, n *yaml.Node, into *T) {
	return func(d *decoder, at spec.Path, n *yaml.Node, into *T) {
		if n.Kind == yaml.ScalarNode && !plain(n) && n.Value == "" {
			d.blame.add(markOf(n), at, "leave the field out", "is empty")
			return
		}
		k.read(d, at, n, into)
	}
}

// name is the name of something of ours.
func name[T ~string](limit int) kind[T] {
	k := text[T]()
	k.schema = with(k.schema, "pattern", namePattern(limit))
	k.read = filled(k)
	return k
}

func namePattern(limit int) string {
	return "^" + strings.Replace(record.NamePattern, "62", strconv.Itoa(limit-1), 1) + "$"
}

// choice is one of some words, each with its meaning.
func choice[T ~string](words []T, meaning string) kind[T] {
	k := text[T]()
	k.schema = map[string]any{"enum": words}
	if meaning != "" {
		k.schema["description"] = meaning
	}
	k.read = filled(k)
	return k
}

// optional is a text whose absence means something else than an empty one.
func optional() kind[*string] {
	k := text[string]()
	return kind[*string]{schema: k.schema, read: func(d *decoder, at spec.Path, n *yaml.Node, into **string) {
		if s, ok := d.text(at, n); ok {
			*into = &s
		}
	}}
}

// flag is true or false.
func flag() kind[bool] {
	return kind[bool]{schema: map[string]any{"type": "boolean"}, read: func(d *decoder, at spec.Path, n *yaml.Node, into *bool) {
		if !plain(n) || n.Value != "true" && n.Value != "false" {
			d.blame.add(markOf(n), at, "write true or false, without quotes", "is %s, expected true or false", found(n))
			return
		}
		*into = n.Value == "true"
	}}
}

// whole is a whole number within bounds.
func whole(least, most int) kind[int] {
	schema := map[string]any{"type": "integer", "minimum": least, "maximum": most}
	return kind[int]{schema: schema, read: func(d *decoder, at spec.Path, n *yaml.Node, into *int) {
		if !plain(n) || !d.words.whole.MatchString(n.Value) {
			d.blame.add(markOf(n), at, unquote(d.words.whole.MatchString, n), "is %s, expected a whole number", found(n))
			return
		}
		v, err := strconv.Atoi(n.Value)
		if err != nil {
			d.blame.add(markOf(n), at, "", "is %s, expected a whole number", found(n))
			return
		}
		if v < least || v > most {
			d.blame.add(markOf(n), at, "", "is %d, expected %d to %d", v, least, most)
			return
		}
		*into = v
	}}
}

// settable is a whole number whose absence means something else than zero.
func settable(least, most int) kind[*int] {
	k := whole(least, most)
	return kind[*int]{schema: k.schema, read: func(d *decoder, at spec.Path, n *yaml.Node, into **int) {
		v := new(int)
		k.read(d, at, n, v)
		*into = v
	}}
}

// number is a number within bounds.
func number(least, most float64) kind[float64] {
	schema := map[string]any{"type": "number", "minimum": least, "maximum": most}
	return kind[float64]{schema: schema, read: func(d *decoder, at spec.Path, n *yaml.Node, into *float64) {
		v, err := strconv.ParseFloat(n.Value, 64)
		if !plain(n) || !d.words.json.MatchString(n.Value) || err != nil {
			d.blame.add(markOf(n), at, unquote(d.words.json.MatchString, n), "is %s, expected a number", found(n))
			return
		}
		if v < least || v > most {
			d.blame.add(markOf(n), at, "", "is %s, expected %v to %v", n.Value, least, most)
			return
		}
		*into = v
	}}
}

// unquote is the hint for a number that stands in quotes.
func unquote(match func(string) bool, n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && !plain(n) && match(n.Value) {
		return "take the quotes away"
	}
	return ""
}

// duration is a number with a unit.
func duration() kind[record.Duration] {
	schema := map[string]any{
		"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`,
		"examples": []string{"30s", "1h15m"},
	}
	return kind[record.Duration]{schema: schema, read: func(d *decoder, at spec.Path, n *yaml.Node, into *record.Duration) {
		if plain(n) && d.words.whole.MatchString(n.Value) {
			d.blame.add(markOf(n), at, "for example "+strings.TrimPrefix(n.Value, "-")+"s", "is %s, expected a number with a unit, such as 30s or 1h15m", n.Value)
			return
		}
		s, ok := d.text(at, n)
		if !ok {
			return
		}
		if err := into.UnmarshalText([]byte(s)); err != nil {
			d.blame.add(markOf(n), at, "the units are ms, s, m and h", "%v", err)
		}
	}}
}

// list is a list of values of one kind. It replaces what was there.
func list[T any](k kind[T], least int) kind[[]T] {
	schema := map[string]any{"type": "array", "items": k.schema}
	if least > 0 {
		schema["minItems"] = least
	}
	return kind[[]T]{schema: schema, read: func(d *decoder, at spec.Path, n *yaml.Node, into *[]T) {
		if n.Kind != yaml.SequenceNode {
			d.blame.add(markOf(n), at, "for example ["+listHint(n)+"]", "is %s, expected a list", found(n))
			return
		}
		if len(n.Content) < least {
			d.blame.add(markOf(n), at, "leave the field out", "is empty, expected a list of at least %d", least)
			return
		}
		*into = nil
		for i, child := range n.Content {
			var v T
			k.read(d, at.At(spec.Element(i)), child, &v)
			*into = append(*into, v)
		}
	}}
}

func listHint(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Value != "" {
		return spec.Clip(n.Value, 40)
	}
	return "a, b"
}

// environment is a mapping of texts, merged key by key over what was there.
func environment() kind[map[string]string] {
	value := text[string]()
	schema := map[string]any{
		"type": "object", "additionalProperties": value.schema,
		"propertyNames": map[string]any{"pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "not": map[string]any{"pattern": "^" + spec.EnvPrefix}},
	}
	return kind[map[string]string]{schema: schema, read: func(d *decoder, at spec.Path, n *yaml.Node, into *map[string]string) {
		merged := maps.Clone(*into)
		if merged == nil {
			merged = map[string]string{}
		}
		d.entries(at, n, func(key string, _, v *yaml.Node) {
			var s string
			value.read(d, at.At(key), v, &s)
			merged[key] = s
		})
		if len(merged) > 0 {
			*into = merged
		}
	}}
}

// anything is any value, as JSON text.
func anything() kind[string] {
	return kind[string]{schema: map[string]any{}, read: func(d *decoder, at spec.Path, n *yaml.Node, into *string) {
		var b strings.Builder
		d.input(&b, at, n)
		*into = b.String()
	}}
}

// found says what a value is where another kind was expected.
func found(n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode:
		return article(n)
	case plain(n):
		return shown(n)
	default:
		return "the text " + strconv.Quote(spec.Clip(n.Value, 60))
	}
}
