// Package etcdtest gives tests a real etcd. It is imported by tests only.
//
// One test binary shares one embedded member, started by the first [Start] and
// kept until the binary ends; each test stays inside a [Prefix] of its own. A
// test that compacts, restarts, stops or fills its etcd takes one of its own
// with [StartOwn] or [StartCluster], since the shared one is everybody's.
//
//	func TestMain(m *testing.M) { etcdtest.Main(m) } // stops it, looks for leaks
//
//	func TestX(t *testing.T) {
//		t.Parallel()
//		client := etcdtest.Start(t).Client(t)
//		prefix := etcdtest.Prefix(t)
//
// What can never happen: a data directory outlives the test binary, even one
// that is killed (a shell that waits for the binary's end removes it); a member
// syncs to disk (these members are fast because they lose data on a crash of
// the machine, so nothing measured here means anything).
//
// All functions may be called from any test goroutine that may call t.Fatal.
// They fail the test when etcd does not come up.
package etcdtest
