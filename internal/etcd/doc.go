// Package etcd starts or reaches an etcd, and distrusts old versions.
//
// It owns two things. A [Member] is an etcd server inside this process: one
// data directory, real gRPC on loopback, alone or as one of several members.
// [Dial] reaches an etcd, embedded or external, through two connections of
// their own: Bulk for reads and writes, Live for watches and leases, because a
// large read starves a watch that shares its connection.
//
//	New(Config) ──► Run(ctx): lock directory ─► start ─► Ready ─► serve ─► stop
//	Dial(ctx, DialConfig): probe every endpoint ─► refuse | warn by name ─► Clients
//
// What can never happen: two members on one data directory (the directory is
// locked before etcd opens it); a member that listens beyond loopback without
// TLS unless it was told so; a client handed out before an endpoint answered,
// or for a server whose reads may be stale (see [Version.Supported]).
//
// On failure: [Member.Run] returns an error that names the directory or the
// address and says what to do. Where etcd would end the process through its
// logger's Fatal or Panic (for instance when the disk refuses a write), the
// goroutine concerned ends instead and Run returns [ErrFatal]; etcd's state in
// this process is then undefined, the directory stays locked, and the process
// must exit. A plain panic inside one of etcd's own goroutines cannot be caught
// and ends the process; nothing unsaved may live beside an embedded member.
//
// A Member is run by one goroutine; Ready and Endpoints may be called from any.
// Clients are safe for use from any goroutine. etcd registers its metrics in
// the global Prometheus registry, so members of one process share them.
package etcd
