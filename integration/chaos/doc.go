// Package chaos holds tests that kill, pause and cut what runs, at random
// moments, and no code. Seeds are printed; WRIT_SEED repeats one.
package chaos
