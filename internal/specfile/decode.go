package specfile

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// Decode reads a workflow file and validates it. name is what problems call
// the file. The error is an [InvalidError].
func Decode(name string, src []byte) (*spec.Workflow, error) {
	b := &blame{file: name}
	root := load(b, src)
	if root == nil {
		return nil, b.err()
	}
	d := newDecoder(b)
	checkTree(b, root, d.words)
	if err := b.err(); err != nil {
		return nil, err
	}
	var w draft
	fill(d, nil, root, d.workflowFields, &w)
	if err := b.err(); err != nil {
		return nil, err
	}
	d.blameWorkflow(root, spec.Validate(&w.Workflow))
	if err := b.err(); err != nil {
		return nil, err
	}
	return &w.Workflow, nil
}

// blameWorkflow gives the problems of a workflow their places. A bad default
// is a problem of every task that it was merged into, and is told for the
// first.
func (d *decoder) blameWorkflow(root *yaml.Node, problems []spec.Problem) {
	told := map[string]bool{}
	for _, p := range problems {
		at, path, shared := locate(root, p.Path)
		text := p.Text
		if shared {
			key := path.String() + text
			if told[key] {
				continue
			}
			told[key] = true
			text += ", in task " + p.Path[1]
		}
		d.blame.add(at, path, p.Hint, "%s", text)
	}
}

// decoder reads one file. The tables of fields are made once.
type decoder struct {
	blame          *blame
	words          *words
	workflowFields []field[draft]
	paramFields    []field[spec.Param]
	taskFields     []field[spec.Task]
	sharedFields   []field[spec.Task]
	retryFields    []field[spec.Retry]
}

func newDecoder(b *blame) *decoder {
	all := taskFields()
	return &decoder{
		blame: b, words: newWords(), workflowFields: workflowFields(), paramFields: paramFields(),
		taskFields: all, sharedFields: sharedFields(all), retryFields: retryFields(),
	}
}

func sharedFields(all []field[spec.Task]) []field[spec.Task] {
	return slices.DeleteFunc(slices.Clone(all), func(f field[spec.Task]) bool { return !f.shared })
}

// text returns a scalar as it is spelled, and refuses what a reader of YAML may
// take for something else.
func (d *decoder) text(at spec.Path, n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		d.blame.add(markOf(n), at, "quote a text that begins with [ or {", "is %s, expected text", article(n))
		return "", false
	}
	what := d.words.readAs(n)
	switch {
	case what == "":
		return n.Value, true
	case n.Value == "":
		d.blame.add(markOf(n), at, `write "" for an empty text, or leave the field out`, "has no value, expected text")
	default:
		d.blame.add(markOf(n), at, quoteIt(n), "%s is read as %s by YAML, expected text", shown(n), what)
	}
	return "", false
}

// entries calls each for every entry of a mapping, in the order of the file.
// checkTree made sure that the keys are texts, each there once.
func (d *decoder) entries(at spec.Path, n *yaml.Node, each func(key string, k, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		hint := ""
		if plain(n) && n.Value == "" {
			hint = "leave it out, or indent what belongs to it"
		}
		d.blame.add(markOf(n), at, hint, "is %s, expected a mapping", found(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		each(n.Content[i].Value, n.Content[i], n.Content[i+1])
	}
}

// fill reads a mapping of known fields into a value, in the order of the
// fields and not of the file: defaults come before the tasks that take them.
// It returns the fields that were given.
func fill[S any](d *decoder, at spec.Path, n *yaml.Node, fields []field[S], into *S) map[string]bool {
	given := make(map[string]*yaml.Node, len(n.Content)/2)
	d.entries(at, n, func(key string, k, v *yaml.Node) {
		given[key] = v
		if !slices.ContainsFunc(fields, func(f field[S]) bool { return f.name == key }) {
			d.blame.add(markOf(k), at.At(key), nearField(key, fields), "unknown field")
		}
	})
	seen := make(map[string]bool, len(given))
	for _, f := range fields {
		v, ok := given[f.name]
		switch {
		case ok:
			f.read(d, at.At(f.name), v, into)
			seen[f.name] = true
		case f.required && n.Kind == yaml.MappingNode:
			d.blame.add(markOf(n), at, "", "%s is missing", f.name)
		}
	}
	return seen
}

func nearField[S any](key string, fields []field[S]) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	if near := spec.Nearest(key, names); near != "" {
		return "did you mean " + near + "?"
	}
	hint := "known are"
	for i, name := range names {
		if i > 0 {
			hint += ","
		}
		hint += " " + name
	}
	return hint
}

// task reads one task over the defaults. What defaults say about processes is
// nothing to a handler, and what they say about lost workers nothing to an
// idempotent task.
func (d *decoder) task(at spec.Path, n *yaml.Node, id string, defaults spec.Task) spec.Task {
	t := defaults
	t.ID = record.TaskID(id)
	// Lists and maps are replaced when they are read, never changed in place,
	// so tasks may share those of the defaults.
	given := fill(d, at, n, d.taskFields, &t)
	if t.Idempotent && !given["on_lost"] {
		t.OnLost = ""
	}
	if t.Handler == "" {
		return t
	}
	if !given["env"] {
		t.Env = nil
	}
	if !given["cwd"] {
		t.Cwd = ""
	}
	if !given["skip_exit_code"] {
		t.SkipExitCode = nil
	}
	if !given["no_retry_exit_codes"] {
		t.NoRetryExitCodes = nil
	}
	return t
}
