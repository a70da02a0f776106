package etcd

import "time"

// Limits of an etcd with default settings. writ lives inside them, so that any
// external etcd works as it is.
const (
	// DefaultMaxTxnOps is the greatest number of compares, or of operations in
	// one branch, of a Txn (embed.DefaultMaxTxnOps; flag --max-txn-ops).
	DefaultMaxTxnOps = 128
	// DefaultMaxRequestBytes is the greatest size of one request, in bytes
	// (embed.DefaultMaxRequestBytes; flag --max-request-bytes).
	DefaultMaxRequestBytes = 3 << 19
	// DefaultQuotaBytes is the size of the database at which an embedded member
	// stops taking writes; etcd warns above this value.
	DefaultQuotaBytes = int64(8) << 30
	// MinLeaseTTL is the shortest lease that an etcd with default settings
	// grants: one and a half election timeouts, rounded up to a second.
	MinLeaseTTL = 2 * time.Second
	// ServerRequestTimeout is the time after which an etcd with default settings
	// gives up a request: 5 s and two election timeouts. A caller's deadline
	// must be shorter, since the client repeats a request that the server gave up.
	ServerRequestTimeout = 7 * time.Second
)

const (
	// keepAliveTime is how long a connection is quiet before the client pings;
	// grpc raises anything shorter to this.
	keepAliveTime = 10 * time.Second
	// keepAliveTimeout is how long the client waits for the answer to a ping.
	keepAliveTimeout = 3 * time.Second
	// defaultDialTimeout bounds Dial where the caller sets nothing.
	defaultDialTimeout = 5 * time.Second
	// defaultElectionTimeout is etcd's own default.
	defaultElectionTimeout = time.Second
	// bindTries bounds how often a free port is picked again after another
	// process took it between the pick and the bind.
	bindTries = 32
	// slowStart is when a member that is not yet ready is mentioned in the log.
	slowStart = 10 * time.Second
)
