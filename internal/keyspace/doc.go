// Package keyspace names and encodes every key of a cluster. It is the only
// place that knows a path.
//
// A [Space] is the prefix of one cluster, `/writ/<cluster>/`. Below it
// [Space.Key] and [Space.Parse] turn a [record.Key] into a key string and back,
// [Space.Range] turns a [record.Range] into an interval of key strings, and
// [Encode] and [Decode] turn values into compact JSON and back. Every part of a
// key is escaped where it holds anything but letters, digits, `_`, `.` and `-`,
// and every interval ends at a slash, so that no run, worker or concurrency key
// is ever mixed up with another that it is a prefix of.
//
// What can never happen: two records share a key string; a key string is read
// as two records; a value is decoded as the record of another family; Parse or
// Decode panics, whatever stands in the store.
//
// Everything here is a value or a pure function and may be called from any
// goroutine. A foreign or damaged key or value is an error that names it.
package keyspace
