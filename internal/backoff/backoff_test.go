package backoff_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/backoff"
)

func always(x float64) func() float64 { return func() float64 { return x } }

func TestDelaysGrowFromMinToMaxAndStayThere(t *testing.T) {
	t.Parallel()
	low := backoff.New(backoff.Config{Min: 100 * time.Millisecond, Max: time.Second}, always(0))
	high := backoff.New(backoff.Config{Min: 100 * time.Millisecond, Max: time.Second}, always(1))
	for i, want := range []struct{ low, high time.Duration }{
		{100 * time.Millisecond, 200 * time.Millisecond},
		{200 * time.Millisecond, 400 * time.Millisecond},
		{400 * time.Millisecond, 800 * time.Millisecond},
		{500 * time.Millisecond, time.Second},
		{500 * time.Millisecond, time.Second},
	} {
		require.Equal(t, want.low, low.Next(), "low %d", i)
		require.Equal(t, want.high, high.Next(), "high %d", i)
	}
}

func TestResetBeginsAgain(t *testing.T) {
	t.Parallel()
	b := backoff.New(backoff.Config{Min: time.Second, Max: time.Minute}, always(0.5))
	first := b.Next()
	require.Greater(t, b.Next(), first)
	b.Reset()
	require.Equal(t, first, b.Next())
}

func TestZeroConfigHasDefaults(t *testing.T) {
	t.Parallel()
	b := backoff.New(backoff.Config{}, always(0))
	require.Equal(t, 100*time.Millisecond, b.Next())
	for range 100 {
		b.Next()
	}
	require.Equal(t, 2500*time.Millisecond, b.Next())
}

func TestEveryDelayIsWithinItsBoundsForAnySettings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shortest := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "min"))
		longest := time.Duration(rapid.Int64Range(int64(shortest), math.MaxInt64).Draw(t, "max"))
		factor := rapid.Float64Range(1, math.MaxFloat64).Draw(t, "factor")
		draws := rapid.Float64Range(0, math.Nextafter(1, 0))
		b := backoff.New(backoff.Config{Min: shortest, Max: longest, Factor: factor}, func() float64 { return draws.Draw(t, "draw") })
		for range 20 {
			d := b.Next()
			require.GreaterOrEqual(t, d, shortest)
			require.LessOrEqual(t, d, longest)
		}
	})
}

func TestContradictingSettingsPanic(t *testing.T) {
	t.Parallel()
	for _, c := range []backoff.Config{
		{Min: time.Minute, Max: time.Second},
		{Min: -time.Second},
		{Factor: 0.5},
		{Factor: math.NaN()},
	} {
		require.Panics(t, func() { backoff.New(c, always(0)) }, "%+v", c)
	}
	require.Panics(t, func() { backoff.New(backoff.Config{}, nil) })
}
