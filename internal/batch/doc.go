// Package batch is the group committer as a step machine: it decides which
// changes share a Txn, which wait, and what becomes of each.
//
// The [Machine] owns nothing but its own memory. Its shell, in package store,
// hands it what happened and does what it asks for:
//
//	Submit ──► waiting ──► ready ──► in flight ──► Report
//	             ▲  a change that clashes    │ │
//	             └─ is before it             │ └─ refused: halves, each sent alone
//	                                         └─── unknown: Send again, same items
//
// While Txns are in flight further changes gather; as soon as one of a few
// places is free, all that are ready go together, within the limits on
// operations and bytes. There is no delay: an idle machine sends at once.
//
// What can never happen: two changes that clash are in flight together, or in
// another order than that of their submission; an item is reported twice, or
// never (while its Txns are answered); a Txn exceeds the limits, unless a single
// change does; one change that etcd refuses fails its neighbours; an item whose
// earlier try may have committed is reported as a conflict where nothing that it
// writes could prove that try.
//
// [Machine.Step] is called by one goroutine at a time. It is deterministic: the
// same inputs give the same outputs. An input about an item or Txn that it does
// not know is ignored.
package batch
