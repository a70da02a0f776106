package cli

// Took, Size and Some are words for people.
var (
	Took = took
	Size = size
	Some = some
)
