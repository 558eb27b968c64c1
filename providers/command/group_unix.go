//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// guard is a script that ends its process group when its standard input ends. That it does with this process, however
// that ends. To be asked to end is for the others of the group.
const guard = `trap '' HUP INT TERM; read _; kill -KILL 0`

// group is a process group that does not outlive this process. A guard leads it, which is a process for two reasons: a
// signal of the kernel at the parent's death reaches a child, but not what that has started; and not every system has
// one.
type group struct{ guard *exec.Cmd }

func newGroup() (*group, error) {
	cmd := exec.Command("/bin/sh", "-c", guard)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := cmd.StdinPipe(); err != nil { // Wait closes it
		return nil, err
	}
	return &group{cmd}, cmd.Start()
}

// take makes a command that is not started yet one of the group, and the end of its context ask the group to end.
func (g *group) take(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.guard.Process.Pid}
	cmd.Cancel = func() error { return g.signal(syscall.SIGTERM) }
}

func (g *group) signal(s syscall.Signal) error { return syscall.Kill(-g.guard.Process.Pid, s) }

// kill ends whatever is left of the group.
func (g *group) kill() { _ = g.signal(syscall.SIGKILL) } // an error says that none is left

// release takes the guard away: what is left of the group may go on.
func (g *group) release() {
	_ = g.guard.Process.Kill()
	_ = g.guard.Wait() // says that it was killed
}
