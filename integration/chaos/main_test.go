package chaos_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/integration/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// random is seeded by WRIT_SEED, or else anew; the seed is logged.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("WRIT_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "WRIT_SEED")
	}
	t.Logf("WRIT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// moment waits for a random moment within the span: that faults come at any
// moment is what these tests are about.
func moment(t *testing.T, random *rand.Rand, span time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(span))))
	defer cancel()
	<-ctx.Done()
}
