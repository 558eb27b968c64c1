package doors

import (
	"bytes"
	"io/fs"
	"iter"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// belongs reports whether the other end of a connection belongs to a process of the household or to this process.
func belongs(h Household, conn net.Conn) bool {
	if !knows() {
		return true // as on other systems
	}
	s, ok := peer(conn)
	return ok && owned(h, s)
}

// owned reports whether a process of the household, or this process, has a socket open.
func owned(h Household, s socket) bool {
	if s.inode == "0" {
		return false
	}
	if s.uid == h.UID() {
		if _, _, err := holder(h, s); err == nil {
			return true
		}
	}
	if s.uid != os.Geteuid() {
		return false
	}
	_, err := descriptor(os.Getpid(), s)
	return err == nil
}

// holder returns the process of the household that has a socket open, and its descriptor; fs.ErrNotExist if none is
// seen to. A process whose files cannot be read counts as one that has none, because the user id says nothing: it may
// be that of all organizations. Each process is such a one between its exit and its parent's wait, and so is one that
// has made itself not dumpable. It looks more than once: meanwhile a process may give the socket another descriptor,
// as shells do, or leave it to a child.
func holder(h Household, s socket) (pid, fd int, err error) {
	const looks = 3
	for range looks {
		for pid := range members(h.Processes()) {
			if fd, err := descriptor(pid, s); err == nil {
				return pid, fd, nil
			}
		}
	}
	return 0, 0, fs.ErrNotExist
}

// descriptor returns the file descriptor under which a process has a socket open.
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

// members returns the processes that were started, then the members of their process groups, and all descendants of
// these.
func members(started []int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, pid := range started { // the usual case, without a search of /proc
			if !yield(pid) {
				return
			}
		}
		for _, pid := range descendants(started) {
			if !yield(pid) {
				return
			}
		}
	}
}

func descendants(started []int) (found []int) {
	type process struct{ parent, group int }
	all := map[int]process{}
	entries, _ := os.ReadDir("/proc") // if /proc cannot be read, none are found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // the process has ended
		}
		// the format is: pid (name) state parent group; the name may have any characters
		rest := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(rest) < 3 {
			continue
		}
		parent, _ := strconv.Atoi(string(rest[1]))
		group, _ := strconv.Atoi(string(rest[2]))
		all[pid] = process{parent, group}
	}
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
