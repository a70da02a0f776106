package leader

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// document is the ended document of one run while it is written: page after
// page, then the head. Whoever else writes it makes the same pages.
type document struct {
	run   record.RunID
	pages []record.Change // those not yet sent
	head  bool            // the head is on its way
}

// beginDocument starts the document of a run in phase ending, unless it is
// being written.
func (t *term) beginDocument(v *view.Active, id record.RunID, stamp reconcile.Stamp) {
	r, ok := v.Run(id)
	if !ok || t.documents[id] != nil {
		return
	}
	pages, err := reconcile.EndPages(r, stamp)
	if err != nil {
		t.config.Logger.Error("the document of an ended run cannot be made", zap.String("run", string(id)), zap.Error(err))
		return
	}
	d := &document{run: id, pages: pages}
	t.documents[id] = d
	t.proceed(v, d, stamp)
}

// proceed sends the next page, or the head after the last.
func (t *term) proceed(v *view.Active, d *document, stamp reconcile.Stamp) {
	if len(d.pages) > 0 {
		next := d.pages[0]
		d.pages = d.pages[1:]
		t.send(&flight{change: next, page: d})
		return
	}
	r, ok := v.Run(d.run)
	if !ok {
		delete(t.documents, d.run)
		return
	}
	head, err := reconcile.EndHead(v, r, stamp)
	if err != nil {
		t.config.Logger.Error("the document of an ended run cannot be closed", zap.String("run", string(d.run)), zap.Error(err))
		delete(t.documents, d.run)
		return
	}
	d.head = true
	t.send(&flight{change: head, page: d})
}

// advance goes on after a page or the head was settled. A write that lost means
// that the run moved: it is looked at again. After the head the document is
// remembered until the mirror shows that the run is gone.
func (t *term) advance(v *view.Active, f *flight, now time.Time) {
	d := f.page
	switch {
	case f.outcome.Verdict != record.Committed:
		delete(t.documents, d.run)
		t.later(view.Touched{Runs: []record.RunID{d.run}}, now)
	case !d.head:
		t.proceed(v, d, t.stamp(t.id))
	}
}

// restore puts rows of a run in phase reopening back, from the pages of its
// document. The pages are read beside the loop, once.
func (t *term) restore(ctx context.Context, v *view.Active, id record.RunID, turn reconcile.Turn) {
	r, ok := v.Run(id)
	if !ok || t.busy.Within(id) {
		return
	}
	delete(t.documents, id) // of the end before
	pages, read := t.pagesOf(id)
	if !read {
		t.fetch(ctx, id, r.Record.Pages)
		return
	}
	attempts, sent := 0, 0
	for _, page := range pages {
		attempts += len(page.Rows)
		changes, err := reconcile.RestorePage(r, page, turn.Stamp)
		if err != nil {
			t.config.Logger.Error("a run cannot be reopened", zap.String("run", string(id)), zap.Error(err))
			return
		}
		for _, c := range changes {
			t.send(&flight{change: c})
			sent++
		}
	}
	if sent > 0 {
		return
	}
	last, err := reconcile.Restored(r, attempts, turn)
	if err != nil {
		t.config.Logger.Error("a run cannot be reopened", zap.String("run", string(id)), zap.Error(err))
		return
	}
	t.forgetRestored(id)
	t.send(&flight{change: last})
}

func (t *term) pagesOf(id record.RunID) ([]record.EndedPage, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pages, ok := t.restored[id]
	return pages, ok
}

func (t *term) forgetRestored(id record.RunID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.restored, id)
}

// fetch reads the pages of a document and then has its run looked at. One
// that fails is tried again by the next full pass.
func (t *term) fetch(ctx context.Context, id record.RunID, count int) {
	t.mu.Lock()
	at := t.opening[id]
	t.opening[id] = true
	t.mu.Unlock()
	if at {
		return
	}
	t.reading.Go(func() {
		pages := make([]record.EndedPage, 0, count)
		for n := 1; n <= count; n++ {
			stored, err := t.reader.Get(ctx, record.PageKey(id, n))
			page, ok := stored.Value.(record.EndedPage)
			if err != nil || !ok {
				if ctx.Err() == nil {
					t.config.Logger.Warn("a page of a run to be reopened cannot be read", zap.String("run", string(id)), zap.Int("page", n), zap.Error(err))
				}
				t.mu.Lock()
				delete(t.opening, id)
				t.mu.Unlock()
				return
			}
			pages = append(pages, page)
		}
		t.mu.Lock()
		t.restored[id] = pages
		t.reopened = append(t.reopened, id)
		delete(t.opening, id)
		t.mu.Unlock()
		t.inbox.knock()
	})
}

// read returns the runs whose pages were fetched since it was last called.
func (t *term) read() view.Touched {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.reopened)
	runs := slices.Compact(t.reopened)
	t.reopened = nil
	return view.Touched{Runs: runs}
}
