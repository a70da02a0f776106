package specfile

import (
	"go.yaml.in/yaml/v4"

	"github.com/writ-sched/writ/internal/spec"
)

// branch is a value on the way through the tree.
type branch struct {
	n     *yaml.Node
	path  spec.Path
	depth int
}

// checkTree refuses what no field may hold: aliases, anchors, tags, merge keys,
// keys that are no text or stand twice, and deep nesting. After it, the tree is
// a tree. It does not recurse.
func checkTree(b *blame, root *yaml.Node, words *words) {
	stack := []branch{{n: root}}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !checkValue(b, at) {
			continue
		}
		switch at.n.Kind {
		case yaml.MappingNode:
			stack = checkMapping(b, at, words, stack)
		case yaml.SequenceNode:
			for i, child := range at.n.Content {
				stack = append(stack, branch{child, at.path.At(spec.Element(i)), at.depth + 1})
			}
		default:
		}
	}
}

// checkValue says whether to look into a value.
func checkValue(b *blame, at branch) bool {
	n := at.n
	switch {
	case n.Kind == yaml.AliasNode:
		b.add(markOf(n), at.path, "write the value out, or use defaults", "*%s is an alias, and aliases are not taken", n.Value)
	case n.Anchor != "":
		b.add(markOf(n), at.path, "write the value out where it is needed, or use defaults; quote a text that begins with &", "&%s is an anchor, and anchors are not taken", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		b.add(markOf(n), at.path, "quote a text, and leave other values as they are; quote a text that begins with !", "%s is a tag, and tags are not taken", n.Tag)
	case at.depth > MaxDepth:
		b.add(markOf(n), nil, "", "is nested deeper than %d values", MaxDepth)
	default:
		return true
	}
	return false
}

func checkMapping(b *blame, at branch, words *words, stack []branch) []branch {
	first := make(map[string]int, len(at.n.Content)/2)
	for i := 0; i+1 < len(at.n.Content); i += 2 {
		key, value := at.n.Content[i], at.n.Content[i+1]
		line, twice := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			b.add(markOf(key), at.path, "quote a key that begins with [ or {", "the key is %s, expected text", article(key))
			continue
		case !checkValue(b, branch{key, at.path, at.depth}):
			continue
		case plain(key) && key.Value == "<<":
			b.add(markOf(key), at.path, "write the fields out, or use defaults", "<< is a merge key, and merge keys are not taken")
			continue
		case twice:
			b.add(markOf(key), at.path.At(key.Value), "take one of them out", "stands here twice, first at line %d", line)
			continue
		}
		if what := words.readAs(key); what != "" {
			b.add(markOf(key), at.path, quoteIt(key), "the key %s is read as %s by YAML, expected text", shown(key), what)
			continue
		}
		first[key.Value] = key.Line
		stack = append(stack, branch{value, at.path.At(key.Value), at.depth + 1})
	}
	return stack
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
