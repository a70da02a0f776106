package session_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
)

const (
	modelSlots = 2
	// modelTTL and modelMargin make the worker's own deadline.
	modelTTL    = 6 * second
	modelMargin = second
)

// fate is what the server knows of an attempt, and what became of it in truth.
type fate struct {
	session.Assignment
	sent     bool // once assigned, on some stream
	unwanted bool // the server ended it by itself
	claimed  bool
	refused  bool // the server heard that the worker does not know it
	terminal bool // a report, or the server, ended it

	unknown      bool // the worker said so
	doomed       bool // the deadline passed while the worker held it fenced
	begun, ended int
	never        bool // it was given up before it began; its report is being written
	report       bool // the shell keeps one
	closed       bool
}

// ends says that the shell has an end to report.
func (f *fate) ends() bool { return f.begun > f.ended || f.never && !f.report }

// letter is a message under way; it counts on its own stream only.
type letter struct {
	stream int
	toward string // what the receiver is to do: a verb of deliver
	token  record.Token
	good   bool
	sentAt session.Instant
}

// net is an agent, its shell, a server, and a network between them that
// delays, reorders, drops and breaks. Only what DESIGN.md promises is kept:
// what is heard on one stream is not heard on the next.
type net struct {
	t      *rapid.T
	agent  *session.Agent
	now    session.Instant
	stream int  // number of the stream that counts
	open   bool // a Hello on it was answered
	fates  []*fate
	post   []letter
	acked  session.Instant // send time of the newest acknowledged Hello or heartbeat
	lossy  bool
}

func (n *net) fate(t record.Token) *fate {
	i := slices.IndexFunc(n.fates, func(f *fate) bool { return f.Token == t })
	require.GreaterOrEqual(n.t, i, 0, "nobody knows token %s", t)
	return n.fates[i]
}

func (n *net) deadline() session.Instant { return n.acked + modelTTL - modelMargin }

func (n *net) mail(toward string, t record.Token, good bool) {
	if n.open {
		n.post = append(n.post, letter{stream: n.stream, toward: toward, token: t, good: good, sentAt: n.now})
	}
}

// do is the worker's shell, and holds the agent to what can never happen.
func (n *net) do(acts []session.Action) {
	for _, a := range acts {
		f := n.fate(a.Token)
		switch a.Act {
		case session.Begin:
			n.begin(f)
		case session.Cancel, session.GiveUp, session.Fence:
			require.Equal(n.t, 1, f.begun, "%s of %s, which does not run", a.Act, a.Token)
			n.end(f)
		case session.Report:
			require.Zero(n.t, f.begun, "%s runs and is reported as never started", a.Token)
			f.never = true
		case session.Close:
			require.Equal(n.t, f.begun, f.ended, "%s is closed while it runs", a.Token)
			f.closed = true
		case session.SendStarted:
			n.mail("started", a.Token, false)
		case session.SendFinished:
			require.True(n.t, f.report, "a report of %s is sent before it was kept", a.Token)
			n.mail("finished", a.Token, false)
		case session.SendUnknown:
			require.Equal(n.t, f.begun, f.ended, "%s runs and is said to be unknown", a.Token)
			f.unknown = true
			n.mail("unknown", a.Token, false)
		case session.SendPhase:
		}
	}
}

func (n *net) begin(f *fate) {
	require.Zero(n.t, f.begun, "%s begins twice", f.Token)
	require.False(n.t, f.unknown, "%s was said to be unknown and begins", f.Token)
	require.False(n.t, f.doomed, "%s begins, but its deadline has struck", f.Token)
	require.False(n.t, f.never, "%s was given up and begins", f.Token)
	if !f.Idempotent {
		require.True(n.t, f.claimed, "%s begins without a claim", f.Token)
		require.Less(n.t, n.now, n.deadline(), "%s begins past the deadline", f.Token)
	}
	f.begun++
	running := 0
	for _, g := range n.fates {
		running += g.begun - g.ended
	}
	require.LessOrEqual(n.t, running, modelSlots)
}

// end is the end of a process, or of one that never was; its report is kept.
func (n *net) end(f *fate) {
	f.ended, f.never, f.report = f.begun, f.begun == 0, true
	n.do(n.agent.Ended(f.Token, n.now))
}

// deliver gives a message to whom it is for.
func (n *net) deliver(l letter) {
	if l.stream != n.stream || !n.open {
		return
	}
	switch l.toward {
	case "assign":
		n.do(n.agent.Assign(n.fate(l.token).Assignment, n.now))
	case "cancel":
		n.do(n.agent.Cancelled(l.token, n.now))
	case "probe":
		n.do(n.agent.Probed(l.token))
	case "started-ack":
		n.do(n.agent.Answered(l.token, l.good, n.now))
	case "finished-ack":
		n.do(n.agent.Settled(l.token))
	case "beat-ack":
		acts := n.agent.Alive(l.sentAt+modelTTL-modelMargin, n.now)
		n.acked = max(n.acked, l.sentAt)
		n.do(acts)
		n.bury()
	default:
		n.serve(l)
	}
}

// serve is the server: its records, and its answers.
func (n *net) serve(l letter) {
	if l.toward == "beat" {
		n.post = append(n.post, letter{stream: n.stream, toward: "beat-ack", sentAt: l.sentAt})
		return
	}
	f := n.fate(l.token)
	switch l.toward {
	case "started":
		good := !f.terminal && !f.unwanted && !f.refused
		f.claimed = f.claimed || good
		n.mail("started-ack", f.Token, good)
	case "finished":
		f.terminal = true
		n.mail("finished-ack", f.Token, true)
	case "unknown":
		f.refused = f.refused || !f.claimed
	}
}

// reopen is a stream that breaks and another that says Hello.
func (n *net) reopen() {
	n.stream++
	n.open, n.post = true, nil
	named := map[record.Token]bool{}
	for _, h := range n.agent.Held() {
		named[h.Token] = true
	}
	for _, f := range n.fates {
		unclosed := f.ends() || f.report && !f.closed
		require.False(n.t, unclosed && !named[f.Token], "the Hello leaves %s out", f.Token)
		if f.sent && !named[f.Token] && !f.terminal {
			switch {
			case f.claimed:
				f.terminal = true // declared lost
			case !f.refused:
				n.mail("assign", f.Token, true)
			}
		}
	}
	sent := n.now
	acts := n.agent.Opened(sent+modelTTL-modelMargin, n.now)
	n.acked = max(n.acked, sent)
	n.do(acts)
	n.bury()
}

// pass lets time pass; nothing looks at the clock.
func (n *net) pass(d session.Instant) {
	n.now += d
	for _, f := range n.fates {
		_, held := n.agent.Phase(f.Token)
		f.doomed = f.doomed || held && !f.Idempotent && f.OnLost == record.OnLostRetry && n.now >= n.deadline()
	}
}

// tick looks at the clock.
func (n *net) tick() {
	n.do(n.agent.Tick(n.now))
	n.bury()
}

// bury checks that nothing lives whose deadline has struck.
func (n *net) bury() {
	for _, f := range n.fates {
		require.False(n.t, f.doomed && f.begun > f.ended, "%s outlives the deadline", f.Token)
	}
}

// arrive takes any one message, or loses it, or leaves it to come again.
func (n *net) arrive() {
	if len(n.post) == 0 {
		return
	}
	i := rapid.IntRange(0, len(n.post)-1).Draw(n.t, "letter")
	l := n.post[i]
	outcome := rapid.IntRange(0, 9).Draw(n.t, "outcome")
	if outcome > 0 || !n.lossy { // 0: it comes again later
		n.post = slices.Delete(n.post, i, i+1)
	}
	if outcome > 1 || !n.lossy { // 1: it is lost
		n.deliver(l)
	}
}

func (n *net) assign() {
	f := &fate{Assignment: session.Assignment{Token: record.Token(fmt.Sprintf("t%02d", len(n.fates))), OnLost: record.OnLostWait}, sent: true}
	switch rapid.IntRange(0, 2).Draw(n.t, "kind") {
	case 0:
		f.Idempotent = true
	case 1:
		f.OnLost = record.OnLostRetry
	}
	n.fates = append(n.fates, f)
	n.mail("assign", f.Token, true)
}

// some draws an attempt; nil where there is none.
func (n *net) some() *fate {
	if len(n.fates) == 0 {
		return nil
	}
	return rapid.SampledFrom(n.fates).Draw(n.t, "attempt")
}

// heal lets everything come through until nothing is left to be said.
func (n *net) heal() {
	n.lossy = false
	n.reopen()
	for range 400 {
		n.pass(second)
		n.mail("beat", "", true)
		n.tick()
		for len(n.post) > 0 {
			l := n.post[0]
			n.post = n.post[1:]
			n.deliver(l)
		}
		for _, f := range n.fates {
			if f.ends() {
				n.end(f)
			}
		}
	}
	require.True(n.t, n.agent.Empty(), "never closed: %v", n.agent.Held())
	for _, f := range n.fates {
		require.False(n.t, f.report && !f.terminal, "the report of %s got lost", f.Token)
	}
}

func TestAnAgentKeepsItsPromisesOverABadNetwork(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := &net{t: t, agent: session.NewAgent(modelSlots), lossy: true}
		n.reopen()
		for range 150 {
			n.step()
		}
		n.heal()
	})
}

// step is one thing that happens; what keeps a session going happens most.
func (n *net) step() {
	switch rapid.SampledFrom([]string{
		"assign", "arrive", "arrive", "arrive", "arrive", "beat", "wait", "wait", "pause", "break", "reopen", "end", "ask",
	}).Draw(n.t, "step") {
	case "assign":
		n.assign()
	case "arrive":
		n.arrive()
	case "beat":
		n.mail("beat", "", true)
	case "wait":
		n.pass(session.Instant(rapid.IntRange(1, 3000).Draw(n.t, "ms")) * second / 1000)
		n.tick()
	case "pause": // of the agent: nothing looks at the clock
		n.pass(session.Instant(rapid.IntRange(1, 7).Draw(n.t, "s")) * second)
	case "break":
		n.open, n.post = false, nil
	case "reopen":
		n.reopen()
	case "end":
		if f := n.some(); f != nil && f.ends() {
			n.end(f)
		}
	case "ask":
		if f := n.some(); f != nil {
			f.unwanted = f.unwanted || rapid.Bool().Draw(n.t, "cancel")
			n.mail(map[bool]string{true: "cancel", false: "probe"}[f.unwanted], f.Token, true)
		}
	}
}
