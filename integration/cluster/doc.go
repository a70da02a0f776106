// Package cluster runs whole clusters for tests, of real processes: replicas,
// workers and, where asked for, etcd members of their own. It is imported by
// tests only.
//
//	func TestMain(m *testing.M) { cluster.Main(m) }
//
//	func TestX(t *testing.T) {
//		c := cluster.Start(t, cluster.Config{Replicas: 3, Workers: 2})
//		c.Kill(c.Leader())
//
// Every process is the test binary, executed again as writ or as an etcd
// member; so the race detector watches the processes as well, and what is
// tested is what was compiled. Processes bind loopback, live in directories of
// the test, and are named r1, r2 … (replicas), w1 … (workers), e1 … (members).
//
// What can never happen: a process outlives its test, even where the test
// binary is killed. A process that ends by itself fails the test that started
// it, with the end of its log.
//
// Functions may be called from the test's own goroutine only.
package cluster
