// Command testsummary reads the events of `go test -json` from its standard
// input and writes what a person wants to see of them: the runner's line for
// every package, the output of what failed, what was skipped and why, and one
// closing line, `N passed, N failed, N skipped`.
//
// A test that has subtests is counted through them; a package that failed with
// no failed test (it did not build, its process died, it leaked a goroutine)
// counts as one failure. What never happens is a green line over a stream that
// broke off or in which no test ran: both exit with 1, as every failure does.
//
// It is called by scripts/test, runs in one goroutine and keeps the output of
// tests only until it is known whether they passed.
package main
