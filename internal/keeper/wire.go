package keeper

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// Argv0 is the name under which the one binary runs as a keeper.
	Argv0 = "writ-keeper"
	// SocketFD is the file descriptor of the socket to the agent.
	SocketFD = 3
	// MaxFrame bounds one frame in bytes. It is above what Linux lets a
	// program have as arguments and environment together (a quarter of an
	// 8 MiB stack), doubled for JSON's escapes.
	MaxFrame = 8 << 20
)

// Op says what a frame is.
type Op string

// The agent sends Start, Kill, KillAll, Extend and Ping; the keeper answers
// with Hello (once, first), Started, Ended, Pong, and Refused before it gives
// the agent up.
const (
	OpStart   Op = "start"
	OpKill    Op = "kill"
	OpKillAll Op = "kill_all"
	OpExtend  Op = "extend"
	OpPing    Op = "ping"

	OpHello   Op = "hello"
	OpStarted Op = "started"
	OpEnded   Op = "ended"
	OpPong    Op = "pong"
	OpRefused Op = "refused"
)

// Frame is one message in either direction: four bytes of length, big endian,
// then this as JSON. Which fields count depends on Op.
type Frame struct {
	Op    Op            `json:"op"`
	Token string        `json:"token,omitempty"` // Kill, Started
	Start *Start        `json:"start,omitempty"` // Start
	Grace time.Duration `json:"grace,omitempty"` // Kill, KillAll
	Until Instant       `json:"until,omitempty"` // Extend
	Seq   uint64        `json:"seq,omitempty"`   // Ping, Pong
	Pid   int           `json:"pid,omitempty"`   // Hello, Started
	Ended *Ended        `json:"ended,omitempty"` // Ended
	Text  string        `json:"text,omitempty"`  // Refused
}

// Start asks for one attempt.
type Start struct {
	Token string   `json:"token"`
	Ref   string   `json:"ref"`  // for people: run/task/attempt
	Argv  []string `json:"argv"` // looked up in PATH of Env
	Env   []string `json:"env"`  // whole environment
	Cwd   string   `json:"cwd,omitempty"`
	Dir   string   `json:"dir"`           // where pid.json and end.json are put
	Log   string   `json:"log,omitempty"` // first segment of the output; empty: count and discard
	Head  int64    `json:"head"`          // bytes kept from the beginning
	Tail  int64    `json:"tail"`          // bytes kept at least from the end
	Mark  uint64   `json:"mark"`

	Fence     Instant       `json:"fence,omitempty"`      // zero: not fenced
	FenceTerm time.Duration `json:"fence_term,omitempty"` // TERM so long before the fence; zero: none
	Timeout   time.Duration `json:"timeout,omitempty"`    // zero: none
	Grace     time.Duration `json:"grace"`                // between TERM and KILL for timeout and strays
}

// Cause says who ended the main process of an attempt. It is empty where the
// process ended by itself, also where its end was asked for a moment too late.
type Cause string

// The causes. AgentGone is read only by the agent's successor, from end.json.
const (
	CauseTimeout   Cause = "timeout"
	CauseFenced    Cause = "fenced"
	CauseKilled    Cause = "killed"
	CauseAgentGone Cause = "agent_gone"
)

// Ended is how an attempt ended: sent to the agent, and kept as end.json for
// its successor.
type Ended struct {
	Token      string    `json:"token"`
	Ref        string    `json:"ref"`
	ExitCode   int       `json:"exit_code"`             // counts where Signal is zero and StartError empty
	Signal     int       `json:"signal,omitempty"`      // that ended the main process
	Cause      Cause     `json:"cause,omitempty"`       // see Cause
	StartError string    `json:"start_error,omitempty"` // it never ran, for this reason
	StartedAt  time.Time `json:"started_at,omitzero"`   // wall clock, UTC
	EndedAt    time.Time `json:"ended_at"`
	Started    Instant   `json:"started,omitempty"` // the same on the boot clock
	Ended      Instant   `json:"ended"`
	Strays     int       `json:"strays,omitempty"` // processes seen alive after the main one
	LogBytes   int64     `json:"log_bytes"`        // written by the attempt, kept or not
	LogError   string    `json:"log_error,omitempty"`
}

// Birth is pid.json: which process is an attempt's main one.
type Birth struct {
	Pid   int    `json:"pid"`
	Ticks uint64 `json:"ticks"` // start time as /proc counts it
}

// ErrFrame is wrapped by every error about bytes that are no frame.
var ErrFrame = errors.New("not a frame of the keeper's protocol")

// EncodeFrame returns f with its length in front. It fails where f is longer
// than MaxFrame.
func EncodeFrame(f Frame) ([]byte, error) {
	body, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", f.Op, err)
	}
	if len(body) > MaxFrame {
		return nil, fmt.Errorf("encode %s: %d bytes, at most %d are allowed", f.Op, len(body), MaxFrame)
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...), nil
}

// ReadFrame reads one frame. io.EOF means that the other end closed between
// two frames; errors that wrap ErrFrame that it does not speak the protocol.
func ReadFrame(r io.Reader) (Frame, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return Frame{}, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n == 0 || n > MaxFrame {
		return Frame{}, fmt.Errorf("%w: length %d, expected 1 to %d", ErrFrame, n, MaxFrame)
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	var f Frame
	dec := json.NewDecoder(&body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return f, nil
}
