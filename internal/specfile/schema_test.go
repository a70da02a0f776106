package specfile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/specfile"
)

// schema is a small validator of JSON Schema: the keywords that ours uses, and
// a failure for any other.
type schema struct {
	t    *testing.T
	root map[string]any
}

func loadSchema(t *testing.T) schema {
	t.Helper()
	s := schema{t: t}
	require.NoError(t, json.Unmarshal(specfile.Schema(), &s.root))
	return s
}

// check returns what is wrong with v, one line each.
func (s schema) check(at string, rules map[string]any, v any) []string {
	var wrong []string
	for _, word := range slices.Sorted(maps.Keys(rules)) {
		wrong = append(wrong, s.keyword(at, word, rules, v)...)
	}
	return wrong
}

func (s schema) keyword(at, word string, rules map[string]any, v any) []string {
	rule := rules[word]
	bad := func(ok bool) []string {
		if ok {
			return nil
		}
		return []string{fmt.Sprintf("%s: %v is not %s %v", at, v, word, rule)}
	}
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	text, isText := v.(string)
	number, isNumber := v.(float64)
	switch word {
	case "$schema", "$defs", "title", "description", "examples", "properties":
		return nil
	case "$ref":
		name := strings.TrimPrefix(rule.(string), "#/$defs/")
		return s.check(at, s.root["$defs"].(map[string]any)[name].(map[string]any), v)
	case "type":
		types, many := rule.([]any)
		if !many {
			types = []any{rule}
		}
		return bad(slices.ContainsFunc(types, func(name any) bool { return is(v, name.(string)) }))
	case "enum":
		return bad(slices.Contains(rule.([]any), v))
	case "pattern":
		return bad(!isText || regexp.MustCompile(rule.(string)).MatchString(text))
	case "minLength":
		return bad(!isText || len(text) >= int(rule.(float64)))
	case "minimum":
		return bad(!isNumber || number >= rule.(float64))
	case "maximum":
		return bad(!isNumber || number <= rule.(float64))
	case "minItems":
		return bad(!isList || len(list) >= int(rule.(float64)))
	case "minProperties":
		return bad(!isObject || len(object) >= int(rule.(float64)))
	case "required":
		return bad(!slices.ContainsFunc(rule.([]any), func(name any) bool { _, ok := object[name.(string)]; return !ok }))
	case "not":
		return bad(len(s.check(at, rule.(map[string]any), v)) > 0)
	}
	return s.composite(at, word, rules, v)
}

// composite checks the keywords that look below a value.
func (s schema) composite(at, word string, rules map[string]any, v any) []string {
	var wrong []string
	rule := rules[word]
	object, _ := v.(map[string]any)
	switch word {
	case "oneOf":
		fits := 0
		for _, each := range rule.([]any) {
			if len(s.check(at, each.(map[string]any), v)) == 0 {
				fits++
			}
		}
		if fits != 1 {
			wrong = append(wrong, fmt.Sprintf("%s: fits %d of %v", at, fits, rule))
		}
	case "items":
		list, _ := v.([]any)
		for i, each := range list {
			wrong = append(wrong, s.check(fmt.Sprintf("%s[%d]", at, i), rule.(map[string]any), each)...)
		}
	case "propertyNames":
		for name := range object {
			wrong = append(wrong, s.check(at+" key "+name, rule.(map[string]any), name)...)
		}
	case "dependentRequired":
		for name, others := range rule.(map[string]any) {
			if _, ok := object[name]; ok {
				wrong = append(wrong, s.check(at, map[string]any{"required": others}, v)...)
			}
		}
	case "additionalProperties":
		known, _ := rules["properties"].(map[string]any)
		for name, each := range object {
			below, ok := known[name].(map[string]any)
			if !ok {
				if below, ok = rule.(map[string]any); !ok {
					wrong = append(wrong, at+": unknown "+name)
					continue
				}
			}
			wrong = append(wrong, s.check(at+"."+name, below, each)...)
		}
	default:
		s.t.Fatalf("the test does not know the keyword %s", word)
	}
	return wrong
}

func is(v any, name string) bool {
	switch v := v.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && v == float64(int64(v))
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	default:
		return false
	}
}

// fits checks a YAML text against the schema, as an editor would.
func (s schema) fits(src []byte) []string {
	var v any
	require.NoError(s.t, yaml.Unmarshal(src, &v))
	text, err := json.Marshal(v)
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(text, &v))
	return s.check("file", s.root, v)
}

func TestTheSchemaTakesWhatTheDecoderTakes(t *testing.T) {
	t.Parallel()
	s := loadSchema(t)
	all := files(t, "testdata/*.good.yaml")
	maps.Copy(all, files(t, "../../examples/*/*.yaml"))
	maps.Copy(all, manual(t))
	for path, src := range all {
		require.Empty(t, s.fits(src), path)
	}
}

func TestTheSchemaRefusesWhatIsNoField(t *testing.T) {
	t.Parallel()
	s := loadSchema(t)
	require.Empty(t, s.fits([]byte("name: a\ntasks: {a: {run: x}}\n")))
	for _, src := range []string{
		"tasks: {a: {run: x}}\n",
		"name: a\ntasks: {}\n",
		"name: A\ntasks: {a: {run: x}}\n",
		"name: a\ncolour: red\ntasks: {a: {run: x}}\n",
		"name: a\ntasks: {a: {}}\n",
		"name: a\ntasks: {A: {run: x}}\n",
		"name: a\ntasks: {a: {run: x, command: [x]}}\n",
		"name: a\ntasks: {a: {run: x, input: 1}}\n",
		"name: a\ntasks: {a: {run: true}}\n",
		"name: a\ntasks: {a: {run: x, retires: {}}}\n",
		"name: a\ntasks: {a: {run: x, retries: {limit: -1}}}\n",
		"name: a\ntasks: {a: {run: x, retries: {jitter: 1.5}}}\n",
		"name: a\ntasks: {a: {run: x, timeout: 30}}\n",
		"name: a\ntasks: {a: {run: x, timeout: soon}}\n",
		"name: a\ntasks: {a: {run: x, trigger_rule: sometimes}}\n",
		"name: a\ntasks: {a: {run: x, env: {A: 1.5}}}\n",
		"name: a\ntasks: {a: {run: x, env: {WRIT_A: x}}}\n",
		"name: a\ntasks: {a: {run: x, needs: b}}\n",
		"name: a\ndefaults: {needs: [a]}\ntasks: {a: {run: x}}\n",
		"name: a\nparams: {a: {enum: []}}\ntasks: {a: {run: x}}\n",
	} {
		require.NotEmpty(t, s.fits([]byte(src)), src)
		_, err := specfile.Decode("w.yaml", []byte(src))
		require.Error(t, err, src)
	}
}

// TestFileSchemaAndStoredFormHaveTheSameFields compares the fields of the
// schema with those of the stored form; the decoder reads exactly the former.
func TestFileSchemaAndStoredFormHaveTheSameFields(t *testing.T) {
	t.Parallel()
	root := loadSchema(t).root
	defs := root["$defs"].(map[string]any)
	for name, c := range map[string]struct {
		schema any
		typ    reflect.Type
		key    string // stands before the colon in the file
		more   []string
	}{
		"workflow": {root, reflect.TypeFor[spec.Workflow](), "", []string{"defaults"}},
		"param":    {defs["param"], reflect.TypeFor[spec.Param](), "name", nil},
		"task":     {defs["task"], reflect.TypeFor[spec.Task](), "id", nil},
		"retries":  {defs["retries"], reflect.TypeFor[spec.Retry](), "", nil},
	} {
		want := slices.Clone(c.more)
		for i := range c.typ.NumField() {
			tag, _, _ := strings.Cut(c.typ.Field(i).Tag.Get("json"), ",")
			if tag != c.key {
				want = append(want, tag)
			}
		}
		fields := c.schema.(map[string]any)["properties"].(map[string]any)
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(fields)), name)
		for field, rules := range fields {
			require.NotEmpty(t, rules.(map[string]any)["description"], field)
		}
	}
}

func TestTheDecoderKnowsEveryFieldOfTheSchema(t *testing.T) {
	t.Parallel()
	defs := loadSchema(t).root["$defs"].(map[string]any)
	for def, frame := range map[string]string{
		"param":    "name: a\ntasks: {a: {run: x}}\nparams: {p: {%s: ~}}\n",
		"task":     "name: a\ntasks: {a: {%s: ~}}\n",
		"defaults": "name: a\ntasks: {a: {run: x}}\ndefaults: {%s: ~}\n",
		"retries":  "name: a\ntasks: {a: {run: x, retries: {%s: ~}}}\n",
	} {
		for field := range defs[def].(map[string]any)["properties"].(map[string]any) {
			require.NotContains(t, strings.Join(refuse(t, fmt.Sprintf(frame, field)), "\n"), "unknown field", def+"."+field)
		}
		require.Contains(t, refuse(t, fmt.Sprintf(frame, "colour"))[0], "colour: unknown field", def)
	}
}

func TestTheSchemaIsStable(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/schema.json", string(specfile.Schema()))
}

func TestTheManualHasARowForEveryFieldAndEveryRule(t *testing.T) {
	t.Parallel()
	root := loadSchema(t).root
	defs := root["$defs"].(map[string]any)
	text := string(read(t, "../../docs/manual/workflow-file.md"))
	rows := func(prefix string, object any) {
		for field := range object.(map[string]any)["properties"].(map[string]any) {
			if field == "retries" {
				continue // has a row for each of its own fields
			}
			require.Contains(t, text, "| `"+prefix+field+"` |")
		}
	}
	rows("", root)
	rows("", defs["param"])
	rows("", defs["task"])
	rows("retries.", defs["retries"])
	for _, rule := range spec.TriggerRules() {
		require.Contains(t, text, "| `"+string(rule)+"` |")
	}
}
