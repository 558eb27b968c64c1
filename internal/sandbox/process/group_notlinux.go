//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child lead a group of its own. These systems have no parent-death signal: a child whose
// command has a standard input notices our end by its end, and the guard ends the others.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
