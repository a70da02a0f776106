package spec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/spec"
)

func TestDefaultsFillWhatARunDoesNotGive(t *testing.T) {
	t.Parallel()
	values, problems := spec.CheckParams(valid(), map[string]string{"day": "2026-12-01"})
	require.Empty(t, problems)
	require.Equal(t, map[string]string{"region": "", "day": "2026-12-01"}, values)

	values, problems = spec.CheckParams(chain(1), nil)
	require.Empty(t, problems)
	require.Empty(t, values)
}

func TestParametersOfARunAreChecked(t *testing.T) {
	t.Parallel()
	for says, given := range map[string]map[string]string{
		"params.day: is required and was not given (hint: give day=VALUE)":                nil,
		"params.dya: the workflow has no such parameter (hint: did you mean day?)":        {"day": "2026-12-01", "dya": ""},
		`params.other: the workflow has no such parameter (hint: it has "region", "day")`: {"day": "2026-12-01", "other": ""},
		`params.day: "2026-12-01\n" does not match the pattern "\\d{4}-\\d\\d-\\d\\d"`:    {"day": "2026-12-01\n"},
		`params.region: "de" is none of "", "eu", "us"`:                                   {"day": "2026-12-01", "region": "de"},
		"params.day: is not valid UTF-8 without NUL bytes":                                {"day": "\xff"},
		"params.region: is not valid UTF-8 without NUL bytes":                             {"day": "2026-12-01", "region": "\x00"},
	} {
		values, problems := spec.CheckParams(valid(), given)
		require.Nil(t, values)
		require.Equal(t, []string{says}, texts(problems))
	}
	_, problems := spec.CheckParams(chain(1), map[string]string{"a": ""})
	require.Equal(t, []string{"params.a: the workflow has no such parameter (hint: it has none at all)"}, texts(problems))
}

func TestParametersOfARunAreBounded(t *testing.T) {
	t.Parallel()
	w := chain(1)
	w.Params = []spec.Param{{Name: "a", Required: true}}
	require.Empty(t, spec.Validate(w))
	_, problems := spec.CheckParams(w, map[string]string{"a": strings.Repeat("x", spec.MaxParamsBytes-1)})
	require.Empty(t, problems)
	_, problems = spec.CheckParams(w, map[string]string{"a": strings.Repeat("x", spec.MaxParamsBytes)})
	require.Contains(t, texts(problems)[0], "params: are 65537 bytes together, at most 65536 are allowed")
}
