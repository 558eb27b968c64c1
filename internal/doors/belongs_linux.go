package doors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// belongs tells whether a process of the household, or this one, has the other end of a connection from there to here.
func belongs(h Household, there, here *net.TCPAddr) bool {
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		return true // a system that only looks like Linux: as on the others
	}
	s, ok := find(func(s socket) bool { return s.local == there.AddrPort() && s.remote == here.AddrPort() })
	if !ok {
		return false
	}
	if s.uid == os.Geteuid() && holds(os.Getpid(), s) == nil {
		return true
	}
	if s.uid != h.UID() {
		return false
	}
	hidden := false
	for _, pid := range members(h.Processes()) {
		err := holds(pid, s)
		if err == nil {
			return true
		}
		hidden = hidden || errors.Is(err, fs.ErrPermission)
	}
	return hidden // one of the household shows its files to nobody: then the user has to do
}

// socket is a TCP socket as the kernel's tables have it.
type socket struct {
	local, remote netip.AddrPort
	listens       bool
	uid           int
	inode         string
}

// find gives the first socket that matches.
func find(matches func(socket) bool) (socket, bool) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} { // a socket of IPv6 may be connected over IPv4
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if s, ok := parse(lines.Text()); ok && matches(s) {
				_ = f.Close()
				return s, true
			}
		}
		_ = f.Close()
	}
	return socket{}, false
}

// parse reads a line: sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode.
func parse(line string) (s socket, ok bool) {
	x := strings.Fields(line)
	if len(x) < 10 {
		return s, false
	}
	var err1, err2, err3 error
	s.local, err1 = address(x[1])
	s.remote, err2 = address(x[2])
	s.uid, err3 = strconv.Atoi(x[7])
	const listening = "0A"
	s.listens, s.inode = x[3] == listening, x[9]
	return s, errors.Join(err1, err2, err3) == nil && (s.inode != "0")
}

// address reads ADDRESS:PORT in hexadecimal. The address is in words of the machine's byte order.
func address(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for word := range slices.Chunk(raw, 4) {
		if len(word) == 4 {
			binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
		}
	}
	ip, ok := netip.AddrFromSlice(raw)
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", text)
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), nil
}

// holds is nil if a process has a socket open, and else fs.ErrNotExist, or why that cannot be seen.
func holds(pid int, s socket) error {
	_, err := descriptor(pid, s)
	return err
}

// descriptor is the number under which a process has a socket open.
func descriptor(pid int, s socket) (int, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		if target, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && target == "socket:["+s.inode+"]" {
			return strconv.Atoi(file.Name())
		}
	}
	return 0, fs.ErrNotExist
}

// members are the processes that were started, those in their process groups, and all below them.
func members(started []int) []int {
	type process struct{ parent, group int }
	all := map[int]process{}
	entries, _ := os.ReadDir("/proc") // none are found where that cannot be read
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		// pid (name, which may hold anything) state parent group
		rest := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(rest) < 3 {
			continue
		}
		parent, _ := strconv.Atoi(string(rest[1]))
		group, _ := strconv.Atoi(string(rest[2]))
		all[pid] = process{parent, group}
	}
	var found []int
	for pid := range all {
		for at, steps := pid, 0; at > 1 && steps < len(all); at, steps = all[at].parent, steps+1 {
			if slices.Contains(started, at) || slices.Contains(started, all[at].group) {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}
