package command

import "os/exec"

// ownGroup leaves it to exec to kill the process, for want of process groups.
func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
