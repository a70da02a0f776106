package batch

import (
	"container/heap"

	"github.com/writ-sched/writ/internal/record"
)

// The default limits: ETCD.md's reasons for each stand at the fields.
const (
	DefaultTxns  = 4
	DefaultOps   = 128
	DefaultBytes = 512 << 10
)

// Limits bound the Txns. A zero value means the default.
type Limits struct {
	// Txns is how many may be in flight: throughput comes from a few Txns times
	// many changes, not from a long queue in etcd.
	Txns int
	// Ops bounds the items of a Txn plus the ops of its widest item, as etcd
	// counts them.
	Ops int
	// Bytes bounds the encoded changes of a Txn, since a watch delivers it as
	// one message.
	Bytes int
}

// ID names one submitted change. The shell gives it; it is used once.
type ID int64

// Txn names one Txn over all its tries.
type Txn int64

// Input is something that happened: [Submit], [Done] or [GiveUp].
type Input interface{ input() }

// Submit brings a change. Ops is the width of its child Txn: the greatest number
// of its compares, of its operations, or of its reads. Bytes is its encoded size.
type Submit struct {
	ID     ID
	Change record.Change
	Ops    int
	Bytes  int
}

// Done says how one try of a Txn went.
type Done struct {
	Txn   Txn
	Class Class
	// Outcomes, of an answered Txn, are in the order of its items.
	Outcomes []record.Outcome
	// Err, of a Txn that was refused, says why.
	Err error
}

// GiveUp says that nobody waits for an item any more.
type GiveUp struct{ ID ID }

func (Submit) input() {}
func (Done) input()   {}
func (GiveUp) input() {}

// Class is how the try of a Txn went as a whole.
type Class int

// The classes.
const (
	// Answered: etcd decided every item.
	Answered Class = iota
	// Lost: the Txn may have been made, or may still be.
	Lost
	// Busy: the Txn was not made, for a reason that passes.
	Busy
	// Refused: the Txn was not made because of something in it.
	Refused
)

// Output is something for the shell to do: [Send] or [Report].
type Output interface{ output() }

// Send sends a Txn of the named items, in this order. Try counts from 0; the
// shell pauses before each further try, longer each time.
type Send struct {
	Txn   Txn
	Items []ID
	Try   int
}

// Report says what became of an item. Err is set where etcd refuses it alone;
// the outcome is then a conflict that saw nothing.
type Report struct {
	ID      ID
	Outcome record.Outcome
	Err     error
}

func (Send) output()   {}
func (Report) output() {}

// Machine is the committer's mind.
type Machine struct {
	limits Limits
	items  map[ID]*item
	order  index
	ready  readyQueue
	halves [][]*item // of refused Txns; they go before what is ready
	flight map[Txn]*flight
	last   Txn
	seq    int64
	out    []Output
}

// item is a change that is not settled.
type item struct {
	Submit
	seq      int64
	blockers int     // unsettled changes before it that clash
	blocked  []*item // those that wait for it
	sent     bool    // it is in flight, or in a half that will be
	lost     bool    // an earlier try may have committed
	forsaken bool    // given up and reported, but still in flight
	settled  bool

	touches footprint
	noted   int64 // seq of the last item that this one was noted to block
}

// flight is a Txn in flight.
type flight struct {
	items []*item
	tries int
}

// Fill returns the limits with the defaults in place of zeros.
func (l Limits) Fill() Limits {
	fill := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	fill(&l.Txns, DefaultTxns)
	fill(&l.Ops, DefaultOps)
	fill(&l.Bytes, DefaultBytes)
	return l
}

// New makes a machine without items.
func New(limits Limits) *Machine {
	return &Machine{
		limits: limits.Fill(), items: map[ID]*item{}, order: newIndex(), flight: map[Txn]*flight{},
	}
}

// Unsettled is how many items wait or are in flight.
func (m *Machine) Unsettled() int { return len(m.items) }

// Step takes one input in and returns what is to be done, in order.
func (m *Machine) Step(in Input) []Output {
	switch in := in.(type) {
	case Submit:
		m.submit(in)
	case Done:
		m.done(in)
	case GiveUp:
		m.giveUp(in.ID)
	}
	m.pump()
	out := m.out
	m.out = nil
	return out
}

func (m *Machine) submit(s Submit) {
	if _, known := m.items[s.ID]; known {
		return
	}
	m.seq++
	it := &item{Submit: s, seq: m.seq}
	m.items[s.ID] = it
	for _, before := range m.order.add(it) {
		before.blocked = append(before.blocked, it)
		it.blockers++
	}
	if it.blockers == 0 {
		heap.Push(&m.ready, it)
	}
}

// giveUp reports an item as unknown. One that was never sent will not be; it
// still holds its place until those before it are settled, for it stands between
// them and those behind it. One in flight holds it until its answer.
func (m *Machine) giveUp(id ID) {
	it, ok := m.items[id]
	if !ok || it.forsaken {
		return
	}
	m.out = append(m.out, Report{ID: id, Outcome: record.Outcome{Verdict: record.Unknown}})
	it.forsaken = true
	if !it.sent && it.blockers == 0 {
		m.settle(it)
	}
}

// report tells what became of an item and lets go of it.
func (m *Machine) report(it *item, o record.Outcome, err error) {
	if it.lost && o.Verdict == record.Conflict && (err != nil || len(it.Change.Put) == 0) {
		// Nothing that was read could bear the write id of the earlier try.
		o, err = record.Outcome{Verdict: record.Unknown}, nil
	}
	if !it.forsaken {
		m.out = append(m.out, Report{ID: it.ID, Outcome: o, Err: err})
	}
	m.settle(it)
}

// settle lets those go on that wait for the item.
func (m *Machine) settle(it *item) {
	it.settled = true
	delete(m.items, it.ID)
	m.order.remove(it)
	for _, next := range it.blocked {
		next.blockers--
		if next.blockers == 0 {
			heap.Push(&m.ready, next)
		}
	}
	it.blocked = nil
}

func (m *Machine) done(d Done) {
	f, ok := m.flight[d.Txn]
	if !ok {
		return
	}
	switch {
	case d.Class == Answered && len(d.Outcomes) == len(f.items):
		delete(m.flight, d.Txn)
		for i, it := range f.items {
			m.report(it, d.Outcomes[i], nil)
		}
	case d.Class == Refused:
		delete(m.flight, d.Txn)
		m.refused(f, d.Err)
	default:
		m.again(d.Txn, f, d.Class != Busy)
	}
}

// refused halves a Txn, so that what is wrong with one item stays its own. What
// was refused beside an item that nobody waits for any more is tried without it.
func (m *Machine) refused(f *flight, err error) {
	if len(f.items) == 1 {
		m.report(f.items[0], record.Outcome{Verdict: record.Conflict}, err)
		return
	}
	items := m.wanted(f.items)
	if len(items) < len(f.items) {
		m.halves = append(m.halves, items)
		return
	}
	half := len(items) / 2
	m.halves = append(m.halves, items[:half:half], items[half:])
}

// again sends the same once more, without those that nobody waits for.
func (m *Machine) again(id Txn, f *flight, lost bool) {
	for _, it := range f.items {
		it.lost = it.lost || lost
	}
	f.items = m.wanted(f.items)
	if len(f.items) == 0 {
		delete(m.flight, id)
		return
	}
	f.tries++
	m.out = append(m.out, Send{Txn: id, Items: ids(f.items), Try: f.tries})
}

// wanted settles those that nobody waits for and returns the others.
func (m *Machine) wanted(items []*item) []*item {
	var kept []*item
	for _, it := range items {
		if it.forsaken {
			m.settle(it)
		} else {
			kept = append(kept, it)
		}
	}
	return kept
}

// pump fills the free places.
func (m *Machine) pump() {
	for len(m.flight) < m.limits.Txns {
		var items []*item
		if len(m.halves) > 0 {
			items = m.wanted(m.halves[0])
			m.halves = m.halves[1:]
		} else {
			items = m.gather()
			if len(items) == 0 {
				return
			}
		}
		if len(items) == 0 {
			continue
		}
		m.last++
		m.flight[m.last] = &flight{items: items}
		m.out = append(m.out, Send{Txn: m.last, Items: ids(items)})
	}
}

// gather takes what is ready, oldest first, as far as it fits one Txn. What is
// ready never clashes: of two that do, the later is blocked by the earlier.
func (m *Machine) gather() []*item {
	var items []*item
	widest, bytes := 0, 0
	for len(m.ready) > 0 {
		next := m.ready[0]
		if next.settled || next.forsaken {
			heap.Pop(&m.ready)
			if !next.settled {
				m.settle(next)
			}
			continue
		}
		wide, size := max(widest, next.Ops), bytes+next.Bytes
		if len(items) > 0 && (len(items)+1+wide > m.limits.Ops || size > m.limits.Bytes) {
			break
		}
		heap.Pop(&m.ready)
		next.sent = true
		items, widest, bytes = append(items, next), wide, size
	}
	return items
}

func ids(items []*item) []ID {
	list := make([]ID, len(items))
	for i, it := range items {
		list[i] = it.ID
	}
	return list
}

// readyQueue is a heap of items by the order of their submission.
type readyQueue []*item

func (q readyQueue) Len() int           { return len(q) }
func (q readyQueue) Less(i, j int) bool { return q[i].seq < q[j].seq }
func (q readyQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *readyQueue) Push(x any) { *q = append(*q, x.(*item)) }

// Pop implements heap.Interface.
func (q *readyQueue) Pop() any {
	last := len(*q) - 1
	it := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return it
}
