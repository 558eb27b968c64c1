package process

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// ownGroup keeps the console's signals to this process away from the child.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminateGroup does nothing: Windows has no signal for it, and Stop has already closed the
// standard input of a command that has one.
func terminateGroup(*os.Process) {}

func killGroup(p *os.Process) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.Pid)).Run()
	_ = p.Kill()
}

func exitOf(state *os.ProcessState) Exit { return Exit{Code: state.ExitCode()} }
