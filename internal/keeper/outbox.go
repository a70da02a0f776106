package keeper

import (
	"net"
	"sync"
	"time"
)

// outbox sends frames to the agent without ever making the loop wait: an agent
// that is stopped must not stop its keeper. What it holds is bounded by the
// attempts, a few frames each.
type outbox struct {
	conn net.Conn

	mu     sync.Mutex // guards the two below
	queue  [][]byte
	closed bool

	wake chan struct{} // room for one
	done chan struct{}
}

func newOutbox(conn net.Conn) *outbox {
	o := &outbox{conn: conn, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go o.run()
	return o
}

// send queues one frame. A frame that is too long (an error text never is)
// would be a bug of ours, and the agent's watch over the answers finds it.
func (o *outbox) send(f Frame) {
	body, err := EncodeFrame(f)
	if err != nil {
		return
	}
	o.mu.Lock()
	o.queue = append(o.queue, body)
	o.mu.Unlock()
	o.poke()
}

// flush ends the outbox and waits until what is queued is sent, but not for an
// agent that does not read.
func (o *outbox) flush() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.poke()
	if o.conn.SetWriteDeadline(time.Now().Add(lastFlush)) == nil {
		<-o.done
	}
}

// lastFlush is what a closing keeper gives an agent to take its last words.
const lastFlush = time.Second

func (o *outbox) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) run() {
	defer close(o.done)
	for range o.wake {
		o.mu.Lock()
		batch, closed := o.queue, o.closed
		o.queue = nil
		o.mu.Unlock()
		for _, body := range batch {
			// The reader sees the same end, and acts on it.
			if _, err := o.conn.Write(body); err != nil {
				return
			}
		}
		if closed {
			return
		}
	}
}
