package process

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup makes the child lead a group and a session of its own and die with us. The session is separate because the
// processes of a session share their scheduling priority, which each of them may set (/proc/PID/autogroup).
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// starter runs on a thread that lives as long as this process. The kernel sends the parent-death signal when the
// *thread* that started the child ends, and Go ends threads whenever a goroutine exits while locked to one.
var starter = sync.OnceValue(func() *startQueue {
	q := newStartQueue()
	go func() {
		runtime.LockOSThread()
		for {
			start := q.next()
			start()
		}
	}()
	return q
})

func startProcess(party string, cmd *exec.Cmd) error {
	err := make(chan error, 1)
	starter().add(party, func() { err <- cmd.Start() })
	return <-err
}

// awaitEnd returns when a child has ended, and leaves it to be reaped. It reports whether it could wait.
func awaitEnd(p *os.Process) bool {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
