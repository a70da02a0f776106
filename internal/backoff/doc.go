// Package backoff says how long to wait before the next try.
//
// It is a leaf: pure arithmetic over the standard library, so that the public
// SDK may link it. It owns no timer, no clock and no random source; the caller
// waits, and hands in the draw:
//
//	wait := backoff.New(backoff.Config{Min: 100 * time.Millisecond, Max: 5 * time.Second}, rand.Float64)
//	for {
//		if err := try(ctx); err == nil {
//			wait.Reset()
//		}
//		if !sleep(ctx, wait.Next()) { return }
//	}
//
// What can never happen: a delay below Min or above Max; an overflow after any
// number of tries; two processes that failed at the same instant returning in
// step (half of every delay is drawn).
//
// A [Backoff] belongs to the one goroutine whose tries it counts. Nothing here
// fails: settings that make no sense are a programmer's mistake, and New
// panics on them.
package backoff
