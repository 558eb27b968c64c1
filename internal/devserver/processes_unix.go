//go:build unix

package devserver

import (
	"os"
	"syscall"
)

// privateFiles makes whatever this process creates from now on readable by its user only.
func privateFiles() { syscall.Umask(0o077) }

// askToEnd asks a process to end cleanly.
func askToEnd(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
