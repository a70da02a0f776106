package replica_test

import (
	"testing"

	"github.com/writ-sched/writ/internal/etcd/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
