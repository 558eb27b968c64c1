package devserver

import (
	"os"
	"syscall"
)

// privateFiles has nothing to do: files take the permissions of the home's directory here.
func privateFiles() {}

// askToEnd ends a process: there is no signal that would ask it. The next start recovers, as after any kill.
func askToEnd(p *os.Process) error { return p.Kill() }

// tieToParent keeps a Ctrl-C on the console from reaching a child. That the child ends with its parent rests on the
// pipe alone.
func tieToParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
