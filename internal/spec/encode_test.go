package spec_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/spec"
)

func TestTheStoredFormRoundTrips(t *testing.T) {
	t.Parallel()
	w := valid()
	w.Tasks[0].Run = `[ "$A" > 1 ] && echo '<&>' "é"`
	text, err := spec.Encode(w)
	require.NoError(t, err)
	require.Contains(t, string(text), `> 1 ] && echo '<&>' \"é\"`)
	require.Contains(t, string(text), `"delay":"1s"`)
	back, err := spec.Parse(text)
	require.NoError(t, err)
	require.Equal(t, w, back)
	again, err := spec.Encode(back)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
}

func TestParseIsStrict(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`{`: "unexpected EOF",
		`{"name":"a","tasks":[{"id":"a","run":"true","colour":1}]}`:    `unknown field "colour"`,
		`{"name":"a","tasks":[{"id":"a","run":"true"}]} {}`:            "something follows the value",
		`{"name":"a","tasks":[{"id":"a","run":"true","timeout":"3"}]}`: `duration "3": expected a number with a unit`,
		`{"name":"A","tasks":[]}`:                                      "parse workflow: name: \"A\" does not match",
	} {
		_, err := spec.Parse([]byte(text))
		require.ErrorContains(t, err, says)
	}
	var invalid *spec.InvalidError
	_, err := spec.Parse([]byte(`{"name":"A","tasks":[]}`))
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 2)
	_, err = spec.Parse([]byte("{\"name\":\"a\",\"tasks\":[{\"id\":\"a\",\"run\":\"true\"}]}\n"))
	require.NoError(t, err)
}

func TestEncodeRefusesWhatJSONCannotSay(t *testing.T) {
	t.Parallel()
	w := valid()
	w.Tasks[0].Retries.Jitter = math.NaN()
	_, err := spec.Encode(w)
	require.ErrorContains(t, err, `encode workflow "nightly"`)
}

func TestNearestIsAMisspelling(t *testing.T) {
	t.Parallel()
	known := []string{"timeout", "needs", "run", "retries"}
	for word, want := range map[string]string{
		"timeuot": "timeout", "time_out": "timeout", "need": "needs", "rum": "run", "retry": "", "retires": "retries",
		"xyz": "", "": "", "run": "",
	} {
		require.Equal(t, want, spec.Nearest(word, known), word)
	}
}
