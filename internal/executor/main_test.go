package executor_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/writ-sched/writ/internal/executor"
	"github.com/writ-sched/writ/internal/keeper"
)

// roleEnv makes the test binary an agent, or a keeper that misbehaves.
const roleEnv = "WRIT_TEST_ROLE"

func TestMain(m *testing.M) {
	if keeper.Invoked(os.Args) {
		os.Exit(keeper.Main(os.Args)) //nolint:forbidigo // this process is no test
	}
	if os.Getenv(roleEnv) == "agent" {
		os.Exit(agentMain()) //nolint:forbidigo // this process is no test
	}
	goleak.VerifyTestMain(m)
}

// patience bounds what a test waits for something that must come.
const patience = 60 * time.Second

// bench is one executor with its own state directory.
type bench struct {
	*executor.Executor
	t      *testing.T
	dir    string // state directory
	work   string // for scripts
	cancel context.CancelFunc
	ran    chan error
}

func setup(t *testing.T, change ...func(*executor.Config)) *bench {
	t.Helper()
	cfg := executor.Config{StateDir: t.TempDir()}
	for _, f := range change {
		f(&cfg)
	}
	x, err := executor.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	b := &bench{Executor: x, t: t, dir: cfg.StateDir, work: t.TempDir(), cancel: cancel, ran: make(chan error, 1)}
	go func() { b.ran <- x.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-b.ran)
		endLeftovers(t, b.dir)
	})
	return b
}

// stop ends Run and returns its error.
func (b *bench) stop() error {
	b.cancel()
	err := <-b.ran
	b.ran <- err
	return err
}

func endLeftovers(t *testing.T, dir string) executor.Leftovers {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	left, err := executor.EndLeftovers(ctx, dir)
	require.NoError(t, err)
	return left
}

func (b *bench) spec(token, script string) executor.Spec {
	return executor.Spec{
		Token: token, Ref: "r.1/t/1", Script: script, Cwd: b.work, Grace: 50 * time.Millisecond,
		Env: executor.Environ(os.Environ(), nil, nil), Log: filepath.Join(b.work, token+".log"),
	}
}

func (b *bench) start(s executor.Spec) *executor.Process {
	b.t.Helper()
	p, err := b.Start(b.t.Context(), s)
	require.NoError(b.t, err)
	return p
}

func (b *bench) run(s executor.Spec) executor.Result {
	b.t.Helper()
	return wait(b.t, b.start(s))
}

func wait(t *testing.T, p *executor.Process) executor.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := p.Wait(ctx)
	require.NoError(t, err)
	return r
}

func logOf(t *testing.T, path string) string {
	t.Helper()
	var out strings.Builder
	err := executor.FollowLog(t.Context(), path, 0, func(c executor.Chunk) error {
		if c.LeftOut > 0 {
			out.WriteString(executor.LeftOutLine(c.LeftOut))
		}
		out.Write(c.Data)
		return nil
	})
	require.NoError(t, err)
	return out.String()
}

// news is a FIFO through which scripts tell the test where they are.
type news struct {
	t    *testing.T
	path string
	f    *os.File
	r    *bufio.Reader
}

func newNews(t *testing.T, dir string) *news {
	t.Helper()
	path := filepath.Join(dir, "news")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return &news{t: t, path: path, f: f, r: bufio.NewReader(f)}
}

// newGate makes a FIFO named go, at which a script waits with read; the
// returned function lets it pass. Neither end ever waits for the other to open.
func newGate(t *testing.T, dir string) func() {
	t.Helper()
	path := filepath.Join(dir, "go")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return func() {
		_, err := f.WriteString("go\n")
		require.NoError(t, err)
	}
}

// next waits for one line.
func (n *news) next() string {
	n.t.Helper()
	require.NoError(n.t, n.f.SetReadDeadline(time.Now().Add(patience)))
	line, err := n.r.ReadString('\n')
	require.NoError(n.t, err)
	return strings.TrimSpace(line)
}

// pid waits for a line that is a process id.
func (n *news) pid() int {
	n.t.Helper()
	pid, err := strconv.Atoi(n.next())
	require.NoError(n.t, err)
	return pid
}

// requireDead fails where a process runs; a zombie is as good as gone.
func requireDead(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		require.Truef(t, strings.HasPrefix(rest, "Z"), "process %d lives: %s", pid, stat)
	}
}

// processesOf lists the processes, zombies too, below a keeper.
func processesOf(t *testing.T, ancestor int) []keeper.Proc {
	t.Helper()
	procs, err := keeper.ReadProcs()
	require.NoError(t, err)
	below := map[int]bool{ancestor: true}
	var found []keeper.Proc
	for range 8 { // pids wrap, so parents may come after children
		found = found[:0]
		for _, p := range procs {
			if below[p.Parent] {
				below[p.Pid] = true
				found = append(found, p)
			}
		}
	}
	return found
}

// keeperPid is the keeper that a state directory records.
func keeperPid(t *testing.T, dir string) int {
	t.Helper()
	var rec struct{ Keeper keeper.Birth }
	found, err := keeper.ReadJSON(filepath.Join(dir, "executor.json"), &rec)
	require.NoError(t, err)
	require.True(t, found)
	return rec.Keeper.Pid
}

// agentMain is the life of a test agent: it starts the specs that it reads as
// JSON, one a line, and tells of starts and ends.
func agentMain() int {
	x, err := executor.New(executor.Config{StateDir: os.Getenv("WRIT_TEST_DIR")})
	if err != nil {
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // this process is no test
	ran := make(chan error, 1)
	go func() { ran <- x.Run(ctx) }()
	in := json.NewDecoder(os.Stdin)
	for {
		var s executor.Spec
		if err := in.Decode(&s); err != nil {
			break
		}
		p, err := x.Start(ctx, s)
		if err != nil {
			fmt.Fprintln(os.Stdout, "error", err)
			continue
		}
		fmt.Fprintln(os.Stdout, "started", p.Pid())
		go func() {
			r, _ := p.Wait(ctx)
			fmt.Fprintln(os.Stdout, "ended", s.Token, r)
		}()
	}
	cancel()
	if <-ran != nil {
		return 1
	}
	return 0
}

// agent is a test agent in a process of its own.
type agent struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newAgent(t *testing.T, dir string) *agent {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"=agent", "WRIT_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	a := &agent{t: t, dir: dir, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		endLeftovers(t, dir)
	})
	return a
}

func (a *agent) start(s executor.Spec) string {
	a.t.Helper()
	require.NoError(a.t, json.NewEncoder(a.in).Encode(s))
	return a.line()
}

func (a *agent) line() string {
	a.t.Helper()
	line, err := a.out.ReadString('\n')
	require.NoError(a.t, err)
	return strings.TrimSpace(line)
}

func (a *agent) signal(sig syscall.Signal) {
	a.t.Helper()
	require.NoError(a.t, a.cmd.Process.Signal(sig))
}
