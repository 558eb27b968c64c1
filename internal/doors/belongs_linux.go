package doors

import (
	"bytes"
	"errors"
	"io/fs"
	"iter"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// belongs reports whether the other end of a connection (there) belongs to a process of the household or to this
// process.
func belongs(h Household, there, here *net.TCPAddr) bool {
	if !knows() {
		return true // as on other systems
	}
	s, ok := connection(end(there), end(here))
	return ok && owned(h, s)
}

// owned reports whether a process of the household, or this process, has a socket open.
func owned(h Household, s socket) bool {
	if s.inode == "0" {
		return false
	}
	hidden := false
	if s.uid == h.UID() {
		for pid := range members(h.Processes()) {
			err := holds(pid, s)
			if err == nil {
				return true
			}
			hidden = hidden || errors.Is(err, fs.ErrPermission)
		}
	}
	if s.uid == os.Geteuid() && holds(os.Getpid(), s) == nil {
		return true
	}
	return hidden // the files of a process of the household cannot be read: then the user id must suffice
}

// holds returns nil if a process has a socket open, fs.ErrNotExist if it does not, or the error that prevents the
// check.
func holds(pid int, s socket) error {
	_, err := descriptor(pid, s)
	return err
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
