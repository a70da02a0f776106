// Command bench measures writ beside raw etcd, in one run and by turns, so that
// what the machine does meets both. It prints a table for docs/performance.md.
//
//	flat   one run of many tasks that do nothing, by handlers of one worker
//	hop    a chain of tasks that do nothing, one after the other
//
// Raw etcd gets the very writes that writ made: the keys and values of the
// run's history, guarded, in nested Txns under the limits of the store's
// batches. What it need not do is decide, wait for a worker, or read.
//
// Absolute times mean nothing outside this machine and minute; the ratios do.
package main
