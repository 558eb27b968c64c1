//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child lead a group of its own. There is no parent-death signal here: the end of its stdin tells a
// child that we are gone.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
