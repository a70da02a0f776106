// Package storetest is a store in memory, and the tests that it and the real
// one both pass. It is imported by tests and by the simulator only.
//
// A [Fake] keeps records, their revisions and their history in maps. Its
// committer is the step machine of package batch, as that of the real store is;
// what the real one sends to etcd the fake does to its maps, or to what a fault
// makes of it:
//
//	change ──► batch ──► Txn ──► fault? ──► maps ──► events ──► watches
//	                               ├─ lost reply: done, but the answer is lost
//	                               ├─ zombie: the answer is lost, done when released
//	                               ├─ drop: the answer is lost, never done
//	                               └─ hold: waits until released
//
// [Run] is the conformance suite: whatever is promised of a store is a test
// there, and runs against both. [Samples] are records of every family for tests
// and for the manual.
//
// What can never happen: the fake makes a change whose expectations do not hold
// in the state before its Txn; it reports a verdict that the real store would
// not; it reads a clock of its own (in a synctest bubble its leases expire in
// the bubble's time). It links no etcd.
//
// All methods may be called from any goroutine. [Fake.Run] owns the committer
// and the expiry of leases, and ends with its context.
package storetest
