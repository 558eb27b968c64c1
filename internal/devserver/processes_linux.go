package devserver

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// portOwner names the process that listens on a TCP port of this machine, or is empty when that cannot be told (another
// user's process hides its files).
func portOwner(port int) string {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listeners(table, port, sockets)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		if holds(process, func(target string) bool { return sockets[target] }) {
			pid, _ := strconv.Atoi(filepath.Base(process))
			return describe(pid)
		}
	}
	return ""
}

// listeners adds to sockets, as /proc/PID/fd shows them, those of a kernel table that listen on port.
func listeners(table string, port int, sockets map[string]bool) {
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	const listening = "0A"
	suffix := fmt.Sprintf(":%04X", port)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
		if x := strings.Fields(lines.Text()); len(x) > 9 && strings.HasSuffix(x[1], suffix) && x[3] == listening {
			sockets["socket:["+x[9]+"]"] = true
		}
	}
}

// holds says whether a process, given by its directory in /proc, has a file open that matches.
func holds(process string, matches func(target string) bool) bool {
	files, _ := filepath.Glob(filepath.Join(process, "fd", "*"))
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && matches(target) {
			return true
		}
	}
	return false
}

// describe names a process by its id and command line.
func describe(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	command := string(bytes.TrimSpace(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
	if len(command) > 120 {
		command = command[:120] + "…"
	}
	return fmt.Sprintf("process %d (%s)", pid, command)
}

// hasLocked reports whether the process holds the lock on the file: a process id that was read from a file may be
// another process by now. The service's files are not readable for every user, but the kernel's table of locks is.
func hasLocked(pid int, file string) bool {
	var at syscall.Stat_t
	if err := syscall.Stat(file, &at); err != nil {
		return false
	}
	// The kernel lists locks in pages. A lock may be missing from a listing if another one goes while it is read.
	for range 3 {
		locks, err := os.ReadFile("/proc/locks")
		if err != nil || listsLock(string(locks), strconv.Itoa(pid), at.Ino) {
			return true // without a table, the process id is trusted
		}
	}
	return false
}

// listsLock reports whether a table of locks has a lock of the process on the inode.
func listsLock(locks, pid string, inode uint64) bool {
	seen, some := false, false
	for line := range strings.Lines(locks) {
		// 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE START END
		x := strings.Fields(line)
		if len(x) < 6 || x[1] != "FLOCK" {
			continue
		}
		this := strings.HasSuffix(x[5], fmt.Sprintf(":%d", inode))
		if this && x[4] == pid {
			return true
		}
		seen, some = seen || this, some || x[4] == pid
	}
	return !seen && some // some file systems have other numbers there: then any lock of the process suffices
}

// tieToParent makes a child die with its parent, and puts it into a process group of its own so that a Ctrl-C on the
// terminal reaches only the parent, which ends the child when it is done with it. The kernel looks at the parent's
// thread: the goroutine that starts the child must keep its thread for the child's whole life.
func tieToParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
