package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/writ-sched/writ/internal/cli"
	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/keeper"
)

const (
	// roleEnv says what the test binary is, where it is no test.
	roleEnv    = "WRIT_CLUSTER_ROLE"
	roleWrit   = "writ"
	roleMember = "etcd"
	// memberEnv is a member's configuration as JSON.
	memberEnv = "WRIT_CLUSTER_MEMBER"
)

// Main runs the tests of a binary, or is one of its processes.
func Main(m *testing.M) {
	switch role := os.Getenv(roleEnv); {
	case keeper.Invoked(os.Args):
		os.Exit(keeper.Main(os.Args))
	case role != "":
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}

// play is the life of a process that is no test.
func play(role string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if role == roleWrit {
		return cli.Run(ctx, cli.Process())
	}
	var config etcd.Config
	err := json.Unmarshal([]byte(os.Getenv(memberEnv)), &config)
	if err == nil {
		var member *etcd.Member
		if member, err = etcd.New(config, nil); err == nil {
			err = member.Run(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
