package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/etcd/etcdtest"
)

// memberDirEnv makes this binary run a member on the directory it names, as a
// process of its own: exit status 3 means that Run failed with etcd.ErrFatal.
const memberDirEnv = "WRIT_TEST_MEMBER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(memberDirEnv); dir != "" {
		os.Exit(runMember(dir)) //nolint:forbidigo // this process is no test, and its status is the answer
	}
	etcdtest.Main(m)
}

func runMember(dir string) int {
	member, err := etcd.New(etcd.Config{Dir: dir, UnsafeNoFsync: true}, nil)
	if err == nil {
		err = member.Run(context.Background()) //nolint:forbidigo // this process is no test; it is killed
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, etcd.ErrFatal) {
		return 3
	}
	return 1
}
