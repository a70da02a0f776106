package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/specfile"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// maxChunk is the largest part of a spec that is stored as one value: a Txn of
// writ has 512 KiB, of etcd 1.5 MiB.
const maxChunk = 256 << 10

// maxFileName is the longest name of a file that problems are told with.
const maxFileName = 255

// sent is a workflow as a request carries it.
type sent interface {
	GetFile() *writv1.File
	GetWorkflow() *writv1.Workflow
}

// receive reads a workflow in either form, and validates it.
func receive(m sent) (*spec.Workflow, error) {
	switch {
	case m.GetFile() != nil:
		f := m.GetFile()
		return specfile.Decode(spec.Clip(f.GetName(), maxFileName), f.GetContent())
	case m.GetWorkflow() == nil:
		return nil, invalid("source", "", "is missing, expected a file or a workflow")
	}
	w, problems := readWorkflow(m.GetWorkflow())
	if problems = append(problems, spec.Validate(w)...); len(problems) > 0 {
		return nil, invalidSpec(problems)
	}
	return w, nil
}

func (s *Service) validate(_ context.Context, r *writv1.ValidateWorkflowRequest) (*writv1.ValidateWorkflowResponse, error) {
	w, err := receive(r)
	if problems := problemsIn(err); len(problems) > 0 && r.GetSource() != nil {
		return &writv1.ValidateWorkflowResponse{Problems: problems}, nil
	}
	if err != nil {
		return nil, err
	}
	return &writv1.ValidateWorkflowResponse{Name: string(w.Name), Tasks: int32(len(w.Tasks))}, nil
}

// draft is a revision that is about to be stored.
type draft struct {
	name   record.WorkflowName
	text   []byte
	digest string
	by     string
}

func (s *Service) apply(ctx context.Context, r *writv1.ApplyWorkflowRequest) (*writv1.ApplyWorkflowResponse, error) {
	by, err := person(r.GetBy())
	if err != nil {
		return nil, err
	}
	w, err := receive(r)
	if err != nil {
		return nil, err
	}
	text, err := spec.Encode(w)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	d := draft{name: w.Name, text: text, digest: "sha256:" + hex.EncodeToString(sum[:]), by: by}
	for range races {
		// Read from the store: the mirror may not show yet what another replica
		// stored, and "unchanged" would then be wrong.
		stored, err := s.get(ctx, record.WorkflowKey(d.name))
		if err != nil {
			return nil, fmt.Errorf("apply workflow %s: %w", d.name, err)
		}
		current, _ := stored.Value.(record.Workflow)
		if stored.ModRev != 0 && current.Digest == d.digest {
			return &writv1.ApplyWorkflowResponse{Name: string(d.name), Revision: int32(current.Revision)}, nil
		}
		revision, err := s.storeNext(ctx, d, current, stored.ModRev)
		switch {
		case err == nil:
			return &writv1.ApplyWorkflowResponse{Name: string(d.name), Revision: int32(revision), Changed: true}, nil
		case !errors.Is(err, ErrContended):
			return nil, fmt.Errorf("apply workflow %s: %w", d.name, err)
		}
	}
	return nil, fmt.Errorf("apply workflow %s: %w", d.name, ErrContended)
}

// storeNext writes the next revision. It fails with ErrContended where the pointer
// moved meanwhile.
func (s *Service) storeNext(ctx context.Context, d draft, current record.Workflow, modRev int64) (int, error) {
	for n := current.Revision + 1; n <= current.Revision+races; n++ {
		chunks, free, err := s.storeChunks(ctx, d, n)
		if err != nil {
			return 0, err
		}
		if !free {
			// Somebody wrote another spec under this number, and may be gone:
			// numbers need not be without holes, specs must not be mixed.
			continue
		}
		c, err := d.change(current, modRev, n, chunks)
		if err != nil {
			return 0, err
		}
		o, err := s.commit(ctx, c)
		if err != nil {
			return 0, err
		}
		if o.Verdict == record.Committed {
			return n, nil
		}
		if at, _ := o.Find(record.WorkflowKey(d.name)); at.ModRev != modRev {
			return 0, ErrContended
		}
	}
	return 0, ErrContended
}

// storeChunks writes the parts of a spec that does not fit one value, each
// under a key of its own. free is false where one of the keys holds something
// else.
func (s *Service) storeChunks(ctx context.Context, d draft, n int) (count int, free bool, err error) {
	if len(d.text) <= maxChunk {
		return 0, true, nil
	}
	for part := range slices.Chunk(d.text, maxChunk) {
		count++
		key := record.ChunkKey(d.name, n, count)
		c, err := record.NewChange(record.RuleApply, writeID(), []record.Expect{record.Absent(key)},
			[]record.Put{{Key: key, Value: record.Blob(part)}})
		if err != nil {
			return 0, false, err
		}
		o, err := s.commitUnseen(ctx, c)
		if err != nil {
			return 0, false, err
		}
		if o.Verdict == record.Conflict {
			at, _ := o.Find(key)
			if blob, _ := at.Value.(record.Blob); !bytes.Equal(blob, part) {
				return 0, false, nil
			}
		}
	}
	return count, true, nil
}

// change is the head of the revision with the pointer to it.
func (d draft) change(current record.Workflow, modRev int64, n, chunks int) (record.Change, error) {
	now, id := time.Now().UTC(), writeID()
	head := record.Revision{
		Schema: record.Schema, Workflow: d.name, Revision: n, Digest: d.digest, Bytes: len(d.text), Chunks: chunks,
		CreatedAt: now, By: d.by, Write: id,
	}
	if chunks == 0 {
		head.Spec = record.Text(d.text)
	}
	next := current // holds and the cursor stay
	next.Schema, next.Workflow, next.Revision, next.Digest = record.Schema, d.name, n, d.digest
	next.UpdatedAt, next.By, next.Write = now, d.by, id
	expect := []record.Expect{record.Absent(record.RevisionKey(d.name, n)), record.At(record.WorkflowKey(d.name), modRev)}
	for i := range chunks {
		expect = append(expect, record.Present(record.ChunkKey(d.name, n, i+1)))
	}
	return record.NewChange(record.RuleApply, id, expect, []record.Put{
		{Key: record.RevisionKey(d.name, n), Value: head}, {Key: record.WorkflowKey(d.name), Value: next},
	})
}
