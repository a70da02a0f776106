package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// hash is 128 bits of SHA-256 over parts, each with its length before it, in
// lower-case base32.
func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:16]))
}

// fingerprint is of what was asked for, before defaults are filled in: a new
// revision with other defaults does not make a repeated request another one.
func fingerprint(params map[string]string) string {
	parts := make([]string, 0, 2*len(params))
	for _, name := range slices.Sorted(maps.Keys(params)) {
		parts = append(parts, name, params[name])
	}
	return hash(parts...)
}

const (
	// sortable is an alphabet whose letters sort by their worth. It has no t
	// and no dash, so that nothing written in it looks like a logical date or
	// an idempotency key.
	sortable = "0123456789abcdefghjkmnpqrsuvwxyz"
	// timeDigits hold milliseconds until the year 3084.
	timeDigits = 9
	// drawnDigits are 50 random bits beside each millisecond.
	drawnDigits = 10
)

// makeSuffix is the suffix of a run that nobody named: ids sort by the time at
// which they were made, and none is made twice.
func makeSuffix(now time.Time) string {
	out := make([]byte, timeDigits+drawnDigits)
	_, _ = rand.Read(out) // crypto/rand ends the process rather than fail
	for i := range out {
		out[i] = sortable[out[i]%32]
	}
	ms := now.UnixMilli()
	for i := timeDigits - 1; i >= 0; i-- {
		out[i] = sortable[ms%32]
		ms /= 32
	}
	return string(out)
}
