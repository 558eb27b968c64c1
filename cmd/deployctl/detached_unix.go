//go:build unix

package main

import "syscall"

// detached makes a child survive its parent's terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
