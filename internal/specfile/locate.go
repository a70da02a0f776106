package specfile

import (
	"go.yaml.in/yaml/v4"

	"github.com/writ-sched/writ/internal/spec"
)

// locate finds the place that a path of a workflow has in its file. What a
// task does not say itself was merged from the defaults: then shared is true
// and the path is that of the default.
func locate(root *yaml.Node, path spec.Path) (at mark, place spec.Path, shared bool) {
	at, found := follow(root, path)
	if found == len(path) || len(path) < 3 || path[0] != "tasks" {
		return at, path, false
	}
	other := spec.Path{"defaults"}.At(path[2:]...)
	if there, n := follow(root, other); n == len(other) {
		return there, other, true
	}
	return at, path, false
}

// follow walks down a path as far as the file has it, and says how far that
// was. A block is blamed at its key, a single value where it stands.
func follow(root *yaml.Node, path spec.Path) (mark, int) {
	at, n := markOf(root), root
	for i, part := range path {
		key, value := child(n, part)
		if value == nil {
			return at, i
		}
		at, n = markOf(value), value
		if key != nil && value.Kind != yaml.ScalarNode {
			at = markOf(key)
		}
	}
	return at, len(path)
}

// child finds one step of a path; key is nil in a list.
func child(n *yaml.Node, part string) (key, value *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == part {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			if spec.Element(i) == part {
				return nil, c
			}
		}
	default:
	}
	return nil, nil
}
