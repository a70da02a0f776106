package election

import "context"

// Verify is the read after the wait, which no test can force to disagree with
// the watch from outside.
func (e *Elector) Verify(ctx context.Context, term Term) (bool, error) { return e.verify(ctx, term) }
