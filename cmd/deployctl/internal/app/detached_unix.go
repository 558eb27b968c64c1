//go:build unix

package app

import "syscall"

// detached returns attributes with which a child survives the end of its parent's terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
