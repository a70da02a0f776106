package keyspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/writ-sched/writ/internal/record"
)

// Encode writes a value as it stands in the store: compact JSON, or the bytes
// of a blob.
func Encode(v record.Value) ([]byte, error) {
	if v == nil {
		return nil, errors.New("encode a value: there is none")
	}
	if blob, ok := v.(record.Blob); ok {
		return blob, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // people read it with etcdctl, browsers never
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// EncodeAt is Encode for a value that is to stand under k. It refuses a value
// of another family.
func EncodeAt(k record.Key, v record.Value) ([]byte, error) {
	if want := kind(k.Family); reflect.TypeOf(v) != reflect.TypeOf(want) {
		return nil, fmt.Errorf("encode %s: expected %T, have %T", k.Family, want, v)
	}
	return Encode(v)
}

// kind is the zero value of what stands under the keys of a family, or nil.
func kind(f record.Family) record.Value {
	switch f {
	case record.FamilyElection, record.FamilyChunk, record.FamilyResult:
		return record.Blob(nil)
	case record.FamilyMeta:
		return record.Meta{}
	case record.FamilyRun:
		return record.Run{}
	case record.FamilyClear:
		return record.Clear{}
	case record.FamilyAttempt:
		return record.Attempt{}
	case record.FamilyWorker:
		return record.Worker{}
	case record.FamilySession:
		return record.Session{}
	case record.FamilyReplica:
		return record.Replica{}
	case record.FamilyWorkflow:
		return record.Workflow{}
	case record.FamilyUnproven:
		return record.Unproven{}
	case record.FamilyHolder:
		return record.Holder{}
	case record.FamilyPool:
		return record.PoolLimit{}
	case record.FamilyBackfill:
		return record.Backfill{}
	case record.FamilySignal:
		return record.Signal{}
	case record.FamilyRevision:
		return record.Revision{}
	case record.FamilyInput:
		return record.Input{}
	case record.FamilyEnded:
		return record.Ended{}
	case record.FamilyPage:
		return record.EndedPage{}
	case record.FamilyIndex:
		return record.IndexLine{}
	case record.FamilyCompact:
		return record.Compaction{}
	default:
		return nil
	}
}

// Decode reads the value that stands under k. Fields that this version does
// not know are passed over: a store with records that it must not touch is
// refused as a whole, by the schema in its meta record.
func Decode(k record.Key, b []byte) (record.Value, error) {
	v, err := decode(k.Family, b)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", k.Family, err)
	}
	return v, nil
}

func decode(f record.Family, b []byte) (record.Value, error) {
	switch kind(f).(type) {
	case record.Blob:
		return record.Blob(bytes.Clone(b)), nil
	case record.Meta:
		return fields[record.Meta](b)
	case record.Run:
		return fields[record.Run](b)
	case record.Clear:
		return fields[record.Clear](b)
	case record.Attempt:
		return fields[record.Attempt](b)
	case record.Worker:
		return fields[record.Worker](b)
	case record.Session:
		return fields[record.Session](b)
	case record.Replica:
		return fields[record.Replica](b)
	case record.Workflow:
		return fields[record.Workflow](b)
	case record.Unproven:
		return fields[record.Unproven](b)
	case record.Holder:
		return fields[record.Holder](b)
	case record.PoolLimit:
		return fields[record.PoolLimit](b)
	case record.Backfill:
		return fields[record.Backfill](b)
	case record.Signal:
		return fields[record.Signal](b)
	case record.Revision:
		return fields[record.Revision](b)
	case record.Input:
		return fields[record.Input](b)
	case record.Ended:
		return fields[record.Ended](b)
	case record.EndedPage:
		return fields[record.EndedPage](b)
	case record.IndexLine:
		return fields[record.IndexLine](b)
	case record.Compaction:
		return fields[record.Compaction](b)
	default:
		return nil, fmt.Errorf("no value is known for the family %q", f)
	}
}

// fields reads one JSON object; null and other JSON are no record.
func fields[T record.Value](b []byte) (record.Value, error) {
	if trimmed := bytes.TrimSpace(b); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, errors.New("expected a JSON object")
	}
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	return v, nil
}
