package devserver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
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

// strange says whether a connection on loopback is that of another user than this process's and root. One that its caller has
// closed belongs to nobody any more, and is strange.
func strange(conn net.Conn) bool {
	from, to := conn.RemoteAddr().(*net.TCPAddr).AddrPort(), conn.LocalAddr().(*net.TCPAddr).AddrPort()
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if uid, found := socketUser(table, from, to); found {
			return uid != 0 && uid != os.Getuid()
		}
	}
	return false
}

// nobody is the user of a socket that has no process.
const nobody = -1

// socketUser finds in a kernel table whose socket has these two addresses.
func socketUser(table string, local, remote netip.AddrPort) (uid int, found bool) {
	f, err := os.Open(table)
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }()
	const established = "01"
	from, to := kernelAddress(local), kernelAddress(remote)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
		x := strings.Fields(lines.Text())
		if len(x) < 10 || !strings.HasSuffix(x[1], from) || !strings.HasSuffix(x[2], to) {
			continue
		}
		if uid, err := strconv.Atoi(x[7]); err == nil && x[3] == established {
			return uid, true
		}
		return nobody, true
	}
	return 0, false
}

// kernelAddress writes an IPv4 address as kernel tables do, in the byte order of the machine; as IPv6 it has more before it.
func kernelAddress(a netip.AddrPort) string {
	ip := a.Addr().Unmap().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), a.Port())
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

// hasLocked says whether the process holds the lock on the file: that a process id, read from a file, is not somebody else by now.
// The service's files are open to nobody's eyes, but the kernel's table of locks is.
func hasLocked(pid int, file string) bool {
	var at syscall.Stat_t
	if err := syscall.Stat(file, &at); err != nil {
		return false
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return true // nobody can tell
	}
	seen, some := false, false
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE START END
		x := strings.Fields(line)
		if len(x) < 6 || x[1] != "FLOCK" {
			continue
		}
		this := strings.HasSuffix(x[5], fmt.Sprintf(":%d", at.Ino))
		if this && x[4] == strconv.Itoa(pid) {
			return true
		}
		seen, some = seen || this, some || x[4] == strconv.Itoa(pid)
	}
	return !seen && some // some file systems have other numbers there: then any lock of the process has to do
}

// tieToParent makes a child die with its parent, and puts it into a process group of its own so that a Ctrl-C on the terminal
// reaches only the parent, which ends the child when it is done with it. The kernel looks at the parent's thread: the goroutine
// that starts the child must keep its thread for the child's whole life.
func tieToParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
