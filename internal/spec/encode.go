package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Encode returns the JSON form of w, which a revision stores. Equal workflows
// give equal bytes. It refuses what JSON cannot say; Validate refuses the same
// with a place.
func Encode(w *Workflow) ([]byte, error) {
	text, err := encode(w)
	if err != nil {
		return nil, fmt.Errorf("encode workflow %s: %w", quote(string(w.Name)), err)
	}
	return []byte(text), nil
}

// encode leaves <, > and & as they are: scripts are full of them, and etcdctl
// should show them as they were written.
func encode(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// Parse reads what Encode wrote, and validates it again. The error is an
// [InvalidError] where the JSON is well but the workflow is not.
func Parse(src []byte) (*Workflow, error) {
	dec := json.NewDecoder(strings.NewReader(string(src)))
	dec.DisallowUnknownFields()
	var w Workflow
	if err := dec.Decode(&w); err != nil {
		return nil, fmt.Errorf("parse workflow: %w", err)
	}
	if rest := src[dec.InputOffset():]; strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("parse workflow: something follows the value, expected one JSON object")
	}
	if ps := Validate(&w); len(ps) > 0 {
		return nil, fmt.Errorf("parse workflow: %w", &InvalidError{Problems: ps})
	}
	return &w, nil
}
