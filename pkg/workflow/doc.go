// Package workflow builds workflows in Go, instead of in a file.
//
// It is the model of the workflow file: the same fields, the same words, the
// same defaults. What comes out is the message of the protocol, for
// client.Apply or any other client of the API:
//
//	New ─► Param, Task, Task, … ─► Build ─► *writv1.Workflow ─► ApplyWorkflow
//
// Everything that can be said is an option. [Option] says something about the
// workflow, [TaskOption] about a task, [ParamOption] about a parameter;
// [DefaultOption] says how a task runs, and may also stand in [Defaults].
// Options are values: they may be kept, shared and given to many tasks. Where
// two say the same thing, the later one wins; only what a task does is said
// once.
//
// A task is needed by its handle, so that neither a misspelt need nor a cycle can
// be written; [NeedsID] is for tasks that are added later.
//
// [Workflow.Build] reports what the builder can know to be wrong, all at once
// and with its place: a name that stands twice, a task that does two things or
// nothing, an input that is no JSON. What a workflow may say beyond that is
// checked where it is applied, by the server alone, so a program that was built
// before a server was upgraded refuses nothing that the server would take.
//
// What can never happen: a message shares memory with what was handed to an
// option; two calls of Build without a change between them differ; a number is
// cut to fit the message.
//
// A Workflow is built by one goroutine. The package does no I/O, starts no
// goroutine and keeps no state of its own.
package workflow
