// Package replica is one scheduler process: it plugs store, mirror, election,
// leader, gateway and api together, and runs them.
//
//	listen ─► etcd member ─► dial ─► meta ─► mirror listed ─► serve ─► Ready
//	                                           │
//	            election ─► announce ─► mirror caught up ─► lead, compact, sweep
//
//	stop: not serving ─► leadership handed over ─► streams closed, workers move
//	      ─► calls finish ─► address withdrawn ─► store, etcd
//
// It owns the listener, the etcd member where one is embedded, and the order in
// which everything starts and stops. It decides nothing about runs.
//
// What can never happen: it listens beyond loopback without being told that
// this is safe; it serves before its mirror was listed; it works on a store of
// a newer schema; it leads on a mirror that is older than its term.
//
// [Replica.Run] is called once and blocks; [Replica.Ready] and
// [Replica.Address] may be used from any goroutine. Run ends when its context
// does, with nil, or when a part fails that the rest cannot do without: the
// etcd member, the listener. An etcd that cannot be reached later on is not
// such a failure: the replica says that it is not ready, and goes on trying.
package replica
