// Package arch holds the rules of the house as tests, and no code.
//
// What is checked, each by one test:
//
//   - arrows: the table in tables_test.go says what every package may import,
//     and why; the standing fences (who may know etcd, gRPC, a key's name) are
//     checked beside it, so that an edit of the table alone opens none of them;
//   - purity: CORE reads no clock, starts no goroutine and has no package-level
//     variable;
//   - documentation: one package comment per directory, in doc.go, and a
//     comment on every exported name;
//   - habits that a linter cannot see: goroutine-leak checks where goroutines
//     start, file lengths, names of files, no path of anybody's machine;
//   - layout: what may stand at the top level, and that links in documents lead
//     somewhere.
//
// A package that exists and is not in the table is a failure; an entry whose
// package does not exist yet is not. Every checker is a function from source
// to findings, and is itself shown to fail on small sources made for it.
package arch
