// Package operate holds tests of what operators do to runs and workers, on
// whole clusters, and no code.
package operate
