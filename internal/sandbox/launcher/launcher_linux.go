package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The launcher does its work here, before most other packages of this binary are initialized, which takes it twenty
// times as long: that is why this package imports few others. The goroutine has the main thread to itself: what is set
// for this thread holds for the command.
func init() {
	if len(os.Args) == 0 || os.Args[0] != Name {
		seclude()
		return
	}
	const orderly = 3 // the descriptor of the socket
	unix.CloseOnExec(orderly)
	wire := os.NewFile(orderly, "worker")
	work := launch
	if len(os.Args) > 1 && os.Args[1] == Outer {
		work = launchInner
	}
	step, err := work(wire)
	if step == "" && err == nil {
		os.Exit(0) // an outer launcher, a probe, or one that was not needed
	}
	f := Failure{Step: step}
	if !errors.As(err, &f.Errno) {
		f.Step, f.Errno = fmt.Sprintf("%s (%v)", step, err), unix.EINVAL
	}
	text, _ := json.Marshal(f) // it always can be
	_, _ = wire.Write(text)
	os.Exit(1)
}

// launchInner starts a launcher in namespaces of its own, as a child of this process's parent, and tells that one its
// id.
func launchInner(wire *os.File) (string, error) {
	if err := reserve(); err != nil {
		return "keep a reserve for the worker", err
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{0, 1, 2, wire.Fd()},
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_PARENT,
			// in its own namespaces, until the command starts; the last three are for file systems in layers
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE, unix.CAP_CHOWN,
				unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER},
			Setsid: unix.Getpgrp() == os.Getpid(), // it leads a session, as this process does
		},
	})
	if err != nil {
		return "enter namespaces", err
	}
	return "", json.NewEncoder(wire).Encode(Begun{PID: pid})
}

// launch prepares this process for a command, waits for it, and becomes it. It returns only if it cannot, with the step
// that failed.
func launch(wire *os.File) (string, error) {
	said := json.NewDecoder(wire)
	var o Orders
	if err := said.Decode(&o); err != nil {
		return "read the orders", err
	}
	// when memory runs out it is not the worker that ends
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	if o.Confine {
		if step, err := confine(o); err != nil {
			return step, err
		}
	}
	if err := renounce(); err != nil {
		return "give up privileges", err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "give up privileges of executables", err
	}
	if o.Parent != 0 {
		if err := dieWith(o.Parent, o.DeathSignal); err != nil {
			return "end with the worker", err
		}
	}
	stayAmongOwn()
	if o.Confine {
		if err := refuseForeign(); err != nil {
			return "refuse calls on other processes", err
		}
	}
	if err := closeOthers(); err != nil {
		return "close files", err
	}
	var c Command
	if err := said.Decode(&c); errors.Is(err, io.EOF) {
		return "", nil // it was not needed
	} else if err != nil {
		return "read the command", err
	}
	if o.Confine {
		if err := takeHalf(); err != nil {
			return "set limits", err
		}
	}
	if err := apply(o.Limits); err != nil {
		return "set limits", err
	}
	if c.Path == "" {
		return "", nil
	}
	if c.Dir != "" {
		if err := os.Chdir(c.Dir); err != nil {
			return "enter " + c.Dir, errors.Unwrap(err)
		}
	}
	return "", syscall.Exec(c.Path, c.Args, c.Env)
}

// dieWith has the kernel send this process a signal when its parent ends, also once it is the command.
func dieWith(parent int, signal syscall.Signal) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(signal), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() != parent { // it has ended already
		os.Exit(1)
	}
	return nil
}

// Scoped tells whether the system lets a process signal, and connect to the abstract sockets of, only what it has
// started itself: Linux does from 6.12 on. Without, a program can end other processes of its user, the worker among
// them, and use those of its user's daemons that have such a socket.
func Scoped() bool {
	const fromVersion = 6
	version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return int(version) >= fromVersion //nolint:gosec // -1 when there is none
}

// stayAmongOwn has the process, and all that it starts, reach only one another by signals and abstract sockets, where
// the system is Scoped: a user namespace alone does not keep it from those of its user outside.
func stayAmongOwn() {
	if !Scoped() {
		return
	}
	attributes := struct{ files, network, scoped uint64 }{
		scoped: unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET,
	}
	rules, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)),
		unsafe.Sizeof(attributes), 0)
	if failed != 0 {
		return
	}
	_, _, _ = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0)
	_ = unix.Close(int(rules)) //nolint:gosec // a descriptor
}

// confine gives the process its ids back, arranges what it sees, and lets no executable have a privilege in its
// namespaces.
func confine(o Orders) (string, error) {
	maps := []struct{ file, text string }{
		{"uid_map", fmt.Sprintf("%d %d 1", o.UID, o.UID)},
		{"setgroups", "deny"},
		{"gid_map", fmt.Sprintf("%d %d 1", o.GID, o.GID)},
	}
	for _, m := range maps {
		if err := os.WriteFile("/proc/self/"+m.file, []byte(m.text), 0); err != nil {
			return "take user id " + strconv.Itoa(o.UID), err
		}
	}
	boundCounters()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "keep mounts apart", err
	}
	if err := o.View.arrange(); err != nil {
		return "take the service's files out of reach", err
	}
	for capability := uintptr(0); ; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); errors.Is(err, unix.EINVAL) && capability > 0 {
			return "", nil // there are no more
		} else if err != nil {
			return "give up privileges of executables", err
		}
	}
}

// renounce gives up every capability: those in the process's own namespaces, with which what is hidden could be
// uncovered, and those with which a worker that is not root's starts processes as other users, which would stay.
func renounce() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// apply sets the limits for this process and what it starts.
func apply(l Limits) error {
	for resource, value := range map[int]uint64{
		unix.RLIMIT_DATA: l.Memory, unix.RLIMIT_NPROC: l.Processes, unix.RLIMIT_NOFILE: l.Files,
		unix.RLIMIT_FSIZE: l.FileSize, unix.RLIMIT_CPU: l.CPU,
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return err
		}
		if value == 0 || value >= now.Max {
			continue
		}
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: min(value, now.Max), Max: value}); err != nil {
			return err
		}
	}
	return syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{})
}

// closeOthers keeps every descriptor of this process from the command but its standard ones.
func closeOthers() error {
	if unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd") // an older kernel
	for _, e := range entries {
		if fd, err := strconv.Atoi(strings.TrimSpace(e.Name())); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}
