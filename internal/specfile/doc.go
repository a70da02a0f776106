// Package specfile reads workflow files and blames the right line.
//
// It owns the YAML form of a workflow: which fields there are, which of them
// `defaults` may hold and how they merge, and what YAML would read as
// something else than was written. One table of fields (fields.go) serves the
// decoder and the JSON Schema for editors, so that the two cannot drift. What a
// workflow may say beyond its form is package spec's affair; its problems are
// given their line here.
//
//	bytes ──► one document ──► tree: no aliases, no tags, no key twice
//	                             │
//	        problems ◄───────────┤
//	   file:line:col: field      ▼
//	        ▲              fields ──► spec.Workflow ──► spec.Validate
//	        └───────────────────────────────────────────────┘
//
// What can never happen: a value reaches a task spelled otherwise than in the
// file; an alias or a merge key is expanded, so that a small file becomes a
// large one; a file that Decode accepts is refused by spec.Validate; nesting
// exhausts a stack; the work grows faster than the bytes, of which there are
// at most MaxBytes.
//
// Decode and Schema are pure and may be called from any goroutine. Decode
// fails with an [InvalidError] that lists every problem of the first stage
// that found one: the text, the tree, the fields, the workflow.
package specfile
