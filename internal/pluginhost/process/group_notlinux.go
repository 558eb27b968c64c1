//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child lead a group of its own. These systems have no parent-death signal: a child notices our end
// by the end of its stdin.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
