// Package metrics counts what a replica does, in DESIGN's words.
//
// It owns the metrics of one process: [New] registers them with the registry
// that it is given, never with Prometheus's global one (an embedded etcd fills
// that). Whoever counts is handed the [Set] and calls one method where the
// thing happens.
//
// All methods may be called from any goroutine, at any time, and on a nil Set,
// which counts nothing: tests and tools need no registry. Nothing here fails
// or blocks; a second Set on one registry is a programmer's mistake, and New
// panics on it.
package metrics
