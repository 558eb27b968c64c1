package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// grace is how long a part may take to stop before it is killed.
const grace = time.Minute

// Part is one process of a cluster, by and by several: it can be killed and started again. One that gives up, because
// it has waited for another for too long, is started again at once, as a supervisor does. Safe for concurrent use.
type Part struct {
	Name string

	path, dir string
	args, env []string

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	// stopped says that it was meant to end.
	stopped bool
}

// NewPart is a part that is not started: a program with its arguments and its environment, in a directory that gets its
// log.
func NewPart(name, dir string, env []string, program string, args ...string) *Part {
	return &Part{Name: name, path: program, dir: dir, args: args, env: env}
}

// Become has the part be another program from its next start on, with more in its environment.
func (p *Part) Become(program string, env ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path, p.env = program, append(slices.Clip(p.env), env...)
}

// Start starts the part, which must not be running.
func (p *Part) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = false
	return p.start()
}

func (p *Part) start() error {
	log, err := os.OpenFile(filepath.Join(p.dir, p.Name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, p.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for whoever started the cluster
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		p.mu.Lock()
		defer p.mu.Unlock()
		close(ended)
		if gaveUp := cmd.ProcessState.ExitCode() > 0; gaveUp && !p.stopped {
			_ = p.start()
		}
	}()
	p.cmd, p.ended = cmd, ended
	return nil
}

// PID is the process that runs, or 0.
func (p *Part) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	select {
	case <-p.ended:
		return 0
	default:
		return p.cmd.Process.Pid
	}
}

// Signal sends the running process a signal.
func (p *Part) Signal(s syscall.Signal) error {
	pid := p.PID()
	if pid == 0 {
		return fmt.Errorf("%s does not run", p.Name)
	}
	return syscall.Kill(pid, s)
}

// Kill is kill -9. It returns when the process is gone.
func (p *Part) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	if err == nil {
		<-p.end()
	}
	return err
}

// end is closed when the process that runs, or ran last, has ended.
func (p *Part) end() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// Stop ends the part if it runs, gently if that does not take too long.
func (p *Part) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	if p.PID() == 0 {
		return
	}
	_ = p.Signal(syscall.SIGCONT)
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.end():
	case <-time.After(grace):
		_ = p.Kill()
	}
}

// Below gives the processes below one whose command lines hold a text.
func Below(ancestor int, text string) ([]int, error) {
	listing, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	if err != nil {
		return nil, err
	}
	parents, found := map[int]int{}, []int(nil)
	for line := range strings.Lines(string(listing)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		pid, errPID := strconv.Atoi(fields[0])
		parent, errParent := strconv.Atoi(fields[1])
		if errPID != nil || errParent != nil {
			continue
		}
		if parents[pid] = parent; strings.Contains(line, text) {
			found = append(found, pid)
		}
	}
	return slices.DeleteFunc(found, func(pid int) bool { return !descends(parents, pid, ancestor) }), nil
}

func descends(parents map[int]int, pid, ancestor int) bool {
	for at := parents[pid]; at > 1; at = parents[at] {
		if at == ancestor {
			return true
		}
	}
	return false
}
