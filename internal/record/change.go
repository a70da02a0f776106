package record

import (
	"errors"
	"fmt"
	"slices"
)

// Value is what is stored under a key: one of the record types of this
// package, by value, or a Blob.
type Value interface {
	// Wrote returns the id of the write that left the value as it is, or ""
	// where the value carries none.
	Wrote() WriteID
}

// Bears says whether v proves that the write w was committed: it is the one
// that left v as it is or, in a row or a run, one of its transitions.
func Bears(v Value, w WriteID) bool {
	if v == nil || w == "" {
		return false
	}
	if kept, ok := v.(interface{ HasWrite(WriteID) bool }); ok {
		return kept.HasWrite(w)
	}
	return v.Wrote() == w
}

// Want is what an expectation asks of the state before the Txn.
type Want string

// The expectations. All but the last two are about one key.
const (
	WantAbsent    Want = "absent"    // the key does not exist
	WantPresent   Want = "present"   // the key exists
	WantRev       Want = "rev"       // the key's last change is revision Rev
	WantCreateRev Want = "create"    // the key was created at revision Rev
	WantEmpty     Want = "empty"     // no key lies in the range
	WantUnchanged Want = "unchanged" // no key of the range was put after revision Rev
)

// Expect is one condition under which a change is made. Make it with Absent,
// Present, At, CreatedAt, Empty or Unchanged.
type Expect struct {
	Key   Key
	Range Range
	Want  Want
	Rev   int64
}

// Absent expects that k does not exist.
func Absent(k Key) Expect { return Expect{Key: k, Want: WantAbsent} }

// Present expects that k exists.
func Present(k Key) Expect { return Expect{Key: k, Want: WantPresent} }

// At expects that k is as it was left by revision rev; with rev 0, that it
// does not exist.
func At(k Key, rev int64) Expect {
	if rev == 0 {
		return Absent(k)
	}
	return Expect{Key: k, Want: WantRev, Rev: rev}
}

// CreatedAt expects that k exists since revision rev.
func CreatedAt(k Key, rev int64) Expect { return Expect{Key: k, Want: WantCreateRev, Rev: rev} }

// Empty expects that no key lies in r.
func Empty(r Range) Expect { return Expect{Range: r, Want: WantEmpty} }

// Unchanged expects that no key of r was put after revision rev.
func Unchanged(r Range, rev int64) Expect { return Expect{Range: r, Want: WantUnchanged, Rev: rev} }

// Ranged says that the expectation is about a range of keys.
func (e Expect) Ranged() bool { return e.Want == WantEmpty || e.Want == WantUnchanged }

// Put stores a value.
type Put struct {
	Key   Key
	Value Value
	// Lease, where not zero, is the etcd lease that the key goes with. A change
	// with a lease must expect a key of the same lease, or grant it itself in
	// the same breath: a put on a dead lease fails its whole batch.
	Lease int64
}

// Delete removes one key or, with Over set, every key of a range.
type Delete struct {
	Key  Key
	Over bool
	// Range counts where Over is set.
	Range Range
}

// Remove deletes one key.
func Remove(k Key) Delete { return Delete{Key: k} }

// RemoveAll deletes every key of a range.
func RemoveAll(r Range) Delete { return Delete{Over: true, Range: r} }

// Change is one guarded write, all of it or nothing: plain data that the store
// turns into one Txn. Where every expectation holds in the state before it,
// puts and deletes are done together.
//
// Write is stored in the values of Put (see Bears). Sent again, byte for byte,
// it is recognised by it, which is the only way to settle an answer that was
// lost.
type Change struct {
	Rule   Rule
	Write  WriteID
	Expect []Expect
	Put    []Put
	Delete []Delete
}

// NewChange makes a change. It refuses one without expectations or effects,
// one that touches a key twice, and a put whose value does not carry the write
// id though another of the change's values could not prove the write either.
func NewChange(rule Rule, write WriteID, expect []Expect, put []Put, del ...Delete) (Change, error) {
	c := Change{Rule: rule, Write: write, Expect: expect, Put: put, Delete: del}
	if err := c.Check(); err != nil {
		return Change{}, fmt.Errorf("change by rule %s: %w", rule, err)
	}
	return c, nil
}

// Check reports why c may not be sent, or nil.
func (c Change) Check() error {
	if c.Rule == "" {
		return errors.New("it has no rule")
	}
	if len(c.Expect) == 0 {
		return errors.New("it expects nothing; every write is guarded")
	}
	if len(c.Put)+len(c.Delete) == 0 {
		return errors.New("it writes nothing")
	}
	if len(c.Put) > 0 && !c.provable() {
		return errors.New("no value that it puts carries its write id, so a lost answer could not be settled")
	}
	seen := make(map[Key]bool, len(c.Put)+len(c.Delete))
	for _, k := range c.written() {
		if seen[k] {
			return fmt.Errorf("it writes %v twice", k)
		}
		seen[k] = true
	}
	for _, d := range c.Delete {
		for k := range seen {
			if d.Over && d.Range.Has(k) {
				return fmt.Errorf("it writes %v and deletes a range over it", k)
			}
		}
	}
	return nil
}

// provable says that a reader can tell whether c was made: by its write id or,
// where it puts nothing but blobs, by their bytes (see WriteOnce).
func (c Change) provable() bool {
	if c.WriteOnce() {
		return true
	}
	if c.Write == "" {
		return false
	}
	for _, p := range c.Put {
		if Bears(p.Value, c.Write) {
			return true
		}
	}
	return false
}

// WriteOnce says that c puts nothing but blobs, each under a key that it expects
// absent, and deletes nothing: parts of something large, written before the
// record that names them. Whoever wrote the same bytes under the same keys did
// what c asks for.
func (c Change) WriteOnce() bool {
	for _, p := range c.Put {
		if _, blob := p.Value.(Blob); !blob || !slices.Contains(c.Expect, Absent(p.Key)) {
			return false
		}
	}
	return len(c.Put) > 0 && len(c.Delete) == 0
}

// written lists the single keys that c puts or deletes.
func (c Change) written() []Key {
	keys := make([]Key, 0, len(c.Put)+len(c.Delete))
	for _, p := range c.Put {
		keys = append(keys, p.Key)
	}
	for _, d := range c.Delete {
		if !d.Over {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// Clashes says that a and b may not share a Txn: one writes or deletes what
// the other writes, deletes or expects. All compares of a Txn see the state
// before it, so the second of the two would be decided on stale ground.
func (c Change) Clashes(o Change) bool { return c.upsets(o) || o.upsets(c) }

// upsets says that c writes something that o writes or expects.
func (c Change) upsets(o Change) bool {
	for _, k := range c.written() {
		if o.touches(k) {
			return true
		}
	}
	for _, d := range c.Delete {
		if d.Over && o.within(d.Range) {
			return true
		}
	}
	return false
}

// touches says that c writes or expects something about k.
func (c Change) touches(k Key) bool {
	for _, e := range c.Expect {
		if e.Ranged() && e.Range.Has(k) || !e.Ranged() && e.Key == k {
			return true
		}
	}
	for _, p := range c.Put {
		if p.Key == k {
			return true
		}
	}
	for _, d := range c.Delete {
		if d.Over && d.Range.Has(k) || !d.Over && d.Key == k {
			return true
		}
	}
	return false
}

// within says that c writes or expects something that may lie in r.
func (c Change) within(r Range) bool {
	for _, e := range c.Expect {
		if e.Ranged() && e.Range.Meets(r) || !e.Ranged() && r.Has(e.Key) {
			return true
		}
	}
	for _, p := range c.Put {
		if r.Has(p.Key) {
			return true
		}
	}
	for _, d := range c.Delete {
		if d.Over && d.Range.Meets(r) || !d.Over && r.Has(d.Key) {
			return true
		}
	}
	return false
}
