package command

import "os/exec"

// group leaves it to exec to kill the process, for want of process groups.
type group struct{}

func newGroup() (*group, error) { return &group{}, nil }

func (*group) take(*exec.Cmd) {}

func (*group) kill() {}

func (*group) release() {}
