package reconcile

import (
	"strings"

	"github.com/writ-sched/writ/internal/record"
)

// Stamp says who decides. The leader makes a fresh one, with a Prefix that was
// never used before, for each pass and for each round of dispatches.
type Stamp struct {
	Who string // replica/<id>
	// Lease and Rev name the leader's election key. With Rev 0 no change
	// compares it: every replica may then act as if it led.
	Lease int64
	Rev   int64
	// Prefix begins every write id: at least 13 characters of base32.
	Prefix string
}

// expect adds the compare of the election key, which stops a deposed leader.
func (s Stamp) expect(list []record.Expect) []record.Expect {
	if s.Rev == 0 {
		return list
	}
	return append(list, record.CreatedAt(record.ElectionKey(s.Lease), s.Rev))
}

const base32 = "abcdefghijklmnopqrstuvwxyz234567"

// write makes the write id of the n-th change under the stamp.
func (s Stamp) write(n int) record.WriteID {
	var b strings.Builder
	b.WriteString(s.Prefix)
	for {
		b.WriteByte(base32[n%32])
		if n /= 32; n == 0 {
			return record.WriteID(b.String())
		}
	}
}

// digest is FNV-1a over parts, a zero byte after each: the source of write ids
// and jitter that every replica makes alike.
func digest(parts ...string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, p := range parts {
		for i := range len(p) {
			h = (h ^ uint64(p[i])) * prime
		}
		h *= prime
	}
	// The last steps of murmur3: FNV alone leaves the high bits of short and
	// similar texts alike.
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return h
}

// share returns a number in [0, 1) that depends on parts alone.
func share(parts ...string) float64 { return float64(digest(parts...)>>11) / (1 << 53) }

// fixedWrite makes a write id that depends on parts alone, for writes whose
// content does too.
func fixedWrite(parts ...string) record.WriteID {
	h := digest(parts...)
	var b strings.Builder
	for range 13 {
		b.WriteByte(base32[h%32])
		h /= 32
	}
	return record.WriteID(b.String())
}
