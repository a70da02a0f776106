// Command writ is the whole of writ in one binary: server, worker and client;
// and, where a worker executes it under another name, that worker's keeper.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/writ-sched/writ/internal/cli"
	"github.com/writ-sched/writ/internal/keeper"
)

func main() {
	if keeper.Invoked(os.Args) {
		os.Exit(keeper.Main(os.Args))
	}
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for a clean end, the second one ends at once.
	context.AfterFunc(ctx, stop)
	return cli.Run(ctx, cli.Process())
}
