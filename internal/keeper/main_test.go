package keeper_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/writ-sched/writ/internal/keeper"
)

func TestMain(m *testing.M) {
	if keeper.Invoked(os.Args) {
		os.Exit(keeper.Main(os.Args)) //nolint:forbidigo // this process is no test
	}
	goleak.VerifyTestMain(m)
}
