package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/cli"
)

func TestDurationsAndSizesReadWell(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 1240 * time.Millisecond: "1.2s", 42 * time.Second: "42s", 3*time.Minute + 4*time.Second: "3m04s",
		2*time.Hour + 5*time.Minute: "2h05m", 50 * time.Hour: "2d02h",
	} {
		require.Equal(t, want, cli.Took(d))
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 30: "3.0 GiB"} {
		require.Equal(t, want, cli.Size(n))
	}
	require.Equal(t, "a, b and 2 more", cli.Some([]string{"a", "b", "c", "d"}, 2))
}
