package spec

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// CheckParams returns the parameters of a run: what was given, and the
// defaults for the rest. Where there are problems, the values are nil.
func CheckParams(w *Workflow, given map[string]string) (map[string]string, []Problem) {
	var ps problems
	names := make([]string, len(w.Params))
	values := make(map[string]string, len(w.Params))
	total := 0
	for i := range w.Params {
		p := &w.Params[i]
		names[i] = p.Name
		value, ok := p.value(given, &ps)
		if !ok {
			continue
		}
		values[p.Name] = value
		total += len(p.Name) + len(value)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			ps.add(Path{"params", name}, unknownParam(name, names), "the workflow has no such parameter")
		}
	}
	if total > MaxParamsBytes {
		ps.add(Path{"params"}, "hand large values over in files", "are %d bytes together, at most %d are allowed", total, MaxParamsBytes)
	}
	if list := ps.done(); len(list) > 0 {
		return nil, list
	}
	return values, nil
}

func unknownParam(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 0 {
		return "it has none at all"
	}
	return "it has " + choices(known)
}

// value is what a run has for p: what was given, or else the default.
func (p *Param) value(given map[string]string, ps *problems) (string, bool) {
	at := Path{"params", p.Name}
	value, ok := given[p.Name]
	switch {
	case !ok && p.Default != nil:
		return *p.Default, true
	case !ok:
		ps.add(at, "give "+p.Name+"=VALUE", "is required and was not given")
		return "", false
	case !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0:
		ps.add(at, "", "is not valid UTF-8 without NUL bytes")
		return "", false
	case len(p.Enum) > 0 && !slices.Contains(p.Enum, value):
		ps.add(at, "", "%s is none of %s", quote(value), choices(p.Enum))
	}
	if p.Pattern != "" {
		// Validate compiled it when the workflow was applied.
		if re, err := compilePattern(p.Pattern); err != nil || !re.MatchString(value) {
			ps.add(at, "", "%s does not match the pattern %s", quote(value), quote(p.Pattern))
		}
	}
	return value, true
}
