package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tasks := flag.Int("tasks", 10_000, "tasks of a flat run")
	chain := flag.Int("chain", 50, "tasks of a chain")
	rounds := flag.Int("rounds", 3, "rounds, of which the median counts")
	flag.Parse()
	if err := measure(ctx, *tasks, *chain, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// series is one measure over the rounds.
type series struct {
	name, unit string
	writ, raw  []float64
	more       bool // more is better
}

// measure runs all rounds and prints the table.
func measure(ctx context.Context, tasks, chain, rounds int) error {
	flats := []*series{
		{name: fmt.Sprintf("flat, %d tasks, not idempotent", tasks), unit: "tasks/s", more: true},
		{name: fmt.Sprintf("flat, %d tasks, idempotent", tasks), unit: "tasks/s", more: true},
	}
	hops := &series{name: fmt.Sprintf("hop, chain of %d", chain), unit: "ms"}
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
		for i, s := range flats {
			took, history, err := flat(ctx, tasks, i == 1)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			bare, err := replay(ctx, history)
			if err != nil {
				return fmt.Errorf("%s: raw etcd: %w", s.name, err)
			}
			s.writ = append(s.writ, float64(tasks)/took.Seconds())
			s.raw = append(s.raw, float64(tasks)/bare.Seconds())
		}
		hop, single, err := hop(ctx, chain)
		if err != nil {
			return fmt.Errorf("%s: %w", hops.name, err)
		}
		hops.writ = append(hops.writ, float64(hop)/float64(time.Millisecond))
		hops.raw = append(hops.raw, float64(single)/float64(time.Millisecond))
	}
	fmt.Fprintf(os.Stdout, "%s/%s, %d processors, %s, medians of %d rounds (least to most)\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), rounds)
	fmt.Fprintln(os.Stdout, "| measure | unit | writ | raw etcd | ratio |\n|---|---|---:|---:|---:|")
	for _, s := range append(flats, hops) {
		fmt.Fprintf(os.Stdout, "| %s | %s | %s | %s | %s |\n", s.name, s.unit, spread(s.writ, 1), spread(s.raw, 1), spread(s.ratios(), 2))
	}
	return nil
}

// ratios is writ as a part of raw for rates, and as a multiple for times.
func (s *series) ratios() []float64 {
	list := make([]float64, len(s.writ))
	for i := range list {
		list[i] = s.writ[i] / s.raw[i]
	}
	return list
}

// spread is the median with the least and the most.
func spread(list []float64, digits int) string {
	sorted := slices.Sorted(slices.Values(list))
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, sorted[len(sorted)/2], digits, sorted[0], digits, sorted[len(sorted)-1])
}
