package sandbox

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sockets returns the real paths of the sockets by which this process's user has a say that not everybody has: its own,
// and those that it may use as the member of a group. What listens there obeys whoever has the user's id: a terminal
// multiplexer, an agent with keys, a container engine.
func sockets() []string {
	table, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil
	}
	defer func() { _ = table.Close() }()
	var all []string
	for lines := bufio.NewScanner(table); lines.Scan(); {
		at := strings.IndexByte(lines.Text(), '/') // the columns before the path have none
		if at < 0 {
			continue
		}
		path := lines.Text()[at:]
		var info unix.Stat_t
		if unix.Lstat(path, &info) != nil || info.Mode&unix.S_IFMT != unix.S_IFSOCK {
			continue
		}
		const everybody = 0o002
		if int(info.Uid) != os.Geteuid() && (info.Mode&everybody != 0 || syscall.Access(path, unix.W_OK) != nil) {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			all = append(all, real)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
