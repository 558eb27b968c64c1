package sandbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// left finds the processes that those of a box have left behind. One that has detached itself from its process group
// and session, and whose parents have ended, is in the namespaces of the process that the box has started still: it can
// enter no other ones. The open files keep the kernel from giving the same number to another namespace or mount.
type left map[string]*os.File // by what /proc says of the user namespace, and by rootMount

// remember keeps the namespaces of a process which was started, or is to become a command.
func (l left) remember(pid int) {
	user := func(pid int) (string, error) { return os.Readlink(namespaceOf(pid)) }
	l.keep(pid, user, namespaceOf(pid))
	l.keep(pid, rootMount, "/proc/"+strconv.Itoa(pid)+"/ns/mnt")
}

// keep opens a file of a process, without which another process could be named as this one is.
func (l left) keep(pid int, named func(pid int) (string, error), path string) {
	name, err := named(pid)
	if own, _ := named(os.Getpid()); err != nil || name == own || l[name] != nil {
		return
	}
	file, err := os.Open(path)
	if err != nil {
		return // the process has ended before it was a command
	}
	if again, err := named(pid); err != nil || again != name {
		_ = file.Close()
		return
	}
	l[name] = file
}

// rootMount names the mount that is the root directory of a process. Everybody may read it, also of a process that
// hides its namespaces, as one does whose executable is another user's and cannot be read.
func rootMount(pid int) (string, error) {
	mounts, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mountinfo")
	if err != nil {
		return "", err
	}
	defer func() { _ = mounts.Close() }()
	var begin [32]byte // the format is: id …
	n, err := mounts.Read(begin[:])
	id, _, found := bytes.Cut(begin[:n], []byte(" "))
	if !found {
		return "", cmp.Or(err, io.ErrUnexpectedEOF) // it has ended
	}
	return "mount:" + string(id), nil
}

func namespaceOf(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/ns/user" }

const (
	// endPatience is how long the end of what is left may take: a process that waits for a device does not end. On a
	// machine that is short of processor time, killed processes take seconds until they have ended.
	endPatience = time.Minute
	// stopRounds bounds how often new processes are looked for before those that were found are killed.
	stopRounds = 100
)

// end kills all processes in the namespaces, and returns when they have ended.
func (l left) end() error {
	defer l.forget()
	if len(l) == 0 {
		return nil
	}
	for begun := time.Now(); ; {
		// Stopped processes start no further ones, and still count for the limit of processes.
		stopped := map[int]bool{}
		for fresh, round := true, 0; fresh && round < stopRounds; round++ {
			fresh = false
			found, err := l.processes()
			if err != nil {
				return err
			}
			for _, pid := range found {
				if !stopped[pid] {
					stopped[pid], fresh = true, true
					l.signal(pid, unix.SIGSTOP)
				}
			}
		}
		running, err := l.processes()
		if err != nil || len(running) == 0 {
			return err
		}
		if time.Since(begun) > endPatience {
			return fmt.Errorf("the processes %v, which programs have left, do not end", running)
		}
		for _, pid := range running {
			l.signal(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond) // they end on other processors
	}
}

func (l left) forget() {
	for name, file := range l {
		_ = file.Close()
		delete(l, name)
	}
}

// processes returns those in the namespaces that have not ended, the youngest first: one that starts the next and ends
// is gone soonest.
func (l left) processes() (found []int, err error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for processes that programs have left: %w", err)
	}
	defer func() { _ = proc.Close() }()
	names, _ := proc.Readdirnames(-1) // what was read of it counts
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(b, a) })
	for _, pid := range all {
		if l.has(pid) && !ended(pid) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// has reports whether a process is in one of the namespaces.
func (l left) has(pid int) bool {
	name, err := os.Readlink(namespaceOf(pid))
	if errors.Is(err, fs.ErrPermission) {
		name, err = rootMount(pid)
	}
	return err == nil && l[name] != nil
}

// statThreads is the field with the number of threads in what /proc says of a process, counted from its state.
const statThreads = 17

// ended reports whether a process has ended; its parent may not have waited for it. One whose first thread has ended
// before others is in the same state as one that has ended, and has threads.
func ended(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	// the format is: pid (name) state …; the name may have any characters
	_, rest, _ := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(" "))
	fields := bytes.Fields(rest)
	if len(fields) <= statThreads {
		return false
	}
	state, threads := string(fields[0]), string(fields[statThreads])
	return state == "X" || state == "Z" && (threads == "0" || threads == "1")
}

// signal sends a signal to a process of the namespaces, and to no later one that has got its id.
func (l left) signal(pid int, s syscall.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer func() { _ = unix.Close(fd) }()
	if l.has(pid) {
		_ = unix.PidfdSendSignal(fd, s, nil, 0) // if it fails, the process has ended
	}
}
