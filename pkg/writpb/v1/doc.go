// Package writv1 is generated from proto/writ/v1 by scripts/gen: the messages
// and the gRPC services of writ, version 1.
//
// It owns nothing and decides nothing. What can never happen: a change here
// that is not a change of the .proto files, and a change of those that breaks
// an older peer (scripts/check compares both). Clients and workers use
// pkg/client and pkg/worker rather than this package; every message may be
// used from any goroutine as long as nobody changes it. Calls fail with gRPC
// statuses, whose details are messages of this package such as Problem.
package writv1
