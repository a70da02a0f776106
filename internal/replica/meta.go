package replica

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/writ-sched/writ/internal/record"
)

// ErrSchema means that the store was written by a newer version of writ.
var ErrSchema = errors.New("the store has a newer schema")

// letters returns n random bytes in lower-case base32.
func letters(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails, see crypto/rand
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

func writeID() record.WriteID { return record.WriteID(letters(9)) }

// metaStore is what the first look at a store needs.
type metaStore interface {
	Get(ctx context.Context, k record.Key) (record.Stored, error)
	Commit(ctx context.Context, c record.Change) (record.Outcome, error)
}

// openMeta reads the meta record, or writes that of a new store, and refuses a
// store that this version does not understand.
func openMeta(ctx context.Context, s metaStore) (record.Meta, error) {
	for {
		stored, err := s.Get(ctx, record.MetaKey())
		if err != nil {
			return record.Meta{}, fmt.Errorf("read the meta record: %w", err)
		}
		if meta, ok := stored.Value.(record.Meta); ok {
			if meta.Schema > record.Schema {
				return meta, fmt.Errorf("%w: %d, this version knows %d (hint: update this replica)", ErrSchema, meta.Schema, record.Schema)
			}
			return meta, nil
		}
		meta := record.Meta{Schema: record.Schema, Cluster: letters(10), CreatedAt: time.Now().UTC(), Write: writeID()}
		c, err := record.NewChange(record.RuleInitialise, meta.Write, []record.Expect{record.Absent(record.MetaKey())},
			[]record.Put{{Key: record.MetaKey(), Value: meta}})
		if err != nil {
			return meta, err
		}
		o, err := s.Commit(ctx, c)
		if err != nil {
			return meta, fmt.Errorf("write the meta record: %w", err)
		}
		if o.Verdict == record.Unknown {
			return meta, fmt.Errorf("write the meta record: etcd does not answer: %w", context.Cause(ctx))
		}
	}
}
