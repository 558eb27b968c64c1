package process

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// ownGroup keeps console signals meant for us from the child.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminateGroup does nothing: there is no polite signal here but the end of stdin, which Stop has already sent.
func terminateGroup(*os.Process) {}

func killGroup(p *os.Process) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.Pid)).Run()
	_ = p.Kill()
}

func exitOf(state *os.ProcessState) Exit { return Exit{Code: state.ExitCode()} }
