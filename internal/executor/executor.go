package executor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/writ-sched/writ/internal/keeper"
)

var (
	// ErrStartedBefore says that the token was started from this state
	// directory already; it is never started again.
	ErrStartedBefore = errors.New("the token was started before")
	// ErrStopped says that Run is not running, or that its keeper is gone.
	ErrStopped = errors.New("the executor is not running")
)

// Config configures an Executor.
type Config struct {
	// StateDir is the worker's state directory, absolute and locked by the
	// caller.
	StateDir string
	// Executable is the program that runs as the keeper when it is executed
	// under keeper.Argv0; empty: this very program.
	Executable string
	// PingEvery is how often the keeper is asked whether it lives; zero: 1 s.
	PingEvery time.Duration
	// PingsMissed is after how many unanswered pings in a row it is killed;
	// zero: 10. Pings, not time, are counted, so that a pause of the agent
	// itself counts for one.
	PingsMissed int
}

// Executor runs attempts. New makes it, Run brings it to life.
type Executor struct {
	cfg  Config
	boot string

	mu      sync.Mutex // guards all below
	link    *link      // to the keeper; nil while there is none
	linked  chan struct{}
	ended   bool // Run has returned
	live    map[string]*Process
	serial  uint32
	stateID keeper.StateID
}

// New checks the configuration.
func New(cfg Config) (*Executor, error) {
	if !filepath.IsAbs(cfg.StateDir) {
		return nil, fmt.Errorf("executor: state directory %q: expected an absolute path", cfg.StateDir)
	}
	if cfg.Executable == "" {
		cfg.Executable = "/proc/self/exe"
	}
	if cfg.PingEvery <= 0 {
		cfg.PingEvery = time.Second
	}
	if cfg.PingsMissed <= 0 {
		cfg.PingsMissed = 10
	}
	return &Executor{cfg: cfg, linked: make(chan struct{}), live: make(map[string]*Process)}, nil
}

// Run keeps a keeper until ctx ends, and then ends everything at once. It
// returns nil where that was what happened. It is called once.
func (x *Executor) Run(ctx context.Context) error {
	defer x.close()
	boot, err := keeper.BootID()
	if err != nil {
		return fmt.Errorf("executor: %w", err)
	}
	state, id, err := loadState(x.cfg.StateDir)
	if err != nil {
		return fmt.Errorf("executor: %w", err)
	}
	x.mu.Lock()
	x.boot, x.stateID = boot, id
	x.mu.Unlock()
	state.Boot = boot
	for {
		hello, err := x.runKeeper(ctx, &state, id)
		if sweepErr := x.lose(ctx, id); sweepErr != nil {
			return fmt.Errorf("executor: after the end of the keeper: %w", sweepErr)
		}
		if ctx.Err() != nil {
			return nil
		}
		if !hello {
			return fmt.Errorf("executor: start the keeper: %w", err)
		}
	}
}

// Start asks for an attempt and returns at once; whether it could be started
// is told by its Result. Errors are about the Spec (StartError would say the
// same for ever), about a token that was started before, or that the executor
// is gone; then nothing runs. It waits, while ctx allows, for a keeper that is
// being started.
func (x *Executor) Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := spec.check(); err != nil {
		return nil, fmt.Errorf("start attempt %s: %w", spec.Ref, err)
	}
	l, err := x.await(ctx)
	if err != nil {
		return nil, fmt.Errorf("start attempt %s: %w", spec.Ref, err)
	}
	if err := makeAttempt(x.cfg.StateDir, &spec, x.boot); err != nil {
		return nil, fmt.Errorf("start attempt %s: %w", spec.Ref, err)
	}
	p := &Process{Token: spec.Token, ref: spec.Ref, log: spec.Log, started: make(chan struct{}), done: make(chan struct{})}
	x.mu.Lock()
	if x.link != l {
		x.mu.Unlock()
		return nil, errors.Join(fmt.Errorf("start attempt %s: %w", spec.Ref, ErrStopped), Forget(x.cfg.StateDir, spec.Token))
	}
	x.live[spec.Token] = p
	x.serial = max(1, x.serial+1)
	order := x.order(&spec, x.serial)
	x.mu.Unlock()
	frame, err := keeper.EncodeFrame(keeper.Frame{Op: keeper.OpStart, Start: order})
	if err != nil {
		now := time.Now().UTC()
		x.drop(p, Result{StartError: err.Error(), EndedAt: now, Ended: Now()})
		return p, nil //nolint:nilerr // it is the attempt's end, told like any other
	}
	if !l.send(ctx, frame) && x.retract(l, p) {
		return nil, errors.Join(fmt.Errorf("start attempt %s: %w", spec.Ref, context.Cause(ctx)), Forget(x.cfg.StateDir, spec.Token))
	}
	return p, nil
}

// retract takes back an attempt of which its keeper was not told. Where that
// keeper has died meanwhile, the attempt is lost like its neighbours, and
// nothing is taken back.
func (x *Executor) retract(l *link, p *Process) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.link != l {
		return false
	}
	delete(x.live, p.Token)
	return true
}

// order is what the keeper is told.
func (x *Executor) order(spec *Spec, serial uint32) *keeper.Start {
	env := make([]string, 0, len(spec.Env)+4)
	env = append(env, keeper.EnvState+"="+x.stateID.String(), keeper.EnvToken+"="+spec.Token,
		EnvResult+"="+ResultPath(x.cfg.StateDir, spec.Token))
	if spec.Inputs != nil {
		env = append(env, EnvInputs+"="+InputsPath(x.cfg.StateDir, spec.Token))
	}
	own := len(env)
	for _, e := range spec.Env {
		name, _, _ := strings.Cut(e, "=")
		if !hasName(env[:own], name) {
			env = append(env, e)
		}
	}
	return &keeper.Start{
		Token: spec.Token, Ref: spec.Ref, Argv: spec.command(), Env: env, Cwd: spec.Cwd,
		Dir: AttemptDir(x.cfg.StateDir, spec.Token), Log: spec.Log,
		Head: orDefault(spec.Head, DefaultHead), Tail: orDefault(spec.Tail, DefaultTail),
		Mark:  x.stateID.Mark(serial),
		Fence: spec.Fence, FenceTerm: spec.FenceTerm, Timeout: spec.Timeout, Grace: spec.Grace,
	}
}

func orDefault(v, otherwise int64) int64 {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Kill ends an attempt with all of its processes: TERM, and KILL after the
// grace (at once where it is zero). It returns before they are gone; Done
// says when. A token that does not run is no error.
func (x *Executor) Kill(ctx context.Context, token string, grace time.Duration) error {
	return x.tell(ctx, keeper.Frame{Op: keeper.OpKill, Token: token, Grace: grace})
}

// KillAll is Kill for every attempt.
func (x *Executor) KillAll(ctx context.Context, grace time.Duration) error {
	return x.tell(ctx, keeper.Frame{Op: keeper.OpKillAll, Grace: grace})
}

// Extend moves the fence deadline of every fenced attempt forward; an earlier
// one than it has changes nothing. The agent calls it after each acknowledged
// heartbeat. A deadline that has struck stays struck.
func (x *Executor) Extend(ctx context.Context, until Instant) error {
	return x.tell(ctx, keeper.Frame{Op: keeper.OpExtend, Until: until})
}

// Live returns the tokens of the attempts that have not ended, in no order.
func (x *Executor) Live() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	tokens := make([]string, 0, len(x.live))
	for t := range x.live {
		tokens = append(tokens, t)
	}
	return tokens
}

// Forget is the function Forget for this executor's directory; it refuses a
// token that runs.
func (x *Executor) Forget(token string) error {
	x.mu.Lock()
	_, runs := x.live[token]
	x.mu.Unlock()
	if runs {
		return fmt.Errorf("forget attempt %s: it runs", token)
	}
	return Forget(x.cfg.StateDir, token)
}

func (x *Executor) tell(ctx context.Context, f keeper.Frame) error {
	x.mu.Lock()
	l := x.link
	x.mu.Unlock()
	if l == nil {
		return fmt.Errorf("%s: %w", f.Op, ErrStopped)
	}
	body, err := keeper.EncodeFrame(f)
	if err != nil {
		return err
	}
	if !l.send(ctx, body) {
		return fmt.Errorf("%s: %w", f.Op, errors.Join(ErrStopped, ctx.Err()))
	}
	return nil
}

// await waits for a keeper.
func (x *Executor) await(ctx context.Context) (*link, error) {
	for {
		x.mu.Lock()
		l, linked, ended := x.link, x.linked, x.ended
		x.mu.Unlock()
		if l != nil {
			return l, nil
		}
		if ended {
			return nil, ErrStopped
		}
		select {
		case <-linked:
		case <-ctx.Done():
			return nil, errors.Join(ErrStopped, context.Cause(ctx))
		}
	}
}

// setLink makes a keeper the one that is spoken to; nil means that there is
// none for now.
func (x *Executor) setLink(l *link) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.link = l
	if l != nil {
		close(x.linked)
		x.linked = make(chan struct{})
	}
}

// close wakes whoever waits for a keeper for the last time.
func (x *Executor) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended, x.link = true, nil
	close(x.linked)
}

// drop takes a process out and gives its result.
func (x *Executor) drop(p *Process, r Result) {
	x.mu.Lock()
	_, had := x.live[p.Token]
	delete(x.live, p.Token)
	x.mu.Unlock()
	if had {
		p.setEnded(r)
	}
}

// process returns a live one, or nil.
func (x *Executor) process(token string) *Process {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.live[token]
}

// lose ends what a dead keeper may have left, and closes the attempts. Where
// the keeper closed one on disk before it died, that is its end.
func (x *Executor) lose(ctx context.Context, id keeper.StateID) error {
	x.mu.Lock()
	lost := make([]*Process, 0, len(x.live))
	for _, p := range x.live {
		lost = append(lost, p)
	}
	x.mu.Unlock()
	births := make([]keeper.Birth, len(lost))
	for i, p := range lost {
		if _, err := keeper.ReadJSON(filepath.Join(AttemptDir(x.cfg.StateDir, p.Token), birthName), &births[i]); err != nil {
			births[i] = keeper.Birth{} // half written by a dying keeper: the marks remain
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepLimit)
	defer cancel()
	if _, err := keeper.Sweep(ctx, id, births); err != nil {
		return err
	}
	for _, p := range lost {
		x.drop(p, lastWord(x.cfg.StateDir, p, "ended by writ: its keeper died"))
	}
	return nil
}

// sweepLimit is how long processes may take to die of KILL before Run gives
// up; only one in uninterruptible sleep takes longer than an instant.
const sweepLimit = 30 * time.Second
