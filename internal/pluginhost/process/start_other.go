//go:build !linux

package process

import "os/exec"

func startProcess(cmd *exec.Cmd) error { return cmd.Start() }
