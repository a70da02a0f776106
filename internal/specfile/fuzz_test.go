package specfile_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/specfile"
)

// FuzzDecode: no file makes the decoder panic; what it refuses has problems
// with places in the file, and what it takes validates and survives the stored
// form.
func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "../../examples/hello/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, path := range paths {
			f.Add(read(f, path))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		w, err := specfile.Decode("fuzz.yaml", src)
		if err != nil {
			var invalid *specfile.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.NotEmpty(t, invalid.Problems)
			for _, p := range invalid.Problems {
				require.NotEmpty(t, p.Text)
				require.GreaterOrEqual(t, p.Line, 0)
			}
			return
		}
		require.Empty(t, spec.Validate(w))
		text, err := spec.Encode(w)
		require.NoError(t, err)
		back, err := spec.Parse(text)
		require.NoError(t, err)
		require.Equal(t, w, back)
		require.Len(t, spec.Compile(w).Order(), len(w.Tasks))
	})
}
