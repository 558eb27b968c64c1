package sandbox

import (
	"bufio"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sockets returns the real paths of the sockets by which this process's user has a say that not everybody has: its own,
// and those that it may use as the member of a group. What listens there obeys whoever has the user's id: a terminal
// multiplexer, an agent with keys, a container engine. The kernel tells by what name a socket was bound, and daemons
// give it another one before anybody may connect (ssh's ControlMaster, supervisord): so all sockets in these
// directories are returned, but for directories that are left out.
func sockets(leaveOut func(dir string) bool) []string {
	found := map[string]bool{}
	seen := map[string]bool{} // directories
	for name := range boundSockets() {
		dir, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil || leaveOut(dir) {
			continue
		}
		names := []string{filepath.Base(name)}
		if !seen[dir] {
			seen[dir] = true
			names = append(names, socketsIn(dir)...)
		}
		for _, name := range names {
			if path := filepath.Join(dir, name); exclusive(path) {
				found[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// socketsIn returns the names of the sockets in a directory; none where this process may not list it.
func socketsIn(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type() == fs.ModeSocket {
			names = append(names, e.Name())
		}
	}
	return names
}

// exclusive reports whether not everybody may use a socket that this process may use.
func exclusive(path string) bool {
	const everybody = 0o002
	var info unix.Stat_t
	return unix.Lstat(path, &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFSOCK &&
		(int(info.Uid) == os.Geteuid() || info.Mode&everybody == 0 && syscall.Access(path, unix.W_OK) == nil)
}

// boundSockets returns the absolute names by which sockets were bound. One that was bound by a relative name is taken
// for one in the directory of each process of this user.
func boundSockets() map[string]bool {
	table, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil
	}
	defer func() { _ = table.Close() }()
	names, relative := map[string]bool{}, map[string]bool{}
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		switch name := boundName(lines.Text()); {
		case name == "" || name[0] == '@': // abstract
		case filepath.IsAbs(name):
			names[name] = true
		default:
			relative[name] = true
		}
	}
	if len(relative) == 0 {
		return names
	}
	cwds, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is well-formed
	for _, cwd := range cwds {
		dir, err := os.Readlink(cwd)
		for name := range relative {
			if err == nil {
				names[filepath.Join(dir, name)] = true
			}
		}
	}
	return names
}

// boundName returns the name in a line of the kernel's table; empty: there is none.
func boundName(line string) string {
	const before = 7 // Num, RefCount, Protocol, Flags, Type, St, Inode
	for range before {
		line = strings.TrimLeft(line, " ")
		_, line, _ = strings.Cut(line, " ")
	}
	return line
}
