//go:build !linux

package process

import (
	"os"
	"os/exec"
)

func startProcess(_ string, cmd *exec.Cmd) error { return cmd.Start() }

// awaitEnd cannot wait for the end of a child without reaping it.
func awaitEnd(*os.Process) bool { return false }
