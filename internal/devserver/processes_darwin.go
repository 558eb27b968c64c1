package devserver

import "syscall"

// tieToParent puts a child into a process group of its own, so that a Ctrl-C on the terminal reaches only the parent.
// That the child ends with its parent rests on the pipe alone here.
func tieToParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
