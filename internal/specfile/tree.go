package specfile

import (
	"go.yaml.in/yaml/v4"

	"github.com/writ-sched/writ/internal/spec"
)

// trail is the way from the top of the file to a value: for each list or
// mapping on it, which of its children comes next.
type trail []step

type step struct {
	n    *yaml.Node
	next int
}

// child returns the i-th value of a list or mapping.
func (s step) child(i int) (*yaml.Node, bool) {
	if s.n.Kind == yaml.MappingNode {
		i = 2*i + 1
	}
	if i >= len(s.n.Content) {
		return nil, false
	}
	return s.n.Content[i], true
}

// path names the value that the trail leads to.
func (t trail) path() spec.Path {
	var p spec.Path
	for _, s := range t {
		switch {
		case s.next == 0: // not entered yet
		case s.n.Kind == yaml.MappingNode:
			p = append(p, s.n.Content[2*(s.next-1)].Value)
		default:
			p = append(p, spec.Element(s.next-1))
		}
	}
	return p
}

// checkTree refuses what no field may hold: aliases, anchors, tags, merge keys,
// keys that are no text or stand twice, and deep nesting. After it, the tree is
// a tree. It does not recurse, and holds nothing but the trail.
func checkTree(b *blame, root *yaml.Node, words *words) {
	t := trail{}.enter(b, root, words)
	for len(t) > 0 {
		at := &t[len(t)-1]
		child, ok := at.child(at.next)
		if !ok {
			t = t[:len(t)-1]
			continue
		}
		at.next++
		t = t.enter(b, child, words)
	}
}

// enter checks a value, and goes into it where it has children.
func (t trail) enter(b *blame, n *yaml.Node, words *words) trail {
	if !t.checkValue(b, n) || n.Kind == yaml.ScalarNode {
		return t
	}
	if n.Kind == yaml.MappingNode {
		t.checkKeys(b, n, words)
	}
	return append(t, step{n: n})
}

// checkValue says whether to look into a value.
func (t trail) checkValue(b *blame, n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		b.add(markOf(n), t.path(), "write the value out, or use defaults", "*%s is an alias, and aliases are not taken", n.Value)
	case n.Anchor != "":
		b.add(markOf(n), t.path(), "write the value out where it is needed, or use defaults; quote a text that begins with &", "&%s is an anchor, and anchors are not taken", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		b.add(markOf(n), t.path(), "quote a text, and leave other values as they are; quote a text that begins with !", "%s is a tag, and tags are not taken", n.Tag)
	case len(t) > MaxDepth:
		b.add(markOf(n), nil, "", "is nested deeper than %d values", MaxDepth)
	default:
		return true
	}
	return false
}

func (t trail) checkKeys(b *blame, n *yaml.Node, words *words) {
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode && key.Kind != yaml.AliasNode {
			b.add(markOf(key), t.path(), "quote a key that begins with [ or {", "the key is %s, expected text", article(key))
			continue
		}
		if !t.checkValue(b, key) {
			continue
		}
		line, twice := first[key.Value]
		switch what := words.readAs(key); {
		case plain(key) && key.Value == "<<":
			b.add(markOf(key), t.path(), "write the fields out, or use defaults", "<< is a merge key, and merge keys are not taken")
		case twice:
			b.add(markOf(key), t.path().At(key.Value), "take one of them out", "stands here twice, first at line %d", line)
		case what != "":
			b.add(markOf(key), t.path(), quoteIt(key), "the key %s is read as %s by YAML, expected text", shown(key), what)
		default:
			first[key.Value] = key.Line
		}
	}
}

func markOf(n *yaml.Node) mark { return mark{n.Line, n.Column} }

// article names the kind of a value.
func article(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return "a text"
	}
}
