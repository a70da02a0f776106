// Package mirror keeps a view of active/ fresh, and admits when it is not.
//
// It owns the one [view.Active] of a replica. It lists active/ once, watches
// from there, and loads the specs that runs need. Whoever reads the view does
// so through [Mirror.Read], under the read lock; whoever must act on changes
// takes a [Feed], which gathers what was touched until it is asked.
//
//	list ──► swap ──► watch ──► apply, under the lock ──► feeds, waiters
//	  ▲                 │
//	  └── compacted, ───┘          specs that are missing ──► loader ──► Load
//	      broken
//
// What can never happen: a reader sees half a revision; a change is applied
// and no feed hears of it; a slow feed holds up the mirror (what it has not
// taken is merged); I/O is done under the lock.
//
// [Mirror.Run] is called once and owns two goroutines; everything else may be
// called from any. On failure it lists again, with a growing pause, for as long
// as its context lasts; meanwhile the view stands still, and [Mirror.Age] says
// for how long it has not been known to be current.
package mirror
