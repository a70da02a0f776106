// Package spec holds a workflow as its author meant it: the graph of tasks,
// what each runs, and when.
//
// It owns the types of a workflow, their JSON form (what a revision stores),
// every rule about what a workflow may say ([Validate]), what a run may be
// started with ([CheckParams]), the meaning of the ten trigger rules
// ([TriggerRule.Decide]), and the graph by index that the loop walks
// ([Compile]). It knows no state of a run and no file: package specfile reads
// YAML and gives every problem its line.
//
//	file ──specfile──► Workflow ──Validate──► Encode ──► revision in the store
//	                                                          │
//	             reconcile ◄── Graph ◄──Compile◄── Parse ◄────┘
//
// What can never happen: a workflow leaves [Parse] that Validate refuses; a
// walk over a graph recurses, so that no depth of it can exhaust a stack; a
// trigger rule is decided earlier or later than its table says; the same
// workflow gives its problems in another order.
//
// All functions are pure and may be called from any goroutine; a [Graph] is
// never changed after Compile. On failure they return problems, each with its
// place, what was expected and where possible a hint; they panic never on a
// workflow that Validate accepts.
package spec
