package specfile

import "encoding/json"

// Schema returns a JSON Schema (draft 2020-12) of workflow files, for editors.
// It knows the fields and kinds of values; what tasks have to do with each
// other it cannot say.
func Schema() []byte {
	root := object(workflowFields())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "writ workflow"
	task := object(taskFields())
	task["oneOf"] = []any{
		map[string]any{"required": []string{"run"}},
		map[string]any{"required": []string{"command"}},
		map[string]any{"required": []string{"handler"}},
	}
	task["dependentRequired"] = map[string]any{"input": []string{"handler"}}
	root["$defs"] = map[string]any{
		"param":    object(paramFields()),
		"task":     task,
		"defaults": object(sharedFields(taskFields())),
		"retries":  object(retryFields()),
	}
	// Maps, lists, strings and numbers can always be encoded.
	text, _ := json.MarshalIndent(root, "", "  ")
	return append(text, '\n')
}

// object is the schema of a mapping with the fields.
func object[S any](fields []field[S]) map[string]any {
	properties := make(map[string]any, len(fields))
	var required []string
	for _, f := range fields {
		schema := f.schema
		if more, ok := schema["description"].(string); ok {
			schema = with(schema, "description", f.text+" "+more)
		} else {
			schema = with(schema, "description", f.text)
		}
		properties[f.name] = schema
		if f.required {
			required = append(required, f.name)
		}
	}
	o := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		o["required"] = required
	}
	return o
}
