package batch

import "github.com/writ-sched/writ/internal/record"

// index knows what unsettled items touch, so that finding those that clash with
// a new one costs what it touches, not how many there are.
//
// Items settle only after all that block them. So the last writer of a key
// stands for everything before it, and only readers since then are kept.
type index struct {
	families map[record.Family]*family
}

// family is what is touched of one family of records.
type family struct {
	lanes map[record.RunID]map[record.Key]*lane
	reads map[record.Range]set // ranges that are expected to be empty or unchanged
	wipes map[record.Range]set // ranges that are deleted
}

// lane is what is touched of one key.
type lane struct {
	writer  *item // the last one, or nil
	readers set   // those after it
}

type set map[*item]struct{}

func newIndex() index { return index{families: map[record.Family]*family{}} }

// footprint is what one change touches, each key and range once.
type footprint struct {
	writes, reads []record.Key
	wipes, checks []record.Range
}

func footprintOf(c record.Change) footprint {
	var f footprint
	written := make(map[record.Key]bool, len(c.Put)+len(c.Delete))
	for _, p := range c.Put {
		written[p.Key] = true
		f.writes = append(f.writes, p.Key)
	}
	for _, d := range c.Delete {
		if d.Over {
			f.wipes = append(f.wipes, plain(d.Range))
		} else {
			written[d.Key] = true
			f.writes = append(f.writes, d.Key)
		}
	}
	for _, e := range c.Expect {
		switch {
		case e.Ranged():
			f.checks = append(f.checks, plain(e.Range))
		case !written[e.Key]:
			f.reads = append(f.reads, e.Key)
		}
	}
	return f
}

// plain drops what does not count, so that equal ranges are equal values.
func plain(r record.Range) record.Range {
	if r.Task == "" {
		r.Instance = ""
	}
	return r
}

// blockers gathers items, each once.
type blockers struct {
	of   *item
	list []*item
}

func (b *blockers) add(before *item) {
	if before != nil && before.noted != b.of.seq {
		before.noted = b.of.seq
		b.list = append(b.list, before)
	}
}

func (b *blockers) addAll(before set) {
	for it := range before {
		b.add(it)
	}
}

// add enters an item and returns those before it that clash with it.
func (x index) add(it *item) []*item {
	b := &blockers{of: it}
	it.touches = footprintOf(it.Change)
	for _, k := range it.touches.writes {
		f := x.family(k.Family)
		if l := f.lanes[k.Run][k]; l != nil {
			b.add(l.writer)
			b.addAll(l.readers)
		}
		f.over(k, f.reads, b)
		f.over(k, f.wipes, b)
	}
	for _, k := range it.touches.reads {
		f := x.family(k.Family)
		if l := f.lanes[k.Run][k]; l != nil {
			b.add(l.writer)
		}
		f.over(k, f.wipes, b)
	}
	for _, r := range it.touches.wipes {
		f := x.family(r.Family)
		f.within(r, true, b)
		meet(r, f.reads, b)
		meet(r, f.wipes, b)
	}
	for _, r := range it.touches.checks {
		f := x.family(r.Family)
		f.within(r, false, b)
		meet(r, f.wipes, b)
	}
	x.enter(it)
	return b.list
}

func (x index) enter(it *item) {
	for _, k := range it.touches.writes {
		l := x.family(k.Family).lane(k)
		l.writer, l.readers = it, set{}
	}
	for _, k := range it.touches.reads {
		x.family(k.Family).lane(k).readers[it] = struct{}{}
	}
	for _, r := range it.touches.wipes {
		hold(x.family(r.Family).wipes, r, it)
	}
	for _, r := range it.touches.checks {
		hold(x.family(r.Family).reads, r, it)
	}
}

// remove takes a settled item out.
func (x index) remove(it *item) {
	for _, keys := range [][]record.Key{it.touches.writes, it.touches.reads} {
		for _, k := range keys {
			x.family(k.Family).leave(k, it)
		}
	}
	for _, r := range it.touches.wipes {
		release(x.family(r.Family).wipes, r, it)
	}
	for _, r := range it.touches.checks {
		release(x.family(r.Family).reads, r, it)
	}
}

func hold(ranges map[record.Range]set, r record.Range, it *item) {
	if ranges[r] == nil {
		ranges[r] = set{}
	}
	ranges[r][it] = struct{}{}
}

func release(ranges map[record.Range]set, r record.Range, it *item) {
	delete(ranges[r], it)
	if len(ranges[r]) == 0 {
		delete(ranges, r)
	}
}

func (x index) family(name record.Family) *family {
	f := x.families[name]
	if f == nil {
		f = &family{
			lanes: map[record.RunID]map[record.Key]*lane{},
			reads: map[record.Range]set{}, wipes: map[record.Range]set{},
		}
		x.families[name] = f
	}
	return f
}

func (f *family) lane(k record.Key) *lane {
	if f.lanes[k.Run] == nil {
		f.lanes[k.Run] = map[record.Key]*lane{}
	}
	l := f.lanes[k.Run][k]
	if l == nil {
		l = &lane{readers: set{}}
		f.lanes[k.Run][k] = l
	}
	return l
}

func (f *family) leave(k record.Key, it *item) {
	l := f.lanes[k.Run][k]
	if l == nil {
		return
	}
	if l.writer == it {
		l.writer = nil
	}
	delete(l.readers, it)
	if l.writer == nil && len(l.readers) == 0 {
		delete(f.lanes[k.Run], k)
		if len(f.lanes[k.Run]) == 0 {
			delete(f.lanes, k.Run)
		}
	}
}

// over adds the items of every range that k lies in. Such a range agrees with
// k in the fields that are set in it, so that trying each choice of fields finds
// it without looking at the others.
func (f *family) over(k record.Key, ranges map[record.Range]set, b *blockers) {
	if len(ranges) == 0 {
		return
	}
	for choice := range 1 << 4 {
		r := record.Range{Family: k.Family}
		if choice&1 != 0 {
			r.Run = k.Run
		}
		if choice&2 != 0 {
			r.Task, r.Instance = k.Task, k.Instance
		}
		if choice&4 != 0 {
			r.Name = k.Name
		}
		if choice&8 != 0 {
			r.N = k.N
		}
		if items, ok := ranges[plain(r)]; ok {
			b.addAll(items)
		}
	}
}

// within adds the last writers of the keys in r and, where asked, the readers.
func (f *family) within(r record.Range, readers bool, b *blockers) {
	visit := func(lanes map[record.Key]*lane) {
		for k, l := range lanes {
			if !r.Has(k) {
				continue
			}
			b.add(l.writer)
			if readers {
				b.addAll(l.readers)
			}
		}
	}
	if r.Run != "" {
		visit(f.lanes[r.Run])
		return
	}
	for _, lanes := range f.lanes {
		visit(lanes)
	}
}

// meet adds the items of every range that r has a key in common with.
func meet(r record.Range, ranges map[record.Range]set, b *blockers) {
	for other, items := range ranges {
		if r.Meets(other) {
			b.addAll(items)
		}
	}
}
