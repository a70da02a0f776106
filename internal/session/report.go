package session

import (
	"math/bits"

	"github.com/writ-sched/writ/internal/record"
)

// ReportKind is what a worker reports about a token.
type ReportKind string

// The kinds of reports.
const (
	ReportStarted  ReportKind = "started"
	ReportFinished ReportKind = "finished"
	ReportUnknown  ReportKind = "unknown" // the probed token is refused
	ReportOmitted  ReportKind = "omitted" // the Hello does not name a running token
)

// ReportID is the write id of a report: made of who says it, about what, so
// that a report that is sent again through another replica bears the same.
func ReportID(s record.SessionID, t record.Token, k ReportKind) record.WriteID {
	h := newHash()
	for _, part := range []string{string(s), string(t), string(k)} {
		h = h.add(part)
	}
	return record.WriteID(h.letters())
}

// hash is FNV-1a over 128 bits, which is enough to keep reports apart: nobody
// gains by making two collide, who could as well send the other's report.
type hash struct{ hi, lo uint64 }

// The offset basis and the prime of FNV-1a's 128-bit form; the prime is
// 2^88 + 0x13b.
const (
	basisHi  = 0x6c62272e07bb0142
	basisLo  = 0x62b821756295c58d
	primeLo  = 0x13b
	primeBit = 88 - 64
)

func newHash() hash { return hash{basisHi, basisLo} }

// add hashes a part and its end, so that parts cannot run into one another.
func (h hash) add(part string) hash {
	for i := range len(part) {
		h = h.octet(part[i])
	}
	return h.octet(0)
}

func (h hash) octet(b byte) hash {
	h.lo ^= uint64(b)
	hi, lo := bits.Mul64(h.lo, primeLo)
	hi += h.hi*primeLo + h.lo<<primeBit
	return hash{hi, lo}
}

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// letters is the hash in lower-case base32.
func (h hash) letters() string {
	out := make([]byte, 0, 26)
	for hi, lo := h.hi, h.lo; len(out) < 26; hi, lo = hi<<5|lo>>59, lo<<5 {
		out = append(out, alphabet[hi>>59])
	}
	return string(out)
}
