package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is one process of a cluster, over its restarts.
type process struct {
	name string
	args []string
	env  []string
	log  string // standard output and error of all its lives

	cmd     *exec.Cmd
	done    chan struct{} // closed when this life has ended
	err     error         // set before
	ordered bool          // its end was asked for
}

// launch begins a life.
func (p *process) launch(t testing.TB) {
	t.Helper()
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatalf("start %s: %v", p.name, err)
	}
	cmd := exec.Command(os.Args[0], p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	err = cmd.Start()
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		t.Fatalf("start %s: %v", p.name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done, p.ordered = cmd, done, false
	go func() {
		defer close(done)
		p.err = cmd.Wait()
	}()
}

func (p *process) lives() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("signal %s to %s: %v%s", s, p.name, err, p.tail())
	}
}

// end sends a signal that ends the process, and waits for the end.
func (p *process) end(t testing.TB, s syscall.Signal) error {
	t.Helper()
	p.ordered = true
	p.signal(t, s)
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	select {
	case <-p.done:
		return p.err
	case <-limit.C:
		t.Fatalf("%s did not end within %s of %s%s", p.name, Patience, s, p.tail())
		return nil
	}
}

// tail is the end of the log, for people.
func (p *process) tail() string {
	const lines = 30
	body, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Sprintf("\n(the log of %s cannot be read: %v)", p.name, err)
	}
	all := strings.Split(strings.TrimSpace(string(body)), "\n")
	return fmt.Sprintf("\nthe log of %s ends:\n%s\n", p.name, strings.Join(all[max(0, len(all)-lines):], "\n"))
}
